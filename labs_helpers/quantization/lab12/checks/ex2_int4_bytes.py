"""Check exercise 2 of lab 12: two int4 values per byte."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.course.verdict.variants import variant
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks.int4_mistakes import MISTAKES
from labs_helpers.quantization.lab12.checks.tensors import tensor_cases
from labs_helpers.quantization.lab12.drawn import whole


@exercise("12/2", "two int4 per byte", points=10, minutes=15, reference=exercises.int4_bytes)
def int4_bytes(student):
    every = torch.arange(256, dtype=torch.uint8).reshape(16, 16)
    cases = (
        ("pack 5×12, zero point 8", whole(-8, 7, 5, 12), 8, False),
        ("pack 3×8 with zero point 5", whole(-5, 10, 3, 8, seed=1), 5, False),
        ("pack 2×6 with zero point 0", whole(0, 15, 2, 6, seed=2), 0, False),
        ("pack 4×2, the smallest and the largest", torch.tensor([[-8, 7], [7, -8], [-8, -8], [7, 7]]).to(torch.int8),
         8, False),
        ("unpack every byte, zero point 8", every, 8, True),
        ("unpack with zero point 3", every.T.contiguous(), 3, True),
        ("unpack with zero point 0", every[:2], 0, True),
        ("unpack one byte", torch.tensor([[0xF0]], dtype=torch.uint8), 8, True),
    )  # fmt: skip
    yield from tensor_cases(student, cases, variant(exercises.int4_bytes), MISTAKES, ("the result",), forms=_forms)
    yield _refuses_odd(student)


def _forms(part, found, wanted) -> str:
    if wanted.dtype == torch.int8 and found.dtype == torch.uint8:
        return "uint8 has no negative numbers: 3 − 8 wraps around to 251. Convert to int8 first"
    if found.shape[:1] == wanted.shape[:1] and found.ndim == 3:
        return "the pairs are still a dimension of their own; flatten it"
    return ""


def _refuses_odd(student) -> str:
    case, cause = "pack 2×7: refused", "K is odd: test that before you pack, and raise ValueError"
    try:
        answer = student(whole(-8, 7, 2, 7), 8, False)
    except ValueError:
        return case
    except (RuntimeError, AssertionError) as error:
        raise Wrong(case, f"{type(error).__name__}: {error}", "ValueError", cause=cause) from error
    except Exception as error:
        raise describe_error(student, error, case) from error
    shape = tuple(getattr(answer, "shape", ()))
    raise Wrong(case, f"a result {shape}, in which a column is lost or made up", "ValueError", cause=cause)
