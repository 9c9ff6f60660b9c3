"""Checking an image: what is run again, what failures become."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import APIError, NotFound

import strata.check
from strata.check import check_image, raise_failures
from strata.check.layers import layer_key
from strata.check.training import training_key
from strata.engine import Engine
from strata.errors import LayerTestError, TrainingCheckError
from strata.record import ImageRecord, Outcome
from strata.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from strata.check.options import Training
    from strata.record import Verdict
    from tests.projects import SmallProject

ENGINE = Engine(host="unix:///nowhere", origin="DOCKER_HOST")
LAYERS = ("10-one", "20-two", "40-top")


def outcome(name: str, verdict: Verdict = "pass", key: str = "k") -> Outcome:
    """Return one check's outcome."""
    return Outcome(name=name, verdict=verdict, detail=f"{name} {verdict}", seconds=1.0, key=key)


class Container:
    """A container as far as checks look at one."""

    name = "strata-check-1"

    def __init__(self) -> None:
        """Run, and answer every fact with `red`."""
        self.attrs = {"State": {"Running": True, "OOMKilled": False, "ExitCode": 0}}
        self.answer: tuple[int, bytes] | APIError = (0, b"red\n")
        self.is_gone = False
        self.removed: list[dict[str, bool]] = []
        self.refuses: APIError | None = None

    def start(self) -> None:
        """Start, unless the engine refuses."""
        if self.refuses:
            raise self.refuses

    def exec_run(self, argv: Sequence[str]) -> tuple[int, bytes]:
        """Answer a fact's command."""
        assert argv[:2] == ["sh", "-c"]
        if isinstance(self.answer, APIError):
            raise self.answer
        return self.answer

    def reload(self) -> None:
        """Look again, unless it is gone."""
        if self.is_gone:
            raise NotFound("no such container")

    def remove(self, **options: bool) -> None:
        """Remember that it was removed."""
        self.removed.append(options)
        if self.is_gone:
            raise NotFound("no such container")


