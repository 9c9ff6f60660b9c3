"""Models in plain torch: a small transformer, a BERT-base-sized encoder, ResNet-50."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trainer.resnet import ResNet

if TYPE_CHECKING:
    from trainer.arguments import Config

BERT_VOCABULARY = 30522
BERT_LENGTH = 512


@dataclass(frozen=True)
class Shape:
    """The size of a transformer: numbers of tokens, positions, features, heads and layers."""

    vocabulary: int
    length: int
    width: int
    heads: int
    depth: int


class Transformer(nn.Module):  # type: ignore[misc]  # torch is not typed here
    """Tokens (batch, length) of int64 to logits (batch, length, vocabulary).

    `is_causal`: a position sees those before it only (a language model, with
    normalisation first, as GPT-2); else all (an encoder, with normalisation
    last, as BERT).  The output layer is tied to the embedding.
    """

    def __init__(self, shape: Shape, *, is_causal: bool, dropout: float) -> None:
        """Make the layers, with GPT-2's and BERT's deviation of 0.02."""
        super().__init__()
        self._is_causal = is_causal
        self.token = nn.Embedding(shape.vocabulary, shape.width)
        self.position = nn.Embedding(shape.length, shape.width)
        self.norm = nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                shape.width,
                shape.heads,
                4 * shape.width,
                dropout,
                activation="gelu",
                batch_first=True,
                norm_first=is_causal,
            )
            for _ in range(shape.depth)
        )
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))
        for name, parameter in self.named_parameters():
            if name.endswith("weight") and parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Any) -> Any:  # noqa: ANN401 - tensors
        """Return the logits of the next token, or of the hidden one."""
        length = tokens.shape[1]
        places = torch.arange(length, device=tokens.device)
        state = self.token(tokens) + self.position(places)
        state = self.dropout(state if self._is_causal else self.norm(state))
        mask = None
        if self._is_causal:
            mask = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
        for layer in self.layers:
            state = layer(state, src_mask=mask, is_causal=self._is_causal)
        state = self.norm(state) if self._is_causal else state
        return nn.functional.linear(state, self.token.weight, self.bias)


def make_model(config: Config, classes: int) -> nn.Module:
    """Return the model that the configuration names, for so many different targets."""
    if config.model == "resnet50":
        return ResNet(classes)
    if config.model == "bert-base":
        length = max(BERT_LENGTH, config.length)
        shape = Shape(max(BERT_VOCABULARY, classes), length, width=768, heads=12, depth=12)
        return Transformer(shape, is_causal=False, dropout=config.dropout)
    shape = Shape(classes, config.length, width=128, heads=4, depth=4)
    return Transformer(shape, is_causal=True, dropout=config.dropout)
