"""Check exercise 4 of lab 02: a mask at each edge."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, check_tensor_cores, numbers, surrounded
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.cases import stray, tile_cases
from labs_helpers.gemm.lab02.checks.products import product_causes, reuse, truth


@exercise("02/4", "masks", points=15, minutes=15, reference=exercises.masked_matmul, kernel=True)
def masked_matmul(student):
    cases = []
    for M, N, K, dtype, blocks in (
        (100, 130, 70, torch.float32, {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 16}),
        (33, 65, 17, torch.float16, {"BLOCK_M": 16}),
        (1, 1, 1, torch.float32, {}),
        (64, 64, 33, torch.float32, {}),
    ):
        # The first two are transposed, which exposes a kernel that assumes a stride of 1.
        turned = M not in (1, 64)
        operands = numbers(M, K).to(dtype), numbers(K, N, seed=1).to(dtype)
        a, b = (surrounded(x.t()).t() if turned else surrounded(x) for x in operands)
        how = "transposed, " * turned
        cases.append((f"{M}×{N}×{K} {str(dtype)[6:]}, A and B {how}surrounded by NaN", a, b, blocks))
    try:
        run = yield from tile_cases(student, cases, truth, causes, reuse)
    except Wrong as wrong:
        a, b = next((case[1:3] for case in cases if case[0] == wrong.case), cases[0][1:3])
        raise _with_sanitizer(wrong, student, a, b) from None
    yield check_tensor_cores(run.launches[-1])


def causes(run, a, b):
    yield from product_causes(run, a, b)
    K, block = a.shape[1], run.launches[-1].constexprs.get("BLOCK_K", 32)
    if K % block:
        infinite = torch.full((a.shape[0], b.shape[1]), torch.inf, dtype=torch.float64)
        yield "masked elements are infinite; with other=0.0 on both loads they add nothing to the sum", infinite


def _with_sanitizer(wrong: Wrong, student, a, b) -> Wrong:
    """Add the report of triton-viz's sanitizer to a stray access; return any other mistake unchanged."""
    from labs_helpers.course.verdict.sanitizer import sanitize

    if stray(wrong) and (said := sanitize(student, a, b)):
        return Wrong(wrong.case, f"{wrong.found}\n{said}", cause=wrong.causes)
    return wrong
