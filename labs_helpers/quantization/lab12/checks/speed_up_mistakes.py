"""Predict a speed-up with one mistake each, as answers to exercise 5 of lab 12 do."""

from __future__ import annotations

import math
from collections.abc import Iterator


def gain(M, N, K, bits, group, bandwidth, rate, *, full=2.0, small=None, scales=None, x=None, y=None,
         flops=None, combine=max, activations=2.0, faster=1.0):  # fmt: skip
    """Return the right speed-up; other settings than the defaults make mistakes."""
    scales = (4 * N if group is None else 3 * N * K / group) if scales is None else scales
    weight = N * K * (bits / 8 if small is None else small) + scales
    row = activations * ((K if x is None else x) + (N if y is None else y))
    computing = (2 * M * N * K if flops is None else flops) / rate

    def time(bytes, faster=1.0):
        return combine((bytes + M * row) / bandwidth, computing / faster)

    return time(full * N * K) / time(weight, faster)


def crossing(N, K, bandwidth, rate, *, weight=2.0, rounding=math.ceil, row=None, flops=2.0):
    """Return the right crossover; other settings than the defaults make mistakes."""
    per_row = flops * N * K / rate - (2 * (N + K) if row is None else row) / bandwidth
    return rounding(weight * N * K / bandwidth / per_row) if per_row > 0 else None


def speed_ups(M, N, K, bits, group, bandwidth, rate) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the speed-up that it gives."""
    given = M, N, K, bits, group, bandwidth, rate
    right, rows = gain(*given), group is None
    yield "scales and zero points are bytes of the weight, too", gain(*given, scales=0)
    yield "with groups, there are zero points, 1 byte each", right if rows else gain(*given, scales=2 * N * K / group)
    yield "without groups, there are no zero points", gain(*given, scales=5 * N) if rows else right
    yield "a zero point takes 1 byte, not 2", right if rows else gain(*given, scales=4 * N * K / group)
    yield "a group's scale takes 2 bytes, not 4", right if rows else gain(*given, scales=5 * N * K / group)
    yield "a row's scale takes 4 bytes, not 2", gain(*given, scales=2 * N) if rows else right
    yield "a row's scale takes 4 bytes, not 1", gain(*given, scales=N) if rows else right
    yield (
        "every row has its own groups: there are N·K / group scales, not K / group",
        right if rows else gain(*given, scales=3 * K / group),
    )
    yield "there is one scale per row of W (N), not per column (K)", gain(*given, scales=4 * K) if rows else right
    yield (
        "the groups run along a row of W: K / group of them, not N / group",
        right if rows else gain(*given, scales=3 * N / group),
    )
    yield "x is read, too: M·K elements", gain(*given, x=0)
    yield "y is written, too: M·N elements", gain(*given, y=0)
    yield "x is read and y is written, too", gain(*given, x=0, y=0)
    yield "an element of x or y takes 2 bytes, not 1", gain(*given, activations=1.0)
    yield "an element of x or y takes 2 bytes, not 4", gain(*given, activations=4.0)
    yield "a multiplication and an addition are two FLOPs: 2·M·N·K", gain(*given, flops=M * N * K)
    yield "the FLOPs grow with M: 2·M·N·K", gain(*given, flops=2 * N * K)
    yield "the two times overlap: take the larger, not their sum", gain(*given, combine=lambda a, b: a + b)
    yield "a product takes the longer of its two times, not the shorter", gain(*given, combine=min)
    yield "the FLOPs take time, too: the larger of the two", gain(*given, combine=lambda a, b: a)
    yield (
        "the bytes' times do not count here: take the larger of the two, with bytes/s and FLOP/s as given",
        gain(*given, combine=lambda a, b: b),
    )
    same_rate = "the quantized product also multiplies in bfloat16, at the same rate"
    yield same_rate, gain(*given, faster=16 / bits)
    yield same_rate, gain(*given, faster=2.0)
    yield "this is the quotient of the bits; count all bytes", 16 / bits
    yield (
        "this is the quotient of the weights' bytes; the activations and the FLOPs count, too",
        gain(*given, x=0, y=0, combine=lambda a, b: a),
    )
    yield "the quotient is upside down: bfloat16's time over the quantized one's", 1 / right
    yield "a bfloat16 element takes 2 bytes, not 4", gain(*given, full=4.0)
    yield "a quantized value takes bits / 8 bytes, so an int4 half a byte", gain(*given, small=1.0)
    yield "bits are not bytes: divide by 8", gain(*given, small=bits)
    yield "this is the share of the time that is saved; the speed-up is a quotient", 1 - 1 / right


def crossovers(M, N, K, bits, group, bandwidth, rate) -> Iterator[tuple[str, int | None]]:
    """Yield pairs of a sentence and the crossover that it gives."""
    given = N, K, bandwidth, rate
    right = crossing(*given)
    small = bits / 8 + (4 / K if group is None else 3 / group)
    yield (
        "from here on the quantized product is limited by its FLOPs; the bfloat16 one must be, too",
        crossing(*given, weight=small),
    )
    yield "the bytes of x and y also grow with M", crossing(*given, row=0)
    yield "y is written, too: its bytes grow with M", crossing(*given, row=2 * K)
    yield "x is read, too: its bytes grow with M", crossing(*given, row=2 * N)
    yield "a multiplication and an addition are two FLOPs", crossing(*given, flops=1.0)
    yield "half a row does not exist: round up, since below it the times differ", crossing(*given, rounding=math.floor)
    yield "half a row does not exist: round up, since below it the times differ", crossing(*given, rounding=round)
    yield (
        "a whole quotient needs no further row: round up with math.ceil",
        crossing(*given, rounding=lambda m: math.floor(m) + 1),
    )
    yield (
        "if the bytes per row take longer than its FLOPs, the times are never equal: None",
        (_unguarded(*given) if right is None else right),
    )
    yield "if the times are never equal, the crossover is None, not 0", 0 if right is None else right
    yield "the crossover is None only if the bytes of a row take longer than its FLOPs", None


def _unguarded(N, K, bandwidth, rate):
    return math.ceil(2 * N * K / bandwidth / (2 * N * K / rate - 2 * (N + K) / bandwidth))
