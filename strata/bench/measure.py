"""Runs the bench: every recipe in an engine of its own, so that cold is cold."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from strata.bench.builds import IMAGE, VARIANT, DockerfileBuild, StrataBuild
from strata.bench.content import ask_content, demand_same
from strata.bench.machine import Machine, read_machine
from strata.bench.model import measured, rotated
from strata.bench.recipes import RECIPES, lay_wheels
from strata.contexts import make_contexts
from strata.engine.private import start_private, stop_private
from strata.errors import BuildError, DefinitionError, HostError
from strata.load import load
from strata.pipeline import open_store, prepare
from strata.store import list_images
from strata.workspace import Workspace

if TYPE_CHECKING:
    from strata.bench.builds import Build
    from strata.bench.model import Measured, Recipe
    from strata.engine import Engine

BEFORE = "localhost/strata-bench/before:latest"
PARTS = ("bench", "images", "layers", "locks", "strata", "tasks.py")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of one recipe: what it took, what its image holds, where it ran."""

    recipe: Recipe
    measured: Measured
    content: frozenset[str]
    machine: Machine


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A whole bench: the runs in order, and when it was started (UTC, ISO 8601).

    `load_before` is the machine's load average in the minute before: where it is near
    the number of cores or above, the times are not those of a quiet machine.
    """

    runs: tuple[Run, ...]
    started: str
    load_before: float

    def of(self, recipe: Recipe) -> tuple[Measured, ...]:
        """Return what each run of a recipe took."""
        return tuple(run.measured for run in self.runs if run.recipe == recipe)


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """What is there before the clock starts; `base` and `laid` as in `DockerfileBuild`."""

    project: Workspace
    base: Path
    laid: Path


def run_bench(workspace: Workspace, repeat: int) -> Bench:
    """Measure every recipe `repeat` times, their order rotated in between.

    Nothing of the machine's own engine is touched, and nothing is left but the
    logs in `build/logs`.  Raises `DefinitionError` for a `repeat` below 1,
    `HostError` where no private engine can be had, `BuildError` when a recipe
    fails or makes another image than the others.
    """
    if repeat < 1:
        raise DefinitionError.at("--repeat", f"{repeat} is no number of times", "--repeat 1")
    _demand_root()
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    load_before = os.getloadavg()[0]
    runs: list[Run] = []
    workspace.build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=workspace.build) as scratch:
        prepared = _prepare(workspace, Path(scratch))
        for number in range(repeat):
            for recipe in rotated(RECIPES, number):
                logs = workspace.build / "logs" / f"bench-{recipe.name}-{number + 1}"
                runs.append(_run(recipe, prepared, Path(scratch, logs.name), logs))
                demand_same({run.recipe.name: run.content for run in runs})
    return Bench(runs=tuple(runs), started=started, load_before=load_before)


def _prepare(workspace: Workspace, folder: Path) -> _Prepared:
    """Fill the cache with wheels, channel and base, and lay out what the Dockerfiles take.

    The project is copied once, so that all runs see the same state of it.
    """
    project = _clone(workspace, folder / "project")
    plan = prepare(project, [IMAGE], VARIANT)
    contexts = make_contexts(project, plan, {step.name for step in plan.steps})
    lay_wheels(project, plan, folder / "laid")
    return _Prepared(project=project, base=contexts.base, laid=folder / "laid")


def _clone(workspace: Workspace, root: Path) -> Workspace:
    """Copy what strata reads of the project; the cache is shared."""
    layers = load(workspace.root).layers.values()
    contexts = {context.split("/")[0] for layer in layers for context in layer.contexts}
    root.mkdir(parents=True)
    for name in {*PARTS, *contexts}:
        source = workspace.root / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, root / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy2(source, root / name)
    return Workspace(root=root, build=root / "build", cache=workspace.cache)


def _run(recipe: Recipe, prepared: _Prepared, folder: Path, logs: Path) -> Run:
    """Run a recipe in a clone and an engine that has nothing in it; remove both at the end."""
    clone = _clone(prepared.project, folder)
    try:
        engine = start_private(clone)
        build = _build_of(recipe, prepared, clone, engine)
        took, content = _measure(build, engine, logs)
        machine = read_machine(engine)
    finally:
        stop_private(clone, purge=True)
        shutil.rmtree(folder)
    return Run(recipe=recipe, measured=took, content=content, machine=machine)


def _build_of(recipe: Recipe, prepared: _Prepared, clone: Workspace, engine: Engine) -> Build:
    if not recipe.dockerfile:
        return StrataBuild(clone=clone, engine=engine)
    return DockerfileBuild(
        recipe=recipe,
        dockerfile=clone.root / recipe.dockerfile,
        engine=engine,
        base=prepared.base,
        laid=prepared.laid,
        context=clone.build / "context",
    )


def _measure(build: Build, engine: Engine, logs: Path) -> tuple[Measured, frozenset[str]]:
    build.prepare()
    cold = build.build(logs.with_name(f"{logs.name}-cold.log"))
    unchanged = build.build(logs.with_name(f"{logs.name}-unchanged.log"))
    content = ask_content(engine, build.ref)
    before = _digest(engine, build.ref)
    with open_store(engine) as store:
        store.tag(build.ref, BEFORE)  # an image without a name is soon removed
        build.change()
        changed = build.build(logs.with_name(f"{logs.name}-changed.log"))
        after = _digest(engine, build.ref)
        layers = store.layers({before, after})
    took = measured(
        cold=cold,
        unchanged=unchanged,
        changed=changed,
        before=layers[before],
        after=layers[after],
    )
    if took.update == 0:
        raise BuildError.at(build.ref, "the changed line changed no layer", f"see {logs}-*.log")
    return took, content


def _digest(engine: Engine, ref: str) -> str:
    digest = list_images(engine).get(ref)
    if digest is None:
        raise BuildError.at(ref, "was built, but is not in the engine's store", "see build/logs")
    return digest


def _demand_root() -> None:
    if os.geteuid() != 0:
        raise HostError.at(
            "bench",
            "it measures in engines of its own, which only root may start",
            "run it as root: sudo -E ./inv bench",
        )
