"""Attention problems that nobody tuned for, drawn at random, the same for the same seed."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

KINDS = ("whole blocks", "off the blocks", "decode")
HEADS = {64: (8, 12, 16, 32), 96: (8, 12, 16, 20), 128: (8, 16, 20, 32)}
TOKENS = (2048, 16384)  # of a batch
LENGTHS = (256, 16384)
KEYS = (1024, 131072)  # of a decode
KEY_ELEMENTS = 2**28  # of K, all heads of a batch of decodes: 512 MiB in 16 bits


class Shape(NamedTuple):
    """q (B, H, Lq, D) against k and v (B, Hkv, Lk, D). `kind` is one of KINDS; Lq = Lk but in a decode."""

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
        """Pairs of a query and a key that it sees, of one head."""
        if not self.causal:
            return self.Lq * self.Lk
        seen = min(self.Lq, self.Lk)  # queries that see a key; the last sees all
        return seen * self.Lk - seen * (seen - 1) // 2

    def flops(self, direction: str) -> float:
        """Operations as FlashAttention's papers count them: two products forward, five backward."""
        return {"forward": 4, "backward": 10}[direction] * self.B * self.H * self.pairs * self.D

    def bytes(self, itemsize: int = 2) -> int:
        """The least that a forward pass reads and writes: q, k, v and o once."""
        return 2 * itemsize * self.B * self.D * (self.H * self.Lq + self.Hkv * self.Lk)


def random_shapes(count: int, seed: int, small: bool = False) -> list[Shape]:
    """`count` shapes, the KINDS by turns, lengths log-uniform; of a larger count those of a smaller one are the first.

    Self-attention over 256 to 16,384 tokens, multiples of 128 ('whole blocks') or any ('off the blocks');
    'decode': 1 to 16 queries, half of the time one, on 1,024 to 131,072 keys, always with the causal mask.
    Heads of 64, 96 or 128, shared by 1, 4 or 8 query heads. small: every bound on lengths divided by 32, for machines
    without a GPU.
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
