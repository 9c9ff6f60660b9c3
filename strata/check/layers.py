"""The layers' own tests, by testinfra, in a container of the image."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from strata.digest import file_digest, folder_digests, inputs_digest
from strata.record import Outcome
from strata.run import echo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from strata.model import Layer

FOLDER = "tests/layers"
TIMEOUT = 900.0  # seconds, for the tests of all layers of an image


def layer_key(root: Path, layer: str) -> str:
    """Return the digest of a layer's tests and of what they share."""
    shared = {path.name: file_digest(path) for path in (root / FOLDER).glob("*.py")}
    return inputs_digest({**folder_digests(root / FOLDER / layer, layer), **shared})


def check_key(root: Path, layer: Layer) -> str:
    """Return the digest of all that is asked of a layer: its tests, and its facts' commands."""
    facts = {f"fact {names}": command for names, command in layer.facts.items()}
    return inputs_digest({"tests": layer_key(root, layer.name), **facts})


def test_layers(
    root: Path,
    layers: Sequence[str],
    container: str,
    env: Mapping[str, str],
    report: Path,
) -> tuple[Outcome, ...]:
    """Run the tests of some layers, in order, and return one outcome a layer.

    `report` is where pytest writes its JUnit file.  A layer without tests has
    not passed: it is `not run`.  The outcomes' key is `layer_key`.
    """
    folders = [f"{FOLDER}/{layer}" for layer in layers if (root / FOLDER / layer).is_dir()]
    start = time.monotonic()
    cases: list[tuple[str, str, str, float]] = []
    output = ""
    if folders:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.unlink(missing_ok=True)
        argv = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"),
            *("--rootdir", str(root), "--confcutdir", str(root / FOLDER)),
            *("--hosts", f"docker://{container}", f"--junit-xml={report}"),
            *(str(root / folder) for folder in folders),
        ]
        code, output = _run(argv, root, env)
        cases = _cases(report)
        is_told = any(case[1] == "fail" and case[0] in layers for case in cases)
        if not report.is_file() or (code != 0 and not is_told):
            # It could not even collect the tests, or it died: nothing has passed then.
            failed = (layers[0], "fail", output.strip()[-2000:], time.monotonic() - start)
            cases = [failed]
    return tuple(_outcome(root, layer, [c for c in cases if c[0] == layer]) for layer in layers)


def _run(argv: Sequence[str], root: Path, env: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the exit code and what was printed; no code where it did not end in time."""
    echo(argv)
    try:
        done = subprocess.run(
            argv,
            cwd=root,
            env={**os.environ, **env, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"the tests did not end within {TIMEOUT:.0f} s"
    return done.returncode, f"{done.stdout}{done.stderr}"


def _cases(report: Path) -> list[tuple[str, str, str, float]]:
    """Return layer, outcome, text and seconds of each test case in a JUnit file."""
    if not report.is_file():
        return []
    found = []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        # What can't even be collected has no class: its name is that of the module.
        parts = (case.get("classname") or case.get("name") or "").split(".")
        layer = parts[parts.index("layers") + 1] if "layers" in parts else ""
        outcome, text = "pass", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, text = "fail", f"{case.get('name')}: {(child.text or '').strip()[-1500:]}"
            elif child.tag == "skipped":
                outcome, text = "not run", f"{case.get('name')}: {child.get('message')}"
        found.append((layer, outcome, text, float(case.get("time") or 0)))
    return found


def _outcome(root: Path, layer: str, cases: Sequence[tuple[str, str, str, float]]) -> Outcome:
    counts = Counter(outcome for _, outcome, _, _ in cases)
    texts = [text for _, _, text, _ in cases if text]
    said = ", ".join(f"{counts[o]} {w}" for o, w in _WORDS.items() if counts[o]) or "no tests"
    if counts["fail"]:
        verdict = "fail"
    else:
        verdict = "pass" if counts["pass"] and not counts["not run"] else "not run"
    return Outcome(
        name=f"layer {layer}",
        verdict=verdict,  # type: ignore[arg-type]  # one of the three words above
        detail="\n".join([said, *texts]),
        seconds=round(sum(seconds for *_, seconds in cases), 2),
        key=layer_key(root, layer),
    )


_WORDS = {"pass": "passed", "fail": "failed", "not run": "not run"}
