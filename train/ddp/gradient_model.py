"""A small model with what makes gradients hard, and its data."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

SEED = 20
TOKENS = 12
WIDTH = 8
SIDE = 4  # a sample is SIDE x SIDE tokens
GROUPS = 2
HEADS = 2


class Model(nn.Module):  # type: ignore[misc]  # torch is not there when types are checked
    """Convolution, two normalisations, attention, and an output tied to the embedding.

    Tokens of shape (batch, SIDE, SIDE) become logits of shape (batch, SIDE**2,
    TOKENS).  Both normalisations work on each sample by itself: batch
    normalisation would make a shard's gradient depend on the shard.
    """

    def __init__(self) -> None:
        """Draw all parameters from torch's generator."""
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.convolution = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.group_norm = nn.GroupNorm(GROUPS, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.layer_norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, TOKENS, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens: Any, has_side: Any = None) -> Any:  # noqa: ANN401 - tensors
        """Return the logits; `has_side` is for models that branch."""
        features = self.embedding(tokens).permute(0, 3, 1, 2)
        features = nn.functional.gelu(self.group_norm(self.convolution(features)))
        features = self.branch(features.flatten(2).transpose(1, 2), has_side)
        attended, _ = self.attention(features, features, features, need_weights=False)
        return self.output(self.layer_norm(features + attended))

    def branch(self, features: Any, has_side: Any) -> Any:  # noqa: ANN401 - tensors
        """Return the features unchanged: this model has no branch."""
        del has_side
        return features


class BranchedModel(Model):
    """With a layer that only some samples use, and one that none uses."""

    def __init__(self) -> None:
        """Draw all parameters from torch's generator."""
        super().__init__()
        self.side = nn.Linear(WIDTH, WIDTH)
        self.idle = nn.Linear(WIDTH, WIDTH)

    def branch(self, features: Any, has_side: Any) -> Any:  # noqa: ANN401 - tensors
        """Send the samples marked in `has_side`, of shape (batch,), through the side layer."""
        if not bool(has_side.any()):  # then this rank's graph lacks the layer
            return features
        return torch.where(has_side[:, None, None], features + self.side(features), features)


def make_model(kind: type[Model], device: Any, dtype: Any, seed: int = SEED) -> Model:  # noqa: ANN401
    """Return a model whose parameters depend on `seed` alone."""
    torch.manual_seed(seed)  # on the CPU: the same numbers for every device
    model = kind()
    model.to(device, dtype)
    return model


def make_batch(samples: int, device: Any, seed: int = SEED) -> tuple[Any, Any]:  # noqa: ANN401
    """Return tokens (samples, SIDE, SIDE) and targets (samples, SIDE**2), alike on all ranks."""
    generator = torch.Generator().manual_seed(seed)
    shape = (samples, SIDE * SIDE)
    tokens = torch.randint(TOKENS, shape, generator=generator).view(samples, SIDE, SIDE)
    targets = torch.randint(TOKENS, shape, generator=generator)
    return tokens.to(device), targets.to(device)


def loss_sum(logits: Any, targets: Any) -> Any:  # noqa: ANN401 - tensors
    """Return the sum over samples of the mean loss of each sample."""
    flat = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    return flat / targets.shape[1]
