"""The work that scaling is measured with: a small language model's step on given data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from trainer.models import Shape, Transformer

if TYPE_CHECKING:
    from ddp.context import Context

SEED = 50
# (shape, samples a rank): some 20 ms a step on a core, and on a GPU.
ON_CPU = (Shape(vocabulary=256, length=64, width=128, heads=4, depth=2), 4)
ON_GPU = (Shape(vocabulary=8192, length=256, width=1024, heads=16, depth=4), 8)


@dataclass(frozen=True)
class Workload:
    """One rank's work: `batch` samples a step of a model of `shape`, in float32."""

    shape: Shape
    batch: int
    device: Any
    tokens: Any

    def make_model(self) -> Any:  # noqa: ANN401 - a module
        """Return a model; all ranks' are alike."""
        torch.manual_seed(SEED)
        return Transformer(self.shape, is_causal=True, dropout=0.0).to(self.device)

    def step(self, model: Any, tokens: Any = None) -> Any:  # noqa: ANN401 - module and tensors
        """Go forward and backward; return the loss, a tensor."""
        rows = self.tokens if tokens is None else tokens.to(self.device)
        model.zero_grad(set_to_none=True)
        logits = model(rows[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        return loss.detach()

    def finish(self) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def make_workload(context: Context) -> Workload:
    """Return this rank's work."""
    shape, batch = ON_GPU if context.device.type == "cuda" else ON_CPU
    generator = torch.Generator().manual_seed(SEED + context.rank)
    size = (batch, shape.length + 1)
    tokens = torch.randint(shape.vocabulary, size, generator=generator)
    return Workload(shape, batch, context.device, tokens.to(context.device))
