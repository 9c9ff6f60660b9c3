"""`python -m strata TASK`: Invoke, with strata's exit code for bad arguments."""

from __future__ import annotations

from invoke import Exit, ParseError, Program

from strata import __version__
from strata.cli.words import with_image_flags
from strata.errors import DefinitionError


class Strata(Program):  # type: ignore[misc]  # Invoke has no types
    """Invoke's own program; what it cannot parse ends with 2, as every bad argument does."""

    def parse_core(self, argv: list[str] | None) -> None:
        """Parse Invoke's own flags."""
        try:
            super().parse_core(argv)
        except ParseError as wrong:
            raise _exit(wrong) from None

    def parse_tasks(self) -> None:
        """Parse the tasks and their flags."""
        self.core.unparsed = with_image_flags(self.core.unparsed, self.collection.to_contexts())
        try:
            super().parse_tasks()
        except ParseError as wrong:
            raise _exit(wrong) from None


def _exit(wrong: ParseError) -> Exit:
    error = DefinitionError.at("arguments", str(wrong), "./inv --list, ./inv TASK --help")
    return Exit(message=str(error), code=DefinitionError.exit_code)


program = Strata(name="strata", binary="inv", version=__version__)

if __name__ == "__main__":
    program.run()
