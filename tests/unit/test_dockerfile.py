"""What is read of a Dockerfile, as BuildKit reads it."""

from __future__ import annotations

import pytest

from strata.load.dockerfile import Instruction, instructions, open_arguments, starts_from_parent


def read(text: str) -> list[tuple[int, str, str]]:
    """Return line, keyword and rest of each instruction."""
    return [(i.line, i.keyword, i.rest) for i in instructions(text)]


def test_instructions_have_their_line_and_keyword() -> None:
    """Comments and blank lines are none; a keyword may be small, and a tab may follow it."""
    text = "# syntax\n\nFROM parent\n  run\ttrue\nUSER 1\n"
    assert read(text) == [(3, "FROM", "parent"), (4, "RUN", "true"), (5, "USER", "1")]
    assert next(instructions(text)) == Instruction(line=3, keyword="FROM", rest="parent")


def test_continued_lines_are_one_instruction() -> None:
    """Comments and blank lines may stand between the lines of one instruction."""
    assert read("RUN one && \\\n  # why\n\n  two && \\\n  three\nUSER 1\n") == [
        (1, "RUN", "one && two && three"),
        (6, "USER", "1"),
    ]


@pytest.mark.parametrize(
    "run",
    [
        "RUN <<END",
        "RUN <<'END'",
        'RUN <<"END"',
        "RUN --mount=type=tmpfs,target=/x \\\n  <<END",
        "RUN cat <<END > /file",
        "COPY <<END /file",
    ],
)
def test_the_body_of_a_heredoc_is_no_instruction(run: str) -> None:
    """What a heredoc holds is passed over, up to the line that is its end and nothing else."""
    text = f"{run}\nARG INSIDE\n  END\nFROM elsewhere\nEND\nARG OUTSIDE\n"
    assert [i.keyword for i in instructions(text)][1:] == ["ARG"]
    assert open_arguments(text) == ("OUTSIDE",)


def test_an_indented_heredoc_ends_after_tabs() -> None:
    """`<<-END` ends where END stands behind tabs."""
    assert open_arguments("RUN <<-END\n\tARG INSIDE\n\tEND\nARG OUTSIDE\n") == ("OUTSIDE",)


def test_several_heredocs_of_one_instruction_follow_each_other() -> None:
    """Each of them has its own end."""
    text = "COPY <<ONE <<TWO /there/\nARG A\nONE\nARG B\nTWO\nARG C\n"
    assert open_arguments(text) == ("C",)


@pytest.mark.parametrize(
    "run",
    [
        "RUN cat <<< text",
        "RUN cat <<<text",
        "RUN echo 'a <<END b'",
        "RUN echo $((1<<4))",
        "ENV A <<END",
    ],
)
def test_what_only_looks_like_a_heredoc_is_none(run: str) -> None:
    """A here-string, a quoted text, a shift and other instructions begin no heredoc."""
    assert open_arguments(f"{run}\nARG AFTER\n") == ("AFTER",)


def test_a_heredoc_without_an_end_takes_the_rest() -> None:
    """BuildKit will complain; reading it ends."""
    assert read("RUN <<END\nARG A\n") == [(1, "RUN", "<<END")]


def test_open_arguments_are_those_without_a_default() -> None:
    """Several may stand on one line; each is told once, in order."""
    text = 'ARG B\nARG A=1\nARG C D=2 E="x y"\nARG B\n'
    assert open_arguments(text) == ("B", "C")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM parent\n", True),
        ("# comment\n\nfrom  parent\n", True),
        ("FROM\tparent\n", True),
        ("FROM parent AS stage\n", False),
        ("FROM debian:12\n", False),
        ("ARG X\nFROM parent\n", False),
        ("", False),
    ],
)
def test_a_layer_starts_from_its_parent_and_nothing_else(text: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    """The first instruction is FROM parent, without a name and without an ARG before it."""
    assert starts_from_parent(text) is expected
