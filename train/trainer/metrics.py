"""Loss and accuracy as sums, which ranks can add up without a padded sample in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from trainer.data import IGNORED

if TYPE_CHECKING:
    from trainer.group import Group


@dataclass(frozen=True)
class Metrics:
    """The means over `samples` samples; accuracy is over their targets."""

    loss: float
    accuracy: float
    samples: int


class Sums:
    """Sums of one rank, or of all: loss, right answers, targets, samples (float64)."""

    def __init__(self, device: Any) -> None:  # noqa: ANN401 - torch's type
        """Begin with nothing."""
        self._values = torch.zeros(4, dtype=torch.float64, device=device)

    def add(self, losses: Any, logits: Any, targets: Any, is_real: Any) -> None:  # noqa: ANN401
        """Count a batch: `losses` and `is_real` (batch,), the rest as the model has it."""
        counts = is_real.view(-1, *[1] * (targets.dim() - 1)) & (targets != IGNORED)
        right = (logits.argmax(-1) == targets) & counts
        batch = [(losses * is_real).sum(), right.sum(), counts.sum(), is_real.sum()]
        self._values += torch.stack([value.detach().double() for value in batch])

    def merge(self, other: Sums) -> None:
        """Count what `other` has counted."""
        self._values += other._values

    def reduce(self, group: Group) -> Metrics:
        """Return the means over all ranks; every rank must call it.  Leaves nothing counted."""
        with group.waiting("all_reduce of metrics"):
            distributed.all_reduce(self._values, group=group.processes)
            loss, right, targets, samples = self._values.tolist()
        self._values.zero_()
        return Metrics(loss / max(1, samples), right / max(1, targets), int(samples))


def sample_losses(logits: Any, targets: Any) -> Any:  # noqa: ANN401 - tensors
    """Return each sample's loss (batch,): the mean cross-entropy of its targets, in float32."""
    classes = logits.shape[-1]
    losses = torch.nn.functional.cross_entropy(
        logits.reshape(-1, classes).float(),
        targets.reshape(-1),
        ignore_index=IGNORED,
        reduction="none",
    ).view(len(targets), -1)
    counts = (targets != IGNORED).view(len(targets), -1).sum(1).clamp(min=1)
    return losses.sum(1) / counts
