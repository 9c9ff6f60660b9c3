"""The facts of an image: true versions, asked in a running container."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from strata.errors import LayerTestError

if TYPE_CHECKING:
    from docker.models.containers import Container

    from strata.plan import Step


def read_facts(container: Container, step: Step) -> dict[str, str]:
    """Ask each fact of the image's layers, lowest layer first.

    Raises `LayerTestError` when a fact's command fails: then the layer is broken.
    """
    facts = {}
    for layer in (s.layer for s in step.path()):
        for name, command in layer.facts.items():
            code, output = container.exec_run(["sh", "-c", command])
            text = cast("bytes", output).decode(errors="replace").strip()
            if code != 0:
                raise LayerTestError.at(
                    f"layers/{layer.name}/layer.toml",
                    f"the fact `{name}` ended with {code} in {step.ref}: {text[-500:]}",
                    "correct the command, or the layer that it asks",
                )
            facts[name] = text
    return facts
