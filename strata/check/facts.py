"""The facts of an image: true versions, asked in a running container."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker.models.containers import Container

    from strata.plan import Step

SHOWN = 500  # characters of what a command that failed has said


class FactError(Exception):
    """A fact could not be asked: then its layer is broken, or the container is gone."""

    def __init__(self, layer: str, reason: str) -> None:
        """Name the layer whose `layer.toml` has the fact."""
        super().__init__(reason)
        self.layer = layer


def read_facts(container: Container, step: Step) -> dict[str, str]:
    """Ask the facts of the image's layers, lowest layer first.

    A command may tell several facts, one a line: their names, with spaces
    between them, are its key.  Raises `FactError` when a command fails, or
    prints more or fewer lines than it has names.
    """
    import docker.errors  # noqa: PLC0415 - slow to import

    facts: dict[str, str] = {}
    for layer in (s.layer for s in step.path()):
        for names, command in layer.facts.items():
            shown = f"the fact `{names}`"
            try:
                code, output = container.exec_run(["sh", "-c", command])
            except docker.errors.APIError as refused:
                reason = f"{shown}: {refused.explanation or refused}"
                raise FactError(layer.name, reason) from None
            text = output.decode(errors="replace").strip()  # type: ignore[union-attr]  # no stream
            if code != 0:
                reason = f"{shown} ended with {code}: {text[-SHOWN:]}"
                raise FactError(layer.name, reason)
            lines = text.splitlines()
            if len(lines) != len(names.split()):
                reason = f"{shown} has {len(lines)} lines: {text[-SHOWN:]}"
                raise FactError(layer.name, reason)
            facts |= zip(names.split(), lines, strict=True)
    return facts
