"""Check exercise 1 of lab 12: int8 weights with a scale per output channel."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.variants import variant
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks.int8_mistakes import MISTAKES, PLACES
from labs_helpers.quantization.lab12.checks.tensors import tensor_cases
from labs_helpers.quantization.lab12.drawn import drawn, without_ties


def weights():
    """Return (name, weight) of the cases."""
    w = drawn(6, 9)
    w[0] = -w[0].abs() - 0.1  # the largest absolute value of a row without positive numbers is negative
    w[1, 4] = -4 * w[1].abs().max()
    with_zeros = drawn(4, 5, seed=1)
    with_zeros[2] = 0.0
    return [
        ("6×9 float32, one row without positive numbers", without_ties(w)),
        ("8×8 float32, columns of different sizes", without_ties(drawn(8, 8, seed=2) * 10.0 ** torch.arange(-4, 4))),
        ("5×64 bfloat16", without_ties(drawn(5, 64, seed=3, dtype=torch.bfloat16))),
        ("16×40 float16, rows below 0.01", without_ties((0.002 * drawn(16, 40, seed=4)).half())),
        ("1×1 float32, a tiny number", torch.tensor([[-3e-7]])),
        ("4×5 float32, a row of zeros", without_ties(with_zeros)),
    ]  # fmt: skip


@exercise("12/1", "scales and rounding", points=10, minutes=15, reference=exercises.quantize_int8)
def quantize_int8(student):
    right, names = variant(exercises.quantize_int8), ("q", "scale", "bound")
    yield from tensor_cases(student, weights(), right, MISTAKES, names, places=PLACES, forms=_forms)


def _forms(part, found, wanted) -> str:
    if found.shape != wanted.shape and part in ("scale", "bound"):
        if found.ndim == 1:
            return "there is one number per column of w; an output channel is a row: reduce over dim=1"
        if found.ndim == 0:
            return "one number serves the whole weight; every row needs its own"
        if found.numel() == wanted.numel():
            return "keepdim=True leaves a dimension of length 1; it is needed for the division, not in the result"
    if found.dtype in (torch.float16, torch.bfloat16):
        return "the scale is computed in w's dtype; convert w to float32 first"
    if part == "q" and found.dtype.is_floating_point:
        return "the rounded numbers are still floating point; convert them to torch.int8"
    if part == "q" and found.dtype == torch.uint8:
        return "uint8 has no negative numbers; q is torch.int8"
    return ""
