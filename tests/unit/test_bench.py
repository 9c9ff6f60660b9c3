"""What a bench's figures are made of; the runs themselves need Docker."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from strata.bench import run_bench, write_bench
from strata.bench.builds import CHANGED_LAYER, StrataBuild
from strata.bench.content import demand_same
from strata.bench.machine import Machine, processor_of
from strata.bench.measure import Bench, Run
from strata.bench.model import (
    ROWS,
    Measured,
    bytes_to_update,
    differences,
    measured,
    ratio,
    rotated,
    value,
)
from strata.bench.recipes import PIP, RECIPES, SEED, STRATA, pins_by_category
from strata.bench.report import cells, document
from strata.embedded.pins import Pin
from strata.engine import Engine
from strata.errors import BuildError, DefinitionError, HostError, LockError
from strata.oci import LayerBlob
from strata.workspace import Workspace

if TYPE_CHECKING:
    from strata.plan import Plan

ROOT = Path(__file__).parents[2]
MACHINE = Machine(
    processor="P", cores=2, memory=1, system="Linux", engine="26.1.5", buildx="v0.13.1"
)
BY_FIELD = {row.field: row for row in ROWS}


def took(seconds: float, size: int) -> Measured:
    """Return a run in which all times and all sizes are the same."""
    return Measured(
        cold=seconds, unchanged=seconds, changed=seconds, pull=size, update=size, unpacked=size
    )


def layer(name: str, compressed: int, unpacked: int = 0) -> LayerBlob:
    """Return a layer of that digest."""
    return LayerBlob(digest=f"sha256:{name}", compressed=compressed, unpacked=unpacked)


def bench_of(**runs: tuple[Measured, ...]) -> Bench:
    """Return a bench with these runs, by the recipe's name."""
    by_name = {recipe.name: recipe for recipe in RECIPES}
    made = [
        Run(recipe=by_name[name], measured=run, content=frozenset({"a=1"}), machine=MACHINE)
        for name, measured_runs in runs.items()
        for run in measured_runs
    ]
    return Bench(runs=tuple(made), started="2026-11-01T00:00:00Z", load_before=0.5)


def pin(project: str) -> Pin:
    """Return a pin of that project."""
    return Pin(project=project, version="1", extras=frozenset(), sha256="0" * 64)


def plan_of(**categories: str) -> Plan:
    """Return as much of a plan as the recipes read: the conda names of each category."""
    steps = [
        SimpleNamespace(
            layer=SimpleNamespace(category=category),
            packages=[SimpleNamespace(name=name) for name in names.split()],
        )
        for category, names in categories.items()
    ]
    variant = SimpleNamespace(folder=Path("locks/embedded"))
    images = [SimpleNamespace(ref="strata/lab:embedded")]
    return cast("Plan", SimpleNamespace(steps=steps, variant=variant, images=images))


def debian_packages(text: str) -> list[str]:
    """Return the packages that a Dockerfile installs, as a layer or as a plain file names them."""
    block = re.search(r"packages=\((.*?)\)\n", text, re.DOTALL) or re.search(
        r"--no-install-recommends \\\n(.*?)(?:&&|\nlocaledef)", text, re.DOTALL
    )
    assert block is not None
    lines = (re.sub(r"#.*", "", line).strip(" \\") for line in block[1].splitlines())
    return [line for line in lines if line]


def test_only_layers_that_are_not_there_are_pulled_again() -> None:
    """An update costs the layers whose digest is new, and each of them once."""
    before = [layer("base", 100), layer("env", 50)]
    after = [layer("base", 100), layer("new", 7), layer("new", 7), layer("top", 2)]
    assert bytes_to_update(before, after) == 9


def test_an_image_is_the_sum_of_its_layers() -> None:
    """Bytes to pull and unpacked bytes are those of all layers before the change."""
    run = measured(
        cold=3,
        unchanged=1,
        changed=2,
        before=[layer("a", 10, 30), layer("b", 5, 9)],
        after=[layer("a", 10, 30), layer("c", 6, 9)],
    )
    assert run == Measured(cold=3, unchanged=1, changed=2, pull=15, update=6, unpacked=39)


def test_each_recipe_is_first_once() -> None:
    """In as many repeats as there are recipes, each has each place in the order once."""
    orders = [rotated(RECIPES, number) for number in range(len(RECIPES))]
    assert orders[0] == RECIPES
    for place in zip(*orders, strict=True):
        assert set(place) == set(RECIPES)


def test_the_median_is_shown() -> None:
    """One slow run of three does not count."""
    runs = [took(1, 1), took(90, 90), took(2, 2)]
    assert value(runs, BY_FIELD["cold"]) == 2


def test_a_ratio_says_how_many_times_stratas_a_figure_is() -> None:
    """Three times the seconds of strata reads 3, half its bytes reads 0.5."""
    mine = [Measured(cold=30, unchanged=1, changed=1, pull=5, update=1, unpacked=1)]
    assert ratio(mine, [took(10, 10)], BY_FIELD["cold"]) == 3
    assert ratio(mine, [took(10, 10)], BY_FIELD["pull"]) == 0.5


def test_the_results_hold_every_run_and_its_ratios() -> None:
    """results.json has medians, single runs and ratios of every recipe, strata's ratio being 1."""
    bench = bench_of(
        strata=(took(1, 100), took(2, 100), took(3, 100)),
        seed=(took(6, 400), took(4, 400), took(5, 400)),
        pip=(took(1, 50), took(1, 50), took(1, 50)),
    )
    found = json.loads(json.dumps(document(bench), allow_nan=False))
    assert found["repeats"] == 3
    assert found["machine"]["cores"] == 2
    assert found["load_before"] == 0.5
    seed = found["recipes"]["seed"]
    assert [run["cold"] for run in seed["runs"]] == [6, 4, 5]
    assert seed["median"]["cold"] == 5
    assert seed["ratio"] == {**dict.fromkeys(("cold", "unchanged", "changed"), 2.5)} | (
        dict.fromkeys(("pull", "update", "unpacked"), 4)
    )
    assert found["recipes"]["pip"]["ratio"]["pull"] == 0.5
    assert set(found["recipes"]["strata"]["ratio"].values()) == {1}


