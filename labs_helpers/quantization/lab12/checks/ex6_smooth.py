"""Check exercise 6 of lab 12: SmoothQuant's migration of scale."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.variants import variant
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks.smooth_mistakes import MISTAKES, PLACES
from labs_helpers.quantization.lab12.checks.tensors import tensor_cases
from labs_helpers.quantization.lab12.drawn import drawn

ADVICE = "compute {where} by hand, from the largest |x| and the largest |w| of its channel and alpha"
ERRORS = ((r"must match the size", "an input channel is a column of x and of w: reduce both over dim=0"),)


@exercise("12/6", "SmoothQuant's migration of scale", points=10, minutes=10, reference=exercises.smooth)
def smooth(student):
    outliers = drawn(12, 8, seed=1)
    outliers[:, 2] *= 60
    outliers[:, 5] = -3 - outliers[:, 5].abs()  # no positive number
    unused, w = drawn(5, 6, seed=4), drawn(6, 6, seed=5)
    unused[:, 1], w[:, 4] = 0.0, 0.0
    cases = (
        ("12 tokens, 5×8 weight, two channels of outliers, alpha 0.7", outliers, drawn(5, 8, seed=2), 0.7),
        ("8 tokens, 8×8 weight, alpha 0.25", 5 * drawn(8, 8, seed=3), 0.1 * drawn(8, 8, seed=6), 0.25),
        ("alpha 0.5", outliers, 0.02 * drawn(9, 8, seed=7), 0.5),
        ("alpha 1: the largest |x| of each channel becomes 1", outliers, drawn(3, 8, seed=8), 1.0),
        ("alpha 0: the largest |w| of each channel becomes 1", outliers, drawn(3, 8, seed=9), 0.0),
        ("one channel without activations, one without weights", unused, w, 0.5),
    )
    names = ("x_smooth", "w_smooth", "s")
    settings = {"places": PLACES, "error": 1e-5, "forms": _forms, "errors": ERRORS, "advice": ADVICE}
    yield from tensor_cases(student, cases, variant(exercises.smooth), MISTAKES, names, **settings)


def _forms(part, found, wanted) -> str:
    if part == "s" and isinstance(found, torch.Tensor) and found.ndim == 1:
        return "there is one factor per row; an input channel is a column of x and of w: reduce over dim=0"
    if part == "s" and found.numel() == wanted.numel():
        return "keepdim=True leaves a dimension of length 1; s has shape (K,)"
    return ""
