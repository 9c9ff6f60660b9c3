"""A rank of a job that the agent restarts: one is killed in the first attempt.

    python -m ddp.restarted FOLDER keep|forget

It trains with the trainer's own parts and saves as the trainer does; in the
second attempt it goes on from there (`forget`: it does not, to see that noticed),
and then trains once more without any interruption, to compare.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from torch import distributed

from ddp.building import losses_of, small_config, small_run
from trainer.checkpoint import load, save
from trainer.group import join
from trainer.steps import train_steps

STEPS = 12
SAVE_EVERY = 4
KILLED_AFTER = 6
TIMEOUT = 15.0
# A new process adds three or more ranks' values in another order at first.
LIMIT = 1e-4


def main(folder_name: str, mode: str) -> None:
    """Train to the end, or be killed; rank 0 leaves `finding.json`."""
    folder = Path(folder_name)
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    group = join(TIMEOUT, threads=0)
    config = small_config(group.world_size, max_steps=STEPS)
    run = small_run(config, group)
    file = folder / "checkpoint.pt"
    if mode == "keep":
        load(file, run)
    resumed = run.progress.step
    loss = 0.0
    for sums in train_steps(run):
        loss = sums.reduce(group).loss
        step = run.progress.step
        if step % SAVE_EVERY == 0:
            save(file, run)
        if attempt == 0 and step == KILLED_AFTER and group.rank == group.world_size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
    expected = losses_of(small_run(config, group))[-1]
    if group.is_first:
        finding = {
            "attempts": attempt + 1,
            "killed_after_step": KILLED_AFTER,
            "resumed_after_step": resumed,
            "steps": run.progress.step,
            "relative_difference": abs(loss / expected - 1),
            "limit": LIMIT,
        }
        (folder / "finding.json").write_text(json.dumps(finding))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
