"""What a bench measures, and what follows from it: pure values and functions."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from strata.oci import LayerBlob

Unit = Literal["s", "bytes"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: the field of `Measured` that it shows, its text and its unit."""

    field: str
    text: str
    unit: Unit


ROWS = (
    Row(field="cold", text="cold build", unit="s"),
    Row(field="unchanged", text="nothing changed", unit="s"),
    Row(field="changed", text="one line of Jupyter's changed", unit="s"),
    Row(field="pull", text="to pull", unit="bytes"),
    Row(field="update", text="to pull after that change", unit="bytes"),
    Row(field="unpacked", text="unpacked", unit="bytes"),
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way of making the same image; without a `dockerfile` it is strata itself.

    `choices` say what was decided for it, so that a reader can judge whether
    the comparison is fair.
    """

    name: str
    title: str
    dockerfile: str
    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run of a recipe took: times in seconds, sizes in bytes.

    `pull` and `unpacked` are those of all layers together, base included;
    `update` is what somebody pulls who has the image from before the change.
    """

    cold: float
    unchanged: float
    changed: float
    pull: int
    update: int
    unpacked: int


def measured(
    *,
    cold: float,
    unchanged: float,
    changed: float,
    before: Sequence[LayerBlob],
    after: Sequence[LayerBlob],
) -> Measured:
    """Put together the times (seconds) and the layers before and after the change."""
    return Measured(
        cold=cold,
        unchanged=unchanged,
        changed=changed,
        pull=sum(layer.compressed for layer in before),
        update=bytes_to_update(before, after),
        unpacked=sum(layer.unpacked for layer in before),
    )


def bytes_to_update(before: Collection[LayerBlob], after: Collection[LayerBlob]) -> int:
    """Return the compressed bytes of the layers that are not there yet, each counted once."""
    held = {layer.digest for layer in before}
    return sum({a.digest: a.compressed for a in after if a.digest not in held}.values())


def rotated(recipes: Sequence[Recipe], repeat: int) -> tuple[Recipe, ...]:
    """Return the order of a repeat (from 0): each recipe is first, middle and last in turn."""
    first = repeat % len(recipes)
    return (*recipes[first:], *recipes[:first])


def value(runs: Sequence[Measured], row: Row) -> float:
    """Return the median over the runs of what a row shows, in its unit."""
    return float(median(getattr(run, row.field) for run in runs))


def ratio(runs: Sequence[Measured], reference: Sequence[Measured], row: Row) -> float:
    """Return how many times as much these runs took as the reference did."""
    return value(runs, row) / value(reference, row)


def differences(contents: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return, a line a recipe, which packages it has or lacks beside the first one."""
    (reference, wanted), *others = contents.items()
    lines = []
    for name, found in others:
        more, less = sorted(set(found) - set(wanted)), sorted(set(wanted) - set(found))
        if more or less:
            signed = [*(f"+{package}" for package in more), *(f"-{package}" for package in less)]
            lines.append(f"{name} beside {reference}: {' '.join(signed)}")
    return tuple(lines)
