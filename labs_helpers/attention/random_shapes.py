"""Random attention problems that no kernel was tuned for; the same seed gives the same problems."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

KINDS = ("whole blocks", "off the blocks", "decode")
HEADS = {64: (8, 12, 16, 32), 96: (8, 12, 16, 20), 128: (8, 16, 20, 32)}
TOKENS = (2048, 16384)  # per batch
LENGTHS = (256, 16384)
KEYS = (1024, 131072)  # of a decoding step
KEY_ELEMENTS = 2**28  # of K in a decoding batch: 512 MiB in 16 bits


class Shape(NamedTuple):
    """Sizes of q, (B, H, Lq, D), and of k and v, (B, Hkv, Lk, D). kind: one of KINDS; Lq = Lk except for 'decode'."""

    kind: str
    B: int
    H: int
    Hkv: int
    Lq: int
    Lk: int
    D: int
    causal: bool

    @property
    def pairs(self) -> int:
        """The number of pairs of a query and a visible key in one head."""
        if not self.causal:
            return self.Lq * self.Lk
        seen = min(self.Lq, self.Lk)  # queries that see a key; the last one sees all keys
        return seen * self.Lk - seen * (seen - 1) // 2

    def flops(self, direction: str) -> float:
        """Count operations as FlashAttention's papers do: two products forward, five backward."""
        return {"forward": 4, "backward": 10}[direction] * self.B * self.H * self.pairs * self.D

    def bytes(self, itemsize: int = 2) -> int:
        """Return the least bytes that a forward pass reads and writes: q, k, v and o once each."""
        return 2 * itemsize * self.B * self.D * (self.H * self.Lq + self.Hkv * self.Lk)


def random_shapes(count: int, seed: int, small: bool = False) -> list[Shape]:
    """Return `count` shapes that alternate between KINDS, with log-uniform lengths.

    A larger count starts with the shapes of a smaller one. Self-attention has 256 to 16,384 tokens, in multiples of 128
    ('whole blocks') or any number ('off the blocks'). 'decode' has 1 to 16 queries, in half of the cases one, and 1,024
    to 131,072 keys, always with the causal mask. Heads have 64, 96 or 128 dimensions and serve 1, 4 or 8 query heads.
    small: divide every bound on lengths by 32, for machines without a GPU.
    """
    draw = random.Random(seed)
    return [_shape(draw, KINDS[i % len(KINDS)], 32 if small else 1) for i in range(count)]


def _shape(draw: random.Random, kind: str, divisor: int) -> Shape:

    def between(bounds: tuple[int, int], multiple: int = 1) -> int:
        low, high = (bound // divisor for bound in bounds)
        return max(min(int(math.exp(draw.uniform(math.log(low), math.log(high)))), high), low) // multiple * multiple

    D = draw.choice((64, 96, 128))
    H = draw.choice(HEADS[D]) if divisor == 1 else 4
    group = draw.choice([group for group in (1, 1, 4, 8) if H % group == 0])
    if kind == "decode":
        Lq = draw.choice((1, draw.randint(2, 16)))
        Lk = max(between(KEYS), Lq)
        most = max(KEY_ELEMENTS // divisor**2 // (H // group * Lk * D), 1)
        return Shape(kind, min(draw.choice((1, 2, 4, 8, 16, 32)), most), H, H // group, Lq, Lk, D, True)
    L = between(LENGTHS, 128 // divisor if kind == "whole blocks" else 1)
    B = max(between(TOKENS) // L, 1)
    return Shape(kind, B, H, H // group, L, L, D, draw.random() < 0.5)
