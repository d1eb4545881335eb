"""Exercise 4 of lab 02: a mask on each edge."""

import torch

from labs_helpers.compile.source import plain
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, check_tensor_cores, kernel_cases, numbers, surrounded
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.products import product, reuse, truth


@exercise("02/4", "masks", points=15, minutes=15, reference=exercises.masked_matmul, kernel=True)
def masked_matmul(student):
    run = None
    for M, N, K, dtype in (
        (100, 130, 70, torch.float32),
        (33, 65, 17, torch.float16),
        (1, 1, 1, torch.float32),
        (64, 64, 33, torch.float32),
    ):
        a, b = surrounded(numbers(M, K).to(dtype)), surrounded(numbers(K, N, seed=1).to(dtype))
        case = f"{M}×{N}×{K} {str(dtype)[6:]}, NaN around A and B", a, b
        try:
            run = yield from kernel_cases(student, [case], truth, causes, reuse)
        except Wrong as wrong:
            raise _with_sanitizer(wrong, student, a, b) from None
    yield check_tensor_cores(run.launches[-1])


def causes(run, a, b):
    whole = a.shape[1] // 32 * 32
    yield "the last, partial step along K is lost", product(a[:, :whole], b[:whole])
    yield (
        "a masked element of the last step is not 0: give both loads other=0.0",
        torch.full((a.shape[0], b.shape[1]), torch.nan, dtype=torch.float64),
    )


def _with_sanitizer(wrong: Wrong, student, a, b) -> Wrong:
    """Of a stray access, with what triton-viz's sanitizer says of it; anything else as it is."""
    from labs_helpers.course.verdict.sanitizer import sanitize

    if " outside " in wrong.message and (said := sanitize(plain(student).__name__, student, a, b)):
        return Wrong(wrong.case, f"{wrong.message}\n{said}")
    return wrong
