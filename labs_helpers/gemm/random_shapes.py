"""Draw random shapes that no kernel was tuned for; the same seed gives the same shapes."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

KINDS = ("aligned", "unaligned", "few rows")
SHARES = (0.6, 0.2, 0.2)


class Shape(NamedTuple):
    """The shape of one product, A of M×K times B of K×N. kind: one of KINDS."""

    kind: str
    M: int
    N: int
    K: int

    @property
    def flops(self) -> int:
        return 2 * self.M * self.N * self.K


def random_shapes(count: int, seed: int, small: bool = False) -> list[Shape]:
    """Draw `count` shapes with log-uniform sizes. A larger count begins with the shapes of a smaller one.

    'aligned' (60%): M, N and K multiples of 8 from 500 to 12,000. 'unaligned' (20%): any M in that range, and N, K or
    both odd. 'few rows' (20%), as in decoding: M from 1 to 128, N and K multiples of 8 from 2,048 to 16,384.
    small: divide every upper bound by 32, for machines without a GPU.
    """
    draw = random.Random(seed)
    return [_shape(draw, 32 if small else 1) for _ in range(count)]


def _shape(draw: random.Random, divisor: int) -> Shape:
    kind = draw.choices(KINDS, SHARES)[0]

    def size(least: int, most: int, multiple: int = 1) -> int:
        low, high = -(-max(least // divisor, 1) // multiple), max(most // divisor, 1) // multiple
        return multiple * min(int(low * math.exp(draw.random() * math.log((high + 1) / low))), high)

    if kind == "aligned":
        return Shape(kind, *(size(500, 12_000, 8) for _ in range(3)))
    if kind == "few rows":
        return Shape(kind, size(1, 128), size(2048, 16_384, 8), size(2048, 16_384, 8))
    M, N, K = size(500, 12_000), size(500, 12_000, 8), size(500, 12_000, 8)
    which = draw.choice(("N", "K", "both"))
    return Shape(kind, M, N - (which != "K"), K - (which != "N"))