class Check:
    """`check_image` with a container of ours and tests that end as we say."""

    def __init__(self, project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take the image with the training check; the environment is left out."""
        project.leave_out("30-env")
        self.root = project.root
        (self.image,) = project.plan("whole").images
        self.container = Container()
        self.verdicts: dict[str, Verdict] = {}
        self.tested: list[str] = []
        self.trained = 0
        self.trains: Verdict = "pass"
        self.force = False
        self.nodes = 1
        monkeypatch.setattr(strata.check, "test_layers", self._test)
        monkeypatch.setattr(strata.check, "check_training", self._train)

    def _test(self, root: object, layers: Sequence[str], *_: object) -> tuple[Outcome, ...]:
        self.tested += layers
        return tuple(
            outcome(f"layer {n}", self.verdicts.get(n, "pass"), layer_key(self.root, n))
            for n in layers
            if root
        )

    def _train(self, _sdk: object, _image: str, how: Training, logs: Path) -> Outcome:
        assert logs == self.root / "r"
        self.trained += 1
        trained = outcome("ddp", self.trains, training_key(how))
        return replace(trained, plot=f"checks/r/plot-{self.trained}.svg")

    def __call__(self, *earlier: ImageRecord) -> tuple[dict[str, Outcome], dict[str, str]]:
        """Check the image; return outcomes by name, and facts."""
        containers = SimpleNamespace(create=lambda *_, **__: self.container)
        sdk: Any = SimpleNamespace(containers=containers)
        outcomes, facts = check_image(
            self.root,
            ENGINE,
            Store(sdk),
            self.image,
            earlier,
            nproc="",
            gpus="none",
            force=self.force,
            report=self.root / "r.xml",
            nodes=self.nodes,
        )
        return {o.name: o for o in outcomes}, facts


@pytest.fixture
def check(project: SmallProject, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Return the check of an image of three layers, all of which pass."""
    return Check(project, monkeypatch)


def record(outcomes: dict[str, Outcome], facts: dict[str, str]) -> ImageRecord:
    """Return the record of a check."""
    return ImageRecord(
        image="whole",
        variant="embedded",
        ref="strata/whole:embedded",
        input_digest="sha256:1",
        digest="sha256:2",
        layers=(),
        facts=facts,
        checks=tuple(outcomes.values()),
        not_run={},
        build_seconds=0.0,
        recorded="",
    )


def test_every_layer_is_tested_in_order_then_the_image_trains(check: Check) -> None:
    """The container is removed, and the facts are what it said."""
    outcomes, facts = check()
    assert list(outcomes) == [*(f"layer {name}" for name in LAYERS), "ddp"]
    assert {o.verdict for o in outcomes.values()} == {"pass"}
    assert facts == {"colour": "red"}
    assert check.container.removed == [{"force": True, "v": True}]


def test_a_command_may_tell_several_facts(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line of what it prints is the fact of the name that stands there in its key."""
    project.replace("layers/10-one/layer.toml", "colour =", '"colour  size" =')
    check = Check(project, monkeypatch)
    check.container.answer = (0, b"red\nsmall and round\n")
    assert check()[1] == {"colour": "red", "size": "small and round"}


@pytest.mark.parametrize("said", [b"red\nsmall\n", b"\n"])
def test_a_fact_has_one_line(check: Check, said: bytes) -> None:
    """A command that prints more or fewer lines than it has names fails its layer."""
    check.container.answer = (0, said)
    outcomes, facts = check()
    assert facts == {}
    (broken,) = (o for o in outcomes.values() if o.verdict == "fail")
    count = len(said.split())
    assert broken.name == "layer 10-one"
    assert broken.detail == f"the fact `colour` has {count} lines: {said.decode().strip()}"


def test_what_passed_is_not_run_again(check: Check) -> None:
    """For the same image and the same tests, the earlier outcome stands, its plot included."""
    first = check()
    again = check(record(*first))
    assert again == first
    assert again[0]["ddp"].plot == "checks/r/plot-1.svg"
    assert (check.tested, check.trained) == (list(LAYERS), 1)


def test_another_number_of_nodes_is_another_check(check: Check) -> None:
    """What passed on one node says nothing of two."""
    first = record(*check())
    check.nodes = 2
    check(first)
    assert (check.tested, check.trained) == (list(LAYERS), 2)


def test_force_runs_everything_again(check: Check) -> None:
    """Whatever passed."""
    first = check()
    check.force = True
    check(record(*first))
    assert (check.tested, check.trained) == ([*LAYERS, *LAYERS], 2)


@pytest.mark.parametrize("verdict", ["fail", "not run"])
def test_what_did_not_pass_is_run_again(check: Check, verdict: Verdict) -> None:
    """It alone."""
    outcomes, facts = check()
    outcomes["layer 20-two"] = replace(outcomes["layer 20-two"], verdict=verdict)
    check.tested.clear()
    check(record(outcomes, facts))
    assert (check.tested, check.trained) == (["20-two"], 1)


def test_changed_tests_are_run_again(check: Check) -> None:
    """Only those of the layer whose tests changed."""
    first = check()
    check.tested.clear()
    file = check.root / "tests/layers/40-top/test_top.py"
    file.parent.mkdir(parents=True)
    file.touch()
    check(record(*first))
    assert check.tested == ["40-top"]


def test_a_changed_fact_is_asked(project: SmallProject, check: Check) -> None:
    """Its layer is checked again, and what it says now is kept; no other layer is."""
    first = record(*check())
    project.replace("layers/10-one/layer.toml", "cat /colour", "cat /paint")
    (check.image,) = project.plan("whole").images
    check.container.answer = (0, b"blue\n")
    check.tested.clear()
    outcomes, facts = check(first)
    assert (check.tested, check.trained) == (["10-one"], 1)
    assert facts == {"colour": "blue"}
    # Of two records of the same image, the one with the facts of now is asked for them.
    assert check(first, record(outcomes, facts))[1] == {"colour": "blue"}
    assert check.tested == ["10-one"]


def test_an_image_without_known_facts_is_asked(check: Check) -> None:
    """A record that was made without checks knows none."""
    outcomes, _ = check()
    _, facts = check(record(outcomes, {}))
    assert facts == {"colour": "red"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((1, b"cat: /colour: no such file"), "ended with 1: cat: /colour: no such file"),
        (APIError("409", explanation="container is not running"), "container is not running"),
    ],
)
def test_a_fact_that_cannot_be_asked_is_its_layers_failure(
    check: Check, answer: tuple[int, bytes] | APIError, said: str
) -> None:
    """It is an outcome beside the others', and no facts are kept."""
    check.container.answer = answer
    outcomes, facts = check()
    assert facts == {}
    assert {name: o.verdict for name, o in outcomes.items()} == {
        "layer 10-one": "fail",
        "layer 20-two": "pass",
        "layer 40-top": "pass",
        "ddp": "pass",
    }
    assert f"the fact `colour`" in outcomes["layer 10-one"].detail  # noqa: F541
    assert said in outcomes["layer 10-one"].detail


def _exited(container: Container) -> str:
    container.attrs["State"] = {"Running": False, "OOMKilled": False, "ExitCode": 137}
    return "exit code 137"


def _out_of_memory(container: Container) -> str:
    container.attrs["State"] = {"Running": False, "OOMKilled": True, "ExitCode": 137}
    return "out of memory"


def _gone(container: Container) -> str:
    container.is_gone = True
    return "somebody removed it"


@pytest.mark.parametrize("die", [_exited, _out_of_memory, _gone])
def test_a_container_that_died_is_blamed(check: Check, die: Callable[[Container], str]) -> None:
    """Not the layer whose tests then failed; what passed before has passed."""
    reason = die(check.container)
    check.verdicts["20-two"] = "fail"
    outcomes, _ = check()
    assert outcomes["layer 10-one"].verdict == "pass"
    assert outcomes["layer 20-two"].detail == (
        f"the test container died in the middle ({reason})\nlayer 20-two fail"
    )


def test_a_container_that_does_not_start_is_a_failure(check: Check) -> None:
    """The engine's reason is told, and the container is removed all the same."""
    check.container.refuses = APIError("400", explanation='exec: "sleep": not found')
    outcomes, _ = check()
    assert outcomes["layer 40-top"].verdict == "fail"
    assert 'exec: "sleep": not found' in outcomes["layer 40-top"].detail
    assert len(check.container.removed) == 1


def test_an_interrupt_removes_the_container(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """And goes on to whoever handles it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(strata.check, "test_layers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        check()
    assert len(check.container.removed) == 1


def test_no_failure_raises_nothing() -> None:
    """Neither does what was not run: it is shown."""
    raise_failures({"a": [outcome("layer 10-one"), outcome("layer 20-two", "not run")]})


def test_failed_layer_tests_come_before_failed_training() -> None:
    """All of them are told at once, each with its image."""
    failures = {
        "strata/a:x": [outcome("layer 10-one", "fail"), outcome("ddp", "fail")],
        "strata/b:x": [outcome("layer 10-one", "fail")],
    }
    with pytest.raises(LayerTestError) as failure:
        raise_failures(failures)
    assert failure.value.exit_code == 5
    places = [problem.where for problem in failure.value.problems]
    assert places == ["strata/a:x, layer 10-one", "strata/b:x, layer 10-one"]


def test_failed_training_alone_has_its_own_code() -> None:
    """With the command that shows it by itself."""
    with pytest.raises(TrainingCheckError) as failure:
        raise_failures({"strata/a:x": [outcome("layer 10-one"), outcome("ddp", "fail")]})
    assert failure.value.exit_code == 6
    assert "docker run --rm --shm-size 1g strata/a:x ddp-check" in str(failure.value)
