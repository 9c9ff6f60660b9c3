"""The training check: `ddp-check` in a container of the image."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata.check.nodes import run_nodes, summarize
from strata.digest import inputs_digest
from strata.errors import TrainingCheckError
from strata.record import Outcome
from strata.run import run

if TYPE_CHECKING:
    import docker

    from strata.check.options import Training
    from strata.record import Verdict

TIMEOUT = 300.0
TRAIN = Path(__file__).resolve().parents[2] / "train"
NAME = "ddp"


def training_key(how: Training) -> str:
    """Return the digest of how the check is run (what it runs is in the image)."""
    return inputs_digest({name: str(value) for name, value in asdict(how).items()})


def check_training(sdk: docker.DockerClient, image: str, how: Training, logs: Path) -> Outcome:
    """Train in containers of `image`; the label says on what.

    Without GPUs the outcome reads "CPU, gloo", and never as a pass on GPUs.
    What nodes and ranks wrote is in the folder `logs` afterwards, and so is the
    plot; the outcome names it from the folder above, where the record is.
    """
    import docker.errors  # noqa: PLC0415 - slow to import

    start = time.monotonic()
    if logs.exists():
        shutil.rmtree(logs)
    try:
        ends = run_nodes(sdk, image, how, TIMEOUT, logs)
    except TimeoutError:
        return _outcome("fail", f"it did not end within {TIMEOUT:.0f} s", start, how)
    except docker.errors.APIError as refused:
        why = f"ddp-check did not start: {refused.explanation or refused}"
        return _outcome("fail", why, start, how)
    # Every node has told the same, unless it was lost: the first that speaks is heard.
    document = next(filter(None, (_document(ended.stdout) for ended in ends)), None)
    if document is None:
        last = "\n".join((ends[0].stdout + ends[0].stderr).splitlines()[-20:])
        return _outcome("fail", f"exit {ends[0].code}, no report:\n{last}", start, how)
    plot = _draw(document, logs)
    is_pass = document.get("verdict") == "pass" and all(ended.code == 0 for ended in ends)
    detail = _detail(document, how.nodes)
    if not is_pass:
        detail = f"{detail}\n{summarize(ends)}\nlogs: {logs}".strip()
    outcome = _outcome("pass" if is_pass else "fail", detail, start, how)
    return replace(outcome, plot=str(plot.relative_to(logs.parent.parent)) if plot else "")


def _document(text: str) -> dict[str, Any] | None:
    """Return the report that is the whole of `text`, or None where there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _detail(document: dict[str, Any], nodes: int) -> str:
    phases = document.get("phases", [])
    failed = [f"{p['name']}: {p.get('reason')}" for p in phases if p["outcome"] == "fail"]
    hosts = f" on {nodes} nodes" if nodes > 1 else ""
    head = f"{document.get('label')}, {document.get('world_size')} ranks{hosts}"
    # What follows a failure has not run because of it: that is no news.
    left_out = [
        f"not run: {p['name']}: {p.get('reason')}"
        for p in phases
        if p["outcome"] == "not run" and not failed
    ]
    return "\n".join([head, *failed, *left_out])


def _draw(document: dict[str, Any], logs: Path) -> Path | None:
    """Keep the report, and draw bandwidth by size and throughput by ranks.

    Returns the plot in `logs`, None where nothing was measured.
    """
    measured = {p["name"] for p in document.get("phases", []) if p["outcome"] == "pass"}
    if measured.isdisjoint({"collectives", "scaling"}):
        return None
    report, plot = logs.absolute() / "report.json", logs.absolute() / "plot.svg"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps(document), encoding="utf-8")
    run(
        [sys.executable, "-m", "ddp.plot", str(report), str(plot)],
        error=TrainingCheckError,
        where=str(report),
        fix="train/ddp/plot.py draws it",
        cwd=TRAIN,
        quiet=True,
    )
    return logs / plot.name


def _outcome(verdict: Verdict, detail: str, start: float, how: Training) -> Outcome:
    return Outcome(
        name=NAME,
        verdict=verdict,
        detail=detail,
        seconds=round(time.monotonic() - start, 2),
        key=training_key(how),
    )
