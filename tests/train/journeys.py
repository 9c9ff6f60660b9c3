"""Launches the trainer as its users do, and prints what came of it as one JSON document.

Handed to the tested Python as `-c`, in a container or not, with the folder of
train/, the text of trainer_parts.py and that of the example in docs/training.md as
its arguments.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TRAIN, PARTS, OWN = sys.argv[1:]
STEPS, SAVE_EVERY, KILLED_AFTER, STOPPED_AFTER = 20, 5, 12, 13
LOGGED = ("straight", "restarted", "alone", "stopped")
ARGUMENTS = [
    *("--max-steps", str(STEPS), "--save-every", str(SAVE_EVERY), "--log-every", "1"),
    *("--batch-size", "8", "--length", "16", "--accumulate", "2", "--warmup", "2"),
]
# Rank 1 is killed once, in the first attempt, after the checkpoint of step 10,
# of which rank 0 has kept a copy.
FRAGILE = f"""
import os, shutil, signal, sys
from pathlib import Path
import trainer.main
from trainer.arguments import parse

def fragile(run, steps=trainer.main.train_steps):
    for sums in steps(run):
        if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            if run.progress.step == {SAVE_EVERY * 2 + 1} and run.group.is_first:
                saved = run.config.out / "checkpoint.pt"
                shutil.copytree(saved.parent, run.config.out.parent / "alone")
            if run.progress.step == {KILLED_AFTER} and run.group.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        yield sums

trainer.main.train_steps = fragile
sys.exit(trainer.main.main(sys.argv[1:]))
"""

# Rank 1 and its loading workers get SIGTERM, as a whole process group does from
# torchrun, before a step; rank 0 only hears of it.  Ranks ask each other after every step.
STOPPED = f"""
import os, signal, sys, time
import trainer.main, trainer.schedule

def stopped(run, steps=trainer.main.train_steps):
    for sums in steps(run):
        yield sums
        if run.progress.step == {STOPPED_AFTER - 1} and run.group.rank == 1:
            os.killpg(os.getpgrp(), signal.SIGTERM)
            time.sleep(0.5)  # a worker that died of it would be noticed now

trainer.schedule.ASK_EVERY = 0.0
trainer.main.train_steps = stopped
code = trainer.main.main(sys.argv[1:])
print("rank", os.environ["RANK"], "ends with", code, file=sys.stderr, flush=True)
os._exit(code)  # as the trainer itself ends
"""

# Two ranks, each as if alone on its host, which finds other files than the other does.
HOSTS = """
import json, os
from pathlib import Path
from ddp.errors import Refused
from trainer.arguments import Config
from trainer.group import join
from trainer.main import train

rank = int(os.environ["RANK"])
group = join(timeout=60.0, threads=1)
said = {}
for name, changes in (
    ("no folder", {"data": ("text", "nowhere")[rank]}),
    ("other names", {"data": ("hosts/0", "hosts/1")[rank], "model": "bert-base"}),
    ("other sizes", {"data": ("hosts/0", "hosts/2")[rank]}),
    ("damaged", {"data": "text", "out": Path(("images", "hosts/damaged")[rank])}),
):
    try:
        train(Config(length=16, **changes), group)
        said[name] = "nothing"
    except Refused as refused:
        said[name] = str(refused)
Path(f"said-{rank}.json").write_text(json.dumps(said))
"""


def launch(folder: Path, *words: str) -> dict[str, object]:
    """Run Python with `words`, in the folder, which finds the trainer as in the image."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=folder,
        # As docs/training.md asks for restarts: ranks may find old addresses otherwise.
        env={**os.environ, "PYTHONPATH": TRAIN, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return {"code": done.returncode, "err": done.stderr, "out": done.stdout}


def torchrun(folder: Path, *words: str) -> dict[str, object]:
    """Launch two ranks on this host."""
    # A warning of torchrun's own must not end it.
    run = ["-W", "default", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return launch(folder, *run, *words)


def log(folder: Path) -> list[dict[str, str]]:
    """Return the lines of a run's CSV file."""
    with (folder / "log.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def main() -> None:
    """Make all journeys."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text").mkdir()
        for number in range(3):
            words = " ".join(str(n * n % 97) for n in range(number, number + 400))
            (folder / f"text/{number}.txt").write_text(words)
        for number in range(20):
            (folder / f"images/{number % 2}").mkdir(parents=True, exist_ok=True)
            pixels = np.random.default_rng(number).integers(0, 256, (40, 50, 3), np.uint8)
            np.save(folder / f"images/{number % 2}/{number}.npy", pixels)
        (folder / "fragile.py").write_text(FRAGILE)
        (folder / "stopped.py").write_text(STOPPED)
        (folder / "own.py").write_text(OWN)
        (folder / "hosts.py").write_text(HOSTS)
        for host, file, size in ((0, "a", 400), (1, "b", 400), (2, "a", 399)):
            (folder / f"hosts/{host}").mkdir(parents=True)
            (folder / f"hosts/{host}/{file}.txt").write_text("x" * size)
        (folder / "hosts/damaged").mkdir()
        (folder / "hosts/damaged/checkpoint.pt").write_text("damaged")
        runs = {
            "straight": torchrun(
                folder, "-m", "trainer", "--data", "text", "--out", "straight", *ARGUMENTS
            ),
            "restarted": torchrun(
                folder,
                *("--max-restarts", "1", "fragile.py"),
                *("--data", "text", "--out", "restarted", *ARGUMENTS),
            ),
            "alone": launch(
                folder,
                *("-m", "trainer", "--data", "text", "--out", "alone", *ARGUMENTS),
            ),
            "stopped": torchrun(
                folder, "stopped.py", "--data", "text", "--out", "stopped", *ARGUMENTS
            ),
            "stopped again": torchrun(
                folder, "-m", "trainer", "--data", "text", "--out", "stopped", *ARGUMENTS
            ),
            "own": torchrun(
                folder,
                *("own.py", "--batch-size", "50", "--epochs", "6", "--lr", "0.05"),
                *("--out", "own"),
            ),
            "hosts": torchrun(folder, "hosts.py"),
        }
        document = {
            "runs": runs,
            "logs": {run: log(folder / run) for run in LOGGED},
            "hosts": [json.loads((folder / f"said-{rank}.json").read_text()) for rank in (0, 1)],
            "files": sorted(path.name for path in (folder / "straight").iterdir()),
        }
        done = launch(folder, "-c", PARTS)
        if done["code"] != 0:
            sys.exit(str(done["err"]))
        document["parts"] = json.loads(str(done["out"]))
    print(json.dumps(document))


main()