def test_bytes_are_whole_and_seconds_are_not() -> None:
    """Of an even number of runs the median lies between two: half a byte is not kept."""
    two = (took(1, 1), took(2, 2))
    found = document(bench_of(strata=two, seed=two, pip=two))["recipes"]["strata"]["median"]
    assert found["cold"] == 1.5
    assert isinstance(found["pull"], int)


def test_a_cell_shows_the_figure_and_the_ratio_to_strata() -> None:
    """Times are seconds, sizes are megabytes, and strata itself has no ratio."""
    bench = bench_of(
        strata=(took(2, 10_000_000),), seed=(took(5, 25_000_000),), pip=(took(1, 5_000_000),)
    )
    assert cells(bench, BY_FIELD["cold"]) == ("2.0 s", "5.0 s (2.50x)", "1.0 s (0.50x)")
    assert cells(bench, BY_FIELD["pull"]) == ("10.0 MB", "25.0 MB (2.50x)", "5.0 MB (0.50x)")


def test_results_are_written_in_one_piece(tmp_path: Path) -> None:
    """Nothing but the results is left in their folder."""
    target = tmp_path / "bench" / "results.json"
    bench = bench_of(strata=(took(1, 1),), seed=(took(1, 1),), pip=(took(1, 1),))
    write_bench(target, bench)
    assert [file.name for file in target.parent.iterdir()] == ["results.json"]
    assert json.loads(target.read_text()) == document(bench)


def test_images_with_other_packages_are_not_compared() -> None:
    """A package that one image has more, lacks, or has in another version is named."""
    contents = {"strata": ["a==1", "git=2"], "seed": ["a==1", "git=2"], "pip": ["a==2", "git=2"]}
    assert differences(contents) == ("pip beside strata: +a==2 -a==1",)
    with pytest.raises(BuildError, match=r"pip beside strata: \+a==2 -a==1") as failure:
        demand_same(contents)
    assert failure.value.exit_code == 4
    demand_same({"strata": ["a==1"], "seed": ["a==1"]})


def test_wheels_are_sorted_by_the_layer_that_installs_them() -> None:
    """A project is found by conda's name for it, and stands in its layer's requirements."""
    plan = plan_of(pytorch="python pytorch numpy", jupyter="jupyterlab")
    found = pins_by_category(
        plan, [pin("jupyterlab"), pin("numpy"), pin("torch")], {"torch": "pytorch"}
    )
    assert found == {"pytorch": (pin("numpy"), pin("torch")), "jupyter": (pin("jupyterlab"),)}


def test_a_wheel_that_no_layer_installs_is_refused() -> None:
    """The pip recipes would hold more than strata's image does."""
    with pytest.raises(LockError, match="left-pad is in no layer of strata/lab:embedded"):
        pins_by_category(plan_of(pytorch="numpy"), [pin("numpy"), pin("left-pad")], {})


@pytest.mark.parametrize("recipe", [SEED, PIP], ids=lambda recipe: recipe.name)
def test_the_recipes_install_the_base_layers_debian_packages(recipe: Any) -> None:  # noqa: ANN401 - as pytest passes it
    """Each Dockerfile of the bench names the packages of layers/10-base, no more and no less."""
    wanted = debian_packages((ROOT / "layers/10-base/Dockerfile").read_text())
    assert "tini" in wanted
    assert debian_packages((ROOT / recipe.dockerfile).read_text()) == wanted


def test_the_changed_line_goes_into_a_clone(tmp_path: Path) -> None:
    """The file that the bench changes exists in the project; a clone without it is refused."""
    assert (ROOT / CHANGED_LAYER).is_file()
    clone = Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")
    build = StrataBuild(clone=clone, engine=Engine(host="unix:///none", origin="private"))
    with pytest.raises(BuildError, match="is not there"):
        build.change()
    file = tmp_path / CHANGED_LAYER
    file.parent.mkdir(parents=True)
    file.write_text("c = 1\n")
    build.change()
    assert file.read_text() == "c = 1\n# changed by the bench\n"


def test_no_repeat_is_no_bench(tmp_path: Path) -> None:
    """--repeat 0 is a wrong argument, not an empty table."""
    with pytest.raises(DefinitionError, match="--repeat"):
        run_bench(Workspace(root=tmp_path, build=tmp_path, cache=tmp_path), 0)


def test_without_root_there_is_no_engine_to_measure_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bench says so, and exits with 8, before it fetches anything."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="only root") as failure:
        run_bench(Workspace(root=tmp_path, build=tmp_path / "b", cache=tmp_path / "c"), 1)
    assert failure.value.exit_code == 8
    assert not (tmp_path / "b").exists()


def test_the_processor_is_named_where_the_kernel_names_it() -> None:
    """x86's /proc/cpuinfo has a model name, Arm's has none."""
    assert processor_of("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == "Some CPU @ 2 GHz"
    assert processor_of("processor\t: 0\nCPU part\t: 0xd0c\n") == ""


def test_strata_is_the_reference() -> None:
    """Strata is the recipe without a Dockerfile, and comes first."""
    assert [recipe.name for recipe in RECIPES if not recipe.dockerfile] == [STRATA.name]
    assert RECIPES[0] == STRATA
