"""Checks built images: their layers' tests, their facts, their training check."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from strata.check.beside import run_beside
from strata.check.container import idle_container, remove_orphans
from strata.check.facts import FactError, read_facts
from strata.check.layers import check_key, test_layers
from strata.check.options import Training
from strata.check.training import NAME as TRAINING
from strata.check.training import check_training, training_key
from strata.errors import LayerTestError, Problem, TrainingCheckError
from strata.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from docker.models.containers import Container

    from strata.engine import Engine
    from strata.plan import PlannedImage
    from strata.record import ImageRecord
    from strata.store import Store

__all__ = ["check_image", "raise_failures", "remove_orphans", "run_beside"]

# Training checks take all cores or GPUs, and measure: one at a time, beside the layers' tests
# of another image.
_TRAINING = threading.Lock()
LAYER = "layer "  # how the name of a layer's outcome begins


def check_image(
    root: Path,
    engine: Engine,
    store: Store,
    image: PlannedImage,
    earlier: Iterable[ImageRecord],
    *,
    nproc: str,
    gpus: str,
    force: bool,
    report: Path,
    nodes: int = 1,
) -> tuple[tuple[Outcome, ...], dict[str, str]]:
    """Run what has not passed yet for this image's digest; return outcomes and facts.

    What training wrote is kept beside `report`, in a folder of its name.  `earlier`
    are records of the very same image digest, of any image name: a
    check that passed there with the same tests is not repeated unless `force`.
    """
    earlier = () if force else tuple(earlier)
    keys = {f"{LAYER}{s.layer.name}": check_key(root, s.layer) for s in image.step.path()}
    outcomes: dict[str, Outcome] = {}
    for name, key in keys.items():
        outcomes |= _known(earlier, name, key)
    todo = [name for name in keys if name not in outcomes]
    facts = _known_facts(earlier, keys)
    if todo or not facts:
        facts, fresh = _test_in_container(
            root, engine, store, image, todo=todo, gpus=gpus, report=report
        )
        outcomes |= {name: replace(outcome, key=keys[name]) for name, outcome in fresh.items()}
    if TRAINING in image.checks:
        how = Training(nproc=nproc, nodes=nodes, gpus=gpus)
        outcomes |= _known(earlier, TRAINING, training_key(how))
        if TRAINING not in outcomes:
            with _TRAINING:
                logs = report.with_suffix("")
                outcomes[TRAINING] = check_training(store.sdk, image.step.ref, how, logs)
    return tuple(outcomes[name] for name in (*keys, TRAINING) if name in outcomes), facts


def raise_failures(outcomes: Mapping[str, Iterable[Outcome]]) -> None:
    """Raise for the checks that failed, by image reference.

    Layer tests come first, as an image that fails them need not train:
    `LayerTestError`, else `TrainingCheckError`.
    """
    failed = [(ref, o) for ref, found in outcomes.items() for o in found if o.verdict == "fail"]
    layer_tests = [(ref, o) for ref, o in failed if o.name != TRAINING]
    error = LayerTestError if layer_tests else TrainingCheckError
    problems = [
        Problem(
            where=f"{ref}, {outcome.name}",
            what=outcome.detail,
            fix=f"tests/layers/{outcome.name.removeprefix(LAYER)} holds the tests"
            if outcome.name != TRAINING
            else f"docker run --rm --shm-size 1g {ref} ddp-check shows the check by itself",
        )
        for ref, outcome in layer_tests or failed
    ]
    if problems:
        raise error(*problems)


def _test_in_container(
    root: Path,
    engine: Engine,
    store: Store,
    image: PlannedImage,
    *,
    todo: Sequence[str],
    gpus: str,
    report: Path,
) -> tuple[dict[str, str], dict[str, Outcome]]:
    """Return the facts, and the outcomes by name, of one container of the image."""
    import docker.errors  # noqa: PLC0415 - slow to import

    facts: dict[str, str] = {}
    outcomes: dict[str, Outcome] = {}
    try:
        with idle_container(store.sdk, image.step.ref, gpus) as container:
            try:
                facts = read_facts(container, image.step)
            except FactError as broken:
                outcomes = _failure(broken.layer, str(broken))
            layers = [name.removeprefix(LAYER) for name in todo]
            for outcome in test_layers(root, layers, str(container.name), engine.env, report):
                if outcome.verdict == "fail" or outcome.name not in outcomes:
                    outcomes[outcome.name] = outcome
            outcomes = {name: _blame(outcome, container) for name, outcome in outcomes.items()}
    except docker.errors.APIError as refused:
        reason = f"the engine refused the test container: {refused.explanation or refused}"
        outcomes = _failure(image.step.layer.name, reason)
    return facts, outcomes


def _failure(layer: str, reason: str) -> dict[str, Outcome]:
    name = f"{LAYER}{layer}"
    return {name: Outcome(name=name, verdict="fail", detail=reason, seconds=0.0, key="")}


def _known_facts(earlier: Iterable[ImageRecord], keys: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a record that was asked for all of these, or none."""
    for record in earlier:
        if all(record.passed(name, key) for name, key in keys.items()):
            return dict(record.facts)
    return {}


def _known(earlier: Iterable[ImageRecord], name: str, key: str) -> dict[str, Outcome]:
    found = (record.passed(name, key) for record in earlier)
    return next(({name: outcome} for outcome in found if outcome), {})


def _blame(outcome: Outcome, container: Container) -> Outcome:
    """Say so where a container died under its tests: then they tell nothing of the layer."""
    if outcome.verdict != "fail":
        return outcome
    import docker.errors  # noqa: PLC0415 - slow to import

    try:
        container.reload()
        state = container.attrs["State"]
        if state["Running"]:
            return outcome
        reason = "out of memory" if state["OOMKilled"] else f"exit code {state['ExitCode']}"
    except docker.errors.NotFound:
        reason = "somebody removed it"
    detail = f"the test container died in the middle ({reason})\n{outcome.detail}"
    return Outcome(
        name=outcome.name,
        verdict="fail",
        detail=detail,
        seconds=outcome.seconds,
        key=outcome.key,
    )
