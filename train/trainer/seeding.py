"""Randomness that depends on the seed and on what it is for, on nothing else."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import torch


def mix(*parts: object) -> int:
    """Return a seed of 63 bits: other parts give another one, the same ones the same."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def generator(*parts: object) -> Any:  # noqa: ANN401 - torch's type
    """Return a torch generator of its own for what `parts` name."""
    return torch.Generator().manual_seed(mix(*parts))


def seed_all(*parts: object) -> None:
    """Seed Python's, NumPy's and torch's generators, those of the GPUs included."""
    seed = mix(*parts)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the global one is what libraries draw from
    torch.manual_seed(seed)


def random_state(device: Any) -> dict[str, Any]:  # noqa: ANN401 - torch's type
    """Return the state of this process' generators, in types that torch.load takes as data."""
    version, internal, gauss = random.getstate()
    name, keys, *position = np.random.get_state()  # noqa: NPY002 - see above
    return {
        "python": [version, list(internal), gauss],
        "numpy": [name, torch.from_numpy(np.asarray(keys).astype(np.int64)), *position],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }


def restore_random_state(state: dict[str, Any], device: Any) -> None:  # noqa: ANN401
    """Put this process' generators where `random_state` saw them."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, *position = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *position))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and state["cuda"] is not None:
        torch.cuda.set_rng_state(state["cuda"], device)
