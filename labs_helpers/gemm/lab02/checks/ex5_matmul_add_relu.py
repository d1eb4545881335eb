"""Exercise 5 of lab 02: C and the ReLU join the product before it leaves the registers."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores, kernel_cases, numbers, surrounded
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.products import product, truth


@exercise("02/5", "epilogue", points=10, minutes=10, reference=exercises.matmul_add_relu, kernel=True)
def matmul_add_relu(student):
    a, b, c = numbers(100, 70), numbers(70, 130, seed=1), numbers(100, 130, seed=2)
    transposed = (64 * numbers(130, 100, seed=2)).half().t()
    cases = (
        ("100×130×70 float32", a, b, surrounded(c)),
        ("100×130×70 float16, C transposed", a.half(), b.half(), transposed),
        ("100×130×70 float32, C one row expanded", a, b, surrounded(numbers(1, 130, seed=2)).expand(100, 130)),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, fused=True)
    yield "one kernel, C read once, D written once: two kernels fewer"
    yield check_tensor_cores(run.launches[-1])


def causes(run, a, b, c):
    dot, addend = product(a, b), c.cpu().double()
    yield "the ReLU comes before C is added", dot.relu() + addend
    yield "the ReLU is missing", dot + addend
    yield "C is not added", dot.relu()
    yield (
        "C is added in every step of the K loop instead of once",
        (dot + -(-a.shape[1] // 32) * addend).relu(),
    )
    if a.dtype == torch.float16:
        yield (
            "the product is rounded to float16 before C is added: add C while the accumulator is float32",
            (dot.to(a.dtype) + c.cpu()).relu(),
        )


def loads(run, a, b, c):
    if c.stride(0):
        yield "C", c, 1, "each program needs its own tile of C once"
