"""Choose the next token from logits: the largest, or a draw with a temperature from all or from the top k.

A draw needs one uniform number. It depends on the seed, the row and the position alone (Salmon et al., Parallel random
numbers: as easy as 1, 2, 3, 2011), so a sequence gets the same tokens alone, in a CUDA graph, and on a CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """temperature: 0 takes the largest logit. top_k: draw from this many of the largest, and those that equal the last
    of them; None: from all. ValueError names the field that does not fit."""

    temperature: float = 0.0
    top_k: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature!r}; it has to be 0 or more, and finite")
        if self.top_k is not None and (isinstance(self.top_k, bool) or self.top_k < 1):
            raise ValueError(f"top_k is {self.top_k!r}; it has to be 1 or more, or None for all tokens")
        if not -(2**63) <= self.seed < 2**63:
            raise ValueError(f"seed is {self.seed!r}, which 64 bits do not hold")


def sample(logits: Tensor, seed: Tensor, lengths: Tensor, tokens: Tensor, current: Tensor, how: Sampling) -> None:
    """Append a token to every sequence, in plain PyTorch; arguments as for `sample_kernel`, with `how` for its numbers.

    Store it in tokens[row, length + 1] and current[row], and increase lengths[row] by one.
    """
    places = lengths.long() + 1
    if how.temperature == 0:
        chosen = logits.argmax(-1)
    else:
        numbers = [uniform(int(seed), row, place) for row, place in enumerate(places.tolist())]
        chosen = draw(logits, torch.tensor(numbers, device=logits.device), how)
    current.copy_(chosen)
    tokens.scatter_(1, places[:, None], chosen[:, None])
    lengths += 1


def draw(logits: Tensor, u: Tensor, how: Sampling) -> Tensor:
    """Return a token per row, drawn with the numbers u by `inverse`. logits: (B, V); u: (B,), below 1."""
    logits = logits.float()
    p = torch.softmax(logits / how.temperature, -1)
    if how.top_k is not None and how.top_k < logits.shape[-1]:
        p = p.where(logits >= logits.topk(how.top_k).values[:, -1:], 0.0)
    return inverse(p, u)


def inverse(p: Tensor, u: Tensor) -> Tensor:
    """Return the first token of each row whose cumulative probability exceeds the share u of the row's sum, and has a
    probability. p: (…, V), not negative; u: (…), below 1."""
    below = p.cumsum(-1)
    token = (below <= u[..., None] * below[..., -1:]).sum(-1)
    last = p.shape[-1] - 1 - (p.flip(-1) > 0).int().argmax(-1)  # u · Σp may round to Σp
    return torch.minimum(token, last)


def uniform(seed: int, row: int, position: int) -> float:
    """Return a multiple of 2⁻²⁴ from [0, 1): the upper bits of the first output of Philox 4×32-10."""
    return float(uniforms(seed, row, np.array([position]))[0])


def uniforms(seed: int, row: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return `uniform` of every position."""
    mask = np.uint64(2**32 - 1)
    c0, k0, k1 = positions.astype(np.uint64), np.uint64(seed & int(mask)), np.uint64(seed >> 32 & int(mask))
    c1, c2, c3 = np.full_like(c0, row), np.zeros_like(c0), np.zeros_like(c0)
    bits = np.uint64(32)
    for _ in range(10):
        low, high = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = high >> bits ^ c1 ^ k0, high & mask, low >> bits ^ c3 ^ k1, low & mask
        k0, k1 = k0 + np.uint64(0x9E3779B9) & mask, k1 + np.uint64(0xBB67AE85) & mask
    return (c0 >> np.uint64(8)) * 2.0**-24
