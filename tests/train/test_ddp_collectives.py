"""Each collective's comparison, with a backend that gets one of them wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Trainer

# One process is a group of one rank; what a collective has left is then spoilt by
# one value, and the check must say where.
SCRIPT = """
import json, sys, tempfile
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from torch import distributed
from ddp import collectives, trials
from ddp.arguments import parse
from ddp.context import Context
from ddp.errors import PhaseFailed
from ddp.journal import Journal
from ddp.phases import find_spec
from ddp.plan import Machine, make_plan

torch.set_num_threads(1)
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
plan = make_plan(parse(["--nproc", "1"]), Machine(0, 2, False, True), {"nvml": {"links": []}})
right = dict(trials.TRIALS)

def spoilt(make):
    def with_error(values):
        trial = make(values)
        def call():
            trial.call()
            trial.result[0] += 1
        return trials.Trial(call, trial.result, trial.expected, trial.size_bytes)
    return with_error

def spoilt_at(make, dtype, size):
    with_error = spoilt(make)
    return lambda values: (
        with_error if (values.dtype, values.size_bytes) == (dtype, size) else make)(values)

compared = []

def noted(make):
    def noting(values):
        compared.append((values.dtype, values.size_bytes))
        return make(values)
    return noting

def lacking(make, text):
    def without(values):
        trial = make(values)
        def call():
            raise RuntimeError(text)
        return trials.Trial(call, trial.result, trial.expected, trial.size_bytes)
    return without

with tempfile.TemporaryDirectory() as name:
    context = Context(0, 0, plan, torch.device("cpu"), Journal(Path(name) / "rank-0.jsonl"),
                      Path(name), None)
    def attempt(label=None, change=None, context=context):
        trials.TRIALS.clear()
        trials.TRIALS.update(right)
        if label is not None:
            operation, make = right[label]
            trials.TRIALS[label] = (operation, change(make))
        try:
            finding = collectives.check_collectives(context)
        except (PhaseFailed, RuntimeError) as failed:
            return f"{type(failed).__name__}: {failed}"
        return dict(finding.data)
    print(json.dumps({
        "right": attempt("all_to_all", noted),
        "compared": compared,
        **{label: attempt(label, spoilt) for label in right},
        **{fault: attempt(context=replace(context, fault=fault))
           for fault in find_spec("collectives").faults},
        "no reduce_scatter": attempt(
            "reduce_scatter", lambda make: lacking(make, "gloo does not support it")),
        "no all_reduce": attempt(
            "all_reduce (sum)", lambda make: lacking(make, "gloo does not support it")),
        **{f"{size} of {dtype}": attempt(
               "all_reduce (sum)", lambda make: spoilt_at(make, dtype, size))
           for dtype, size in (("int64", 16 << 20), ("bfloat16", 1024))},
        "broken": attempt("reduce_scatter", lambda make: lacking(make, "connection reset")),
    }))
"""
LABELS = [
    "all_reduce (sum)",
    "all_reduce (max)",
    "broadcast",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
]


@pytest.fixture(scope="module")
def found(trainer: Trainer) -> dict[str, object]:
    """Run the phase with each collective wrong, and with some missing, in one process."""
    result = trainer.python("-c", SCRIPT, "{train}")
    assert result.code == 0, result.err
    answers: dict[str, object] = json.loads(result.out)
    return answers


def test_what_is_right_is_timed_at_every_size(found: dict[str, object]) -> None:
    """Six collectives at five sizes, and nothing is missing with this gloo."""
    right = found["right"]
    assert isinstance(right, dict)
    assert right["unsupported"] == []
    assert len(right["bandwidth"]) == 30
    assert {row["size_bytes"] for row in right["bandwidth"]} == {
        1 << n for n in (10, 12, 16, 20, 24)
    }
    assert right["limits"]["memory_copy_gb_per_s"] > 0


@pytest.mark.parametrize("label", LABELS)
def test_one_wrong_value_is_found_and_told(found: dict[str, object], label: str) -> None:
    """With the collective, the type, the place, and both values."""
    assert str(found[label]).startswith(f"PhaseFailed: {label} of float32 is wrong in 1 of 256")
    assert "value 0 is 2.0, expected 1.0" in str(found[label])


def test_every_type_is_compared_from_1_kib_to_16_mib(found: dict[str, object]) -> None:
    """Also those that are not timed: the smallest, an odd one, 1 MiB and the largest."""
    compared = found["compared"]
    assert isinstance(compared, list)
    sizes = {dtype: sorted(s for d, s in compared if d == dtype) for dtype, _ in compared}
    few = [1 << 10, (4 << 10) + 8, 1 << 20, 16 << 20]
    timed = [1 << 10, 4 << 10, (4 << 10) + 8, 64 << 10, 1 << 20, 16 << 20]
    assert sizes == {"float32": timed, "float16": few, "bfloat16": few, "int64": few}


@pytest.mark.parametrize(
    ("size", "dtype", "values"), [(16 << 20, "int64", 2097152), (1024, "bfloat16", 512)]
)
def test_one_wrong_value_is_found_at_either_end(
    found: dict[str, object], size: int, dtype: str, values: int
) -> None:
    """In the last type's largest message, and in a 16-bit type's smallest."""
    said = f"PhaseFailed: all_reduce (sum) of {dtype} is wrong in 1 of {values} values: value 0"
    assert str(found[f"{size} of {dtype}"]).startswith(said)


@pytest.mark.parametrize(
    ("fault", "label"),
    [
        ("wrong-sum", "all_reduce (sum)"),
        ("wrong-max", "all_reduce (max)"),
        ("wrong-all-to-all", "all_to_all"),
    ],
)
def test_an_injected_fault_is_of_the_collective_that_it_names(
    found: dict[str, object], fault: str, label: str
) -> None:
    """The last value of its first size is off by one."""
    assert str(found[fault]).startswith(f"PhaseFailed: {label} of float32 is wrong in 1 of 256")
    assert "value 255 is 57.0, expected 56.0" in str(found[fault])


def test_a_collective_that_gloo_lacks_is_told_and_no_pass(found: dict[str, object]) -> None:
    """Only some may be missing: a gloo without all_reduce fails, and so does a lost connection."""
    lacks = found["no reduce_scatter"]
    assert isinstance(lacks, dict)
    assert lacks["unsupported"] == [
        f"reduce_scatter of {dtype}" for dtype in ("float32", "float16", "bfloat16", "int64")
    ]
    assert found["no all_reduce"] == "RuntimeError: gloo does not support it"
    assert found["broken"] == "RuntimeError: connection reset"
