"""Which layer a failed build is the fault of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.blame import failed_step

if TYPE_CHECKING:
    from tests.projects import SmallProject

# As buildx 0.13 writes it; only what stands in brackets and in the snippet differs.
OUTPUT = """\
#9 [{target} 1/1] ADD base.tar /
#9 CACHED

#10 [{target} 1/2] RUN <<'END' (echo...)
#10 0.430 one
#10 ERROR: process "/bin/bash -c echo" did not complete successfully: exit code: 1
------
 > [{target} 1/2] RUN <<'END' (echo...):
0.430 one
------
Dockerfile:4
--------------------
{snippet}
--------------------
ERROR: failed to solve: process "/bin/bash -c echo" did not complete successfully: exit code: 1
"""
ONE, TWO = "10-one", "10-one_20-two"
SNIPPETS = {
    ONE: "   3 |     ARG COLOUR\n   4 | >>> RUN <<'END'\n   5 | >>> echo \"$COLOUR\" > /colour\n"
    "   6 | >>> END\n   7 |     ",
    TWO: '   3 |     ARG COLOUR\n   4 | >>> RUN echo "two on $COLOUR" > /two\n   5 |     ',
}


@pytest.mark.parametrize(
    ("target", "snippet", "expected"),
    [(ONE, ONE, ONE), (TWO, TWO, TWO), (f"{TWO}_30-env_40-top", ONE, ONE)],
)
def test_the_layer_is_the_one_whose_lines_are_shown(
    project: SmallProject, target: str, snippet: str, expected: str
) -> None:
    """Whatever target a shared step is shown under."""
    output = OUTPUT.format(target=target, snippet=SNIPPETS[snippet])
    step = failed_step(output, project.plan())
    assert step is not None
    assert step.name == expected


def test_without_lines_it_is_the_target(project: SmallProject) -> None:
    """Such as where a context cannot be loaded."""
    step = failed_step(OUTPUT.format(target=TWO, snippet=""), project.plan())
    assert step is not None
    assert step.name == TWO


@pytest.mark.parametrize(
    "output",
    [
        "",
        "ERROR: no builder\n",
        OUTPUT.format(target="base", snippet="   1 | >>> FROM scratch"),
        OUTPUT.format(target=TWO, snippet="   1 | >>> FROM elsewhere"),
    ],
)
def test_nobody_is_blamed_on_a_guess(project: SmallProject, output: str) -> None:
    """Where the output names no layer of ours, none is named."""
    assert failed_step(output, project.plan()) is None
