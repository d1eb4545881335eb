"""The transfer exercise of lab 02: SiLU(A·B + bias)."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_tensor_cores, kernel_cases, matmul_bound, numbers, surrounded
from labs_helpers.gemm.lab02.checks.products import BOUND, product, tiles

silu = torch.nn.functional.silu


@exercise("02/7", "transfer: SiLU(A·B + bias)", points=30, minutes=25, kernel=True)
def silu_matmul(student):
    def operands(M, N, K, dtype):
        shapes = numbers(M, K), numbers(K, N, seed=1), 8 * numbers(N, seed=2)
        return [surrounded(x.to(dtype)) for x in shapes]

    cases = (
        ("100×130×70 float32", *operands(100, 130, 70, torch.float32)),
        ("64×64×32 float32, square", *operands(64, 64, 32, torch.float32)),
        ("33×65×40 float16", *operands(33, 65, 40, torch.float16)),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, fused=True)
    yield check_tensor_cores(run.launches[-1])


def truth(a, b, bias) -> Truth:
    addend = bias.cpu().double()
    x = product(a, b) + addend
    magnitude = a.cpu().double().abs() @ b.cpu().double().abs() + addend.abs()
    # |SiLU'| ≤ 1.1; exp and the division are good to a few float32 roundings.
    bound = 1.1 * matmul_bound(silu(x), magnitude, a.shape[1], a.dtype) + 8 * 2.0**-24 * x.abs()
    return Truth(silu(x), bound, BOUND)


def causes(run, a, b, bias):
    dot, addend = product(a, b), bias.cpu().double()
    x = dot + addend
    yield "a ReLU, not a SiLU: SiLU(x) = x · sigmoid(x)", x.relu()
    yield "only the sigmoid: SiLU(x) = x · sigmoid(x)", x.sigmoid()
    yield "the bias is added after the SiLU", silu(dot) + addend
    yield "the bias is missing", silu(dot)
    yield "sigmoid(−x): a sign is wrong", x * (-x).sigmoid()
    if len(dot) <= len(addend):
        yield "the bias goes along the rows: element j belongs to column j", silu(dot + addend[: len(dot), None])


def loads(run, a, b, bias):
    yield "bias", bias, tiles(run.launches[0], "M", a.shape[0]), "once for each row of tiles"
