"""Check exercise 8 of lab 12: int8 activations times int8 weights, and their two scales."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.variants import variant
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks.tensors import tensor_cases
from labs_helpers.quantization.lab12.checks.w8a8_mistakes import MISTAKES, PLACES
from labs_helpers.quantization.lab12.drawn import drawn, whole, without_ties


@exercise("12/8", "W8A8's rescaling", points=10, minutes=15, reference=exercises.int8_matmul)
def int8_matmul(student):
    tokens = drawn(6, 40) * torch.tensor([1.0, 30.0, 0.01, 2.0, 5.0, 1.0])[:, None]
    tokens[3] = -tokens[3].abs() - 0.1
    padded = drawn(3, 8, seed=5)
    padded[1] = 0.0
    cases = (
        ("6 tokens of different sizes, 9×40 weight", without_ties(tokens), *_weight(9, 40)),
        ("8 tokens, 8×8 weight", without_ties(drawn(8, 8, seed=1)), *_weight(8, 8)),
        ("5 float16 tokens, 7×96 weight", without_ties((0.01 * drawn(5, 96, seed=2)).half()), *_weight(7, 96)),
        ("a token of zeros", without_ties(padded), *_weight(4, 8)),
        ("K = 163,840, sums that grow beyond 2²⁴", *_growing(), torch.tensor([0.1, 1.0, 3.0])),
    )
    settings = {"places": PLACES, "forms": _forms, "errors": ERRORS}
    yield from tensor_cases(student, cases, variant(exercises.int8_matmul), MISTAKES, ("y",), **settings)


ERRORS = (
    (r"expected m1 and m2 to have the same dtype", "both factors need the same dtype; convert both to torch.int32"),
    (r"cannot be multiplied", "x is (M, K) and q is (N, K): transpose q"),
    (r"must match the size", "the sums are (M, N), a token's scales (M, 1) and an output channel's (1, N)"),
)


def _weight(N, K):
    scale = 0.01 * (1 + drawn(N, seed=N).abs())
    return whole(-127, 127, N, K, seed=K), scale


def _growing():
    """Return x and q whose sums grow beyond 2²⁴ and nearly cancel, so that every rounding of them shows.

    Of 64 neighbors one is not 0: a processor that adds up every 16th product by itself still gets all in one sum.
    """
    x, q = torch.zeros(2, 64 * 2560), torch.zeros(3, 64 * 2560, dtype=torch.int8)
    x[:, ::64], q[:, ::64] = without_ties(40 + drawn(2, 2560, seed=6)), whole(120, 127, 3, 2560)
    q[:, q.shape[1] // 2 :] *= -1
    return x, q


def _forms(part, found, wanted) -> str:
    if found.dtype == torch.int32:
        return "these are the whole sums; they need their two scales"
    if found.dtype == torch.float16:
        return "x's dtype is float16, the result's is float32; convert x first"
    return ""
