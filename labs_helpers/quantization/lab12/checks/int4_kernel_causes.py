"""The results of common mistakes in exercise 4 of lab 12."""

from __future__ import annotations

from collections.abc import Callable

import torch

from labs_helpers.course.verdict import Candidates
from labs_helpers.quantization.lab12.checks import products
from labs_helpers.quantization.lab12.checks.products import product

half = torch.float16


def nibbles(packed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    bytes = packed.cpu().to(torch.int32)
    return bytes & 15, bytes >> 4


def alternating(even: torch.Tensor, odd: torch.Tensor) -> torch.Tensor:
    return torch.stack([even, odd], dim=2).flatten(1)


def spread(of_groups: torch.Tensor, group: int) -> torch.Tensor:
    """Return a number per group as a number per column, float64."""
    return of_groups.cpu().double().repeat_interleave(group, dim=1)


def dequantized(packed, scale, zero, group, codes: Callable = alternating) -> torch.Tensor:
    """Return the weight, float64 (N, K)."""
    return (codes(*nibbles(packed)).double() - spread(zero, group)) * spread(scale, group)


def causes(run, x, packed, scale, zero, group) -> Candidates:
    lower, upper = nibbles(packed)
    codes, scales, zeros = alternating(lower, upper).double(), spread(scale, group), spread(zero, group)
    block, K = run.launches[-1].constexprs.get("BLOCK_K", 32), x.shape[1]
    w = (codes - zeros) * scales
    swapped = "the halves of a byte are swapped: the lower four bits belong to the even column"
    yield swapped, product(x, (alternating(upper, lower) - zeros) * scales)
    yield (
        "the upper half is not shifted to the right by 4",
        product(x, (alternating(lower, 16 * upper) - zeros) * scales),
    )
    yield (
        "the lower half still contains the upper four bits; mask it with 15",
        product(x, (alternating(lower + 16 * upper, upper) - zeros) * scales),
    )
    yield "both halves of a byte are its lower four bits", product(x, (alternating(lower, lower) - zeros) * scales)
    signed = alternating(lower, upper - 16 * (upper > 7))
    yield (
        "the byte is shifted as a signed number, so the upper half loses its range 8 to 15",
        product(x, (signed - zeros) * scales),
    )
    both_signed = codes - 16 * (codes > 7)
    yield "the codes are read as two's complement; they are 0 to 15", product(x, (both_signed - zeros) * scales)
    yield "the codes are read as two's complement, without the zero point", product(x, both_signed * scales)
    yield "the zero point is missing: w = (code − zero) · scale", product(x, codes * scales)
    yield "the zero point is always 8; load it from zero_ptr", product(x, (codes - 8) * scales)
    yield "the zero point is added; subtract it", product(x, (codes + zeros) * scales)
    yield "the zero point is subtracted after scaling: w = (code − zero) · scale", product(x, codes * scales - zeros)
    wrapped = (codes - zeros) % 256
    yield (
        "code − zero wraps around in uint8, which has no negative numbers; convert to float32 first",
        product(x, wrapped * scales),
    )
    even = torch.arange(K) % 2 == 0
    for said, kept in (("odd", even), ("even", ~even)):
        yield (
            f"only the {'even' if said == 'odd' else 'odd'} columns' zero point is subtracted",
            product(x, (codes - zeros * kept) * scales),
        )
    yield "the scale is missing", product(x, codes - zeros)
    yield "the product is divided by the scale; multiply", product(x, (codes - zeros) / scales)
    shown = "a group's {} are read one group too {}: this step's group is start // group"
    for number, step in (("late", 1), ("early", -1)):
        moved = torch.arange(K) // group + step
        at = moved.clamp(0, K // group - 1)
        s, z = scale.cpu().double()[:, at], zero.cpu().double()[:, at]
        yield shown.format("scales", number), product(x, (codes - zeros) * s)
        yield shown.format("zero points", number), product(x, (codes - z) * scales)
        yield shown.format("scales and zero points", number), product(x, (codes - z) * s)
    yield from _wrong_places(x, codes, scale, zero, group, block)
    scale_0, zero_0 = scale.cpu().double()[:, :1], zero.cpu().double()[:, :1]
    yield "every group gets the first group's scale", product(x, (codes - zeros) * scale_0)
    yield "every group gets the first group's zero point", product(x, (codes - zero_0) * scales)
    yield "every group gets the first group's scale and zero point", product(x, (codes - zero_0) * scale_0)
    last = scale.cpu().double()[:, -1:]
    yield (
        "the scales are applied after the loop, when only the last group's are left; apply them in each step",
        product(x, (codes - zeros) * last),
    )
    every_step = torch.zeros(len(x), len(codes), dtype=torch.float64)
    for k in range(0, K, block):
        step = product(x[:, k : k + block], (codes - zeros)[:, k : k + block])
        every_step = (every_step + step) * scales[:, k]
    yield "acc is multiplied by each step's scale; multiply the step's product", every_step
    both = x.cpu().double()
    yield "both products use x's even columns", product(alternating(both[:, 0::2], both[:, 0::2]), w)
    yield "both products use x's odd columns", product(alternating(both[:, 1::2], both[:, 1::2]), w)
    yield (
        "the lower half of a byte meets x's odd columns, and the upper half its even ones",
        product(alternating(both[:, 1::2], both[:, 0::2]), w),
    )
    yield (
        "a step's x is split into its first and its second half; a byte holds two neighbors",
        product(_first_and_second(both, block), w),
    )
    yield "only the lower half of each byte is used", product(x, w * even)
    yield "only the upper half of each byte is used", product(x, w * ~even)
    same_bytes = codes[:, :block].repeat(1, K // block)
    yield "every step reads the same bytes; add start // 2", product(x, (same_bytes - zeros) * scales)
    yield from products.loop_causes(run, x, w, 32)
    roundings = (
        ("the weight is rounded to float16 after scaling; scale the step's product in float32", product(x, w.to(half))),
        (
            "the sum is rounded to float16 in every step; keep acc in float32",
            products.in_steps(x, w, block, lambda acc: acc.to(half)),
        ),
        ("the scale is rounded to float16; keep it float32", product(x, (codes - zeros) * scales.to(half).double())),
    )
    yield from products.rounding_causes(run, product(x, w), roundings)


def _wrong_places(x, codes, scale, zero, group, block) -> Candidates:
    """Yield results whose scales and zero points come from another place in memory."""
    (N, groups), K = scale.shape, x.shape[1]
    n, g = torch.arange(N)[:, None], (torch.arange(K) // group)[None, :]
    places = (
        ("scales and zero points are read as (K/group, N); they are (N, K/group)", g * N + n),
        ("scales and zero points are read at columns + group number; a row of them has K/group", n + g),
        (
            "the group is counted in steps of BLOCK_K: it is start // group",
            n * groups + torch.arange(K)[None, :] // block,
        ),
    )
    for said, place in places:
        at = place.expand(N, K).clamp(max=N * groups - 1)
        s, z = (part.cpu().double().flatten()[at] for part in (scale, zero))
        yield said, product(x, (codes - z) * s)


def _first_and_second(x: torch.Tensor, block: int) -> torch.Tensor:
    """Return x whose even columns are the first half of each step, and its odd columns the second."""
    return x.unflatten(1, (-1, 2, block // 2)).transpose(2, 3).flatten(1)
