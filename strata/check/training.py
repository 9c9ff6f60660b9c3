"""The training check: `ddp-check` in a container of the image."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from strata.check.container import run_once
from strata.digest import inputs_digest
from strata.record import Outcome

if TYPE_CHECKING:
    import docker

TIMEOUT = 300.0
NAME = "ddp"


def training_key(nproc: str, gpus: str) -> str:
    """Return the digest of how the check is run (what it runs is in the image)."""
    return inputs_digest({"nproc": nproc, "gpus": gpus})


def check_training(sdk: docker.DockerClient, image: str, nproc: str, gpus: str) -> Outcome:
    """Train on `nproc` ranks in a container of `image`; the label says on what.

    Without GPUs the outcome reads "CPU, gloo", and never as a pass on GPUs.
    """
    import docker.errors  # noqa: PLC0415 - slow to import

    argv = ["ddp-check", "--json"]
    argv += ["--nproc", nproc] if nproc else []
    argv += ["--require-gpu"] if gpus != "none" else []
    start = time.monotonic()
    try:
        ended = run_once(sdk, image, argv, gpus, TIMEOUT)
    except TimeoutError as late:
        return _outcome("fail", str(late), start, nproc, gpus)
    except docker.errors.APIError as refused:
        why = f"ddp-check did not start: {refused.explanation or refused}"
        return _outcome("fail", why, start, nproc, gpus)
    document = _document(ended.stdout)
    if document is None:
        last = "\n".join((ended.stdout + ended.stderr).splitlines()[-20:])
        return _outcome("fail", f"exit {ended.code}, no report:\n{last}", start, nproc, gpus)
    is_pass = ended.code == 0 and document.get("verdict") == "pass"
    detail = _detail(document)
    if not is_pass:
        last = "\n".join(ended.stderr.splitlines()[-20:])
        detail = f"{detail}, exit {ended.code}\n{last}"
    return _outcome("pass" if is_pass else "fail", detail, start, nproc, gpus)


def _document(text: str) -> dict[str, Any] | None:
    """Return the report that is the whole of `text`, or None where there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _detail(document: dict[str, Any]) -> str:
    phases = document.get("phases", [])
    failed = [f"{p['name']}: {p.get('reason')}" for p in phases if p["outcome"] == "fail"]
    head = f"{document.get('label')}, {document.get('world_size')} ranks"
    return "\n".join([head, *failed])


def _outcome(verdict: Any, detail: str, start: float, nproc: str, gpus: str) -> Outcome:  # noqa: ANN401 - a Verdict
    return Outcome(
        name=NAME,
        verdict=verdict,
        detail=detail,
        seconds=round(time.monotonic() - start, 2),
        key=training_key(nproc, gpus),
    )
