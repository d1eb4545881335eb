"""Check the transfer exercise of lab 02: SiLU(A·B + bias)."""

import math

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_tensor_cores, matmul_bound, numbers, surrounded
from labs_helpers.gemm.lab02.checks.cases import tile_cases
from labs_helpers.gemm.lab02.checks.products import BOUND, product, product_causes, reuse, tiles

silu = torch.nn.functional.silu


@exercise("02/7", "transfer: SiLU(A·B + bias)", points=30, minutes=25, kernel=True)
def silu_matmul(student):
    def operands(M, N, K, dtype, scale=8):
        a, b, bias = (x.to(dtype) for x in (numbers(M, K), numbers(K, N, seed=1), scale * numbers(N, seed=2)))
        return surrounded(a.t()).t(), surrounded(b.t()).t(), surrounded(bias)

    oblong, wide = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 16}, {"BLOCK_M": 16}
    large = operands(130, 100, 32, torch.float32, scale=80)  # larger tiles than the function's own
    cases = (
        ("100×130×70 float32 in tiles of 64×32×16, transposed", *operands(100, 130, 70, torch.float32), oblong),
        ("33×65×40 float16 in tiles of 16×64×32", *operands(33, 65, 40, torch.float16), wide),
        ("130×100×32 float32 in tiles of 128×128×32, biases beyond ±100", *large, {"BLOCK_M": 128, "BLOCK_N": 128}),
    )
    run = yield from tile_cases(student, cases, truth, causes, loads, fused=True)
    yield check_tensor_cores(run.launches[-1])


def truth(a, b, bias) -> Truth:
    addend = bias.cpu().double()
    x = product(a, b) + addend
    magnitude = a.cpu().double().abs() @ b.cpu().double().abs() + addend.abs()
    # |SiLU'| ≤ 1.1, and exp and the division add a few float32 roundings.
    bound = 1.1 * matmul_bound(silu(x), magnitude, a.shape[1], a.dtype) + 8 * 2.0**-24 * x.abs()
    return Truth(silu(x), bound, BOUND, a.dtype)


def causes(run, a, b, bias):
    dot, addend = product(a, b), bias.cpu().double()
    x = dot + addend
    steps = -(-a.shape[1] // run.launches[-1].constexprs.get("BLOCK_K", 32))
    yield "this is a ReLU, not a SiLU: SiLU(x) = x · sigmoid(x)", x.relu()
    yield "this is only the sigmoid: SiLU(x) = x · sigmoid(x)", x.sigmoid()
    yield "the bias is added after the SiLU", silu(dot) + addend
    yield "the bias is missing", silu(dot)
    yield "the SiLU is missing", x
    yield "the bias is added in every step of the K loop instead of once", silu(dot + steps * addend)
    yield "the bias is subtracted", silu(dot - addend)
    yield "a sign is wrong: this is x · sigmoid(−x)", x * (-x).sigmoid()
    yield "the bias is only in the sigmoid; both factors use x = A·B + bias", dot * x.sigmoid()
    yield "the bias is not in the sigmoid; both factors use x = A·B + bias", x * dot.sigmoid()
    for unbracketed in (x * (1 + (-x).exp()), x / 1 + (-x).exp()):
        yield "1 / 1 + exp(−x) divides first; sigmoid(x) is 1 / (1 + exp(−x))", unbracketed
    yield "the SiLU is applied twice", silu(silu(x))
    yield "the kernel computes a power of 2 instead of e; use tl.exp", x * (x * math.log(2)).sigmoid()
    yield "this is a tanh, not a sigmoid", x * x.tanh()
    yield "x is added to its sigmoid; multiply the two", x + x.sigmoid()
    yield "x is multiplied in twice; SiLU(x) = x · sigmoid(x)", x * x * x.sigmoid()
    yield "the denominator of a sigmoid is 1 + exp(−x), not 1 − exp(−x)", x / (1 - (-x).exp())
    yield "this is a softplus, log(1 + exp(x)), not a SiLU", torch.nn.functional.softplus(x)
    yield "every column gets one element of bias; load from bias_ptr + columns", silu(dot + addend[0])
    yield "the bias is added twice", silu(dot + 2 * addend)
    yield "the product is multiplied by the bias; add the bias", silu(dot * addend)
    yield "sigmoid(1.702·x) belongs to a GELU; SiLU(x) = x · sigmoid(x)", x * (1.702 * x).sigmoid()
    single = x.float()
    for overflowing in (single * single.exp() / (1 + single.exp()), single * (single.exp() / (1 + single.exp()))):
        yield (
            "exp(x) is infinite in float32 for x > 88.7, and inf / inf is NaN; use exp(−x), which is 0 there",
            overflowing.double(),
        )
    if a.dtype == torch.float16:
        found, early = run.value.cpu().double(), silu(x.half().double())
        if (found - early).abs().mean() < 0.5 * (found - silu(x)).abs().mean():
            yield "x is rounded to float16 before the SiLU; keep float32 until the store", found
    if len(dot) <= len(addend):
        yield "the bias runs along the rows; element j belongs to column j", silu(dot + addend[: len(dot), None])
    yield from product_causes(run, a, b, lambda dot: silu(dot + addend))


def loads(run, a, b, bias):
    yield "bias", bias, tiles(run.launches[0], "M", a.shape[0]), "once for each row of tiles"
    yield from reuse(run, a, b)
