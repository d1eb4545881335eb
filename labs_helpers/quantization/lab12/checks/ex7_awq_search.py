"""Check exercise 7 of lab 12: AWQ's search on one layer."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number, expect_tuple
from labs_helpers.course.verdict.variants import variant
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.awq_layers import RATIOS, grouped, layer
from labs_helpers.quantization.lab12.checks.awq_mistakes import MISTAKES
from labs_helpers.quantization.lab12.checks.tensors import tensor_cases

ERRORS = ((r"must match the size", "an input channel is a column of x and of w: take the mean over dim=0"),)
ADVICE = "try the ratio 0 first: all factors are 1, so the error is that of plain rounding"


@exercise("12/7", "AWQ's search", points=15, minutes=20, reference=exercises.awq_search)
def awq_search(student):
    cases = (
        ("two important channels, the ratio 0.5 alone", *layer(0), grouped, (0.5,)),
        ("two important channels, six ratios", *layer(0), grouped, (0.2, 0.5, 1.0, 0.0, 0.8, 0.7)),
        ("one token", *layer(1), grouped, RATIOS),
        ("channels of similar size", *layer(2), grouped, RATIOS),
        ("a quantizer that rounds everything to 0: the first ratio", *layer(2), torch.zeros_like, (0.4, 0.3, 0.2)),
    )

    def numbers(*arguments):
        answer = student(*arguments)
        ratio, s, errors = expect_tuple("", answer, "ratio", "s", "errors")
        expect_is_number("", "ratio", ratio)
        return ratio, s, _errors(errors)

    names = "ratio", "s", "errors"
    settings = {"error": 3e-3, "errors": ERRORS, "advice": ADVICE, "call": numbers}
    yield from tensor_cases(student, cases, variant(exercises.awq_search), MISTAKES, names, **settings)


def _errors(errors):
    """Return errors as a tensor, also if they are a list of numbers or of tensors."""
    if isinstance(errors, list | tuple) and errors:
        return torch.stack([torch.as_tensor(error, dtype=torch.float32) for error in errors])
    if not isinstance(errors, torch.Tensor):
        raise Wrong("", f"errors is {errors!r:.60}; return one error per ratio")
    return errors
