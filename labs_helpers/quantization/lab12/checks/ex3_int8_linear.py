"""Check exercise 3 of lab 12: the kernel that reads int8 weights."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores, kernel_cases
from labs_helpers.quantization.lab12 import exercises
from labs_helpers.quantization.lab12.checks import products
from labs_helpers.quantization.lab12.checks.products import activations, expect_read_once, padded, product
from labs_helpers.quantization.lab12.drawn import drawn, whole

half = torch.float16


@exercise(
    "12/3", "a kernel that reads int8 (W8A16)", points=15, minutes=20, reference=exercises.int8_linear, kernel=True
)
def int8_linear(student):
    cases = (
        ("5×70 float32, 100×70 weight", activations(5, 70, torch.float32), *_weight(100, 70)),
        ("16×96 float32, 64×96 weight in tiles of 32×32", activations(16, 96, torch.float32), *_weight(64, 96),
         {"BLOCK_N": 32, "BLOCK_K": 32}),
        ("1×129 float16, 33×129 weight", activations(1, 129, half), *_weight(33, 129)),
        ("12×256 float16, sums beyond 65,504 before the scale", activations(12, 256, half, 60.0), *_weight(70, 256)),
        ("3×40 float16, 20×40 weight in one tile of 64×64", activations(3, 40, half), *_weight(20, 40)),
    )  # fmt: skip
    run = yield from kernel_cases(student, cases, _truth, _causes, _loads, output="y", fused=True)
    yield check_tensor_cores(run.launches[-1])


def _weight(N, K):
    scale = 0.005 * (1 + drawn(N, seed=N).abs())
    return padded(whole(-127, 127, N, K, seed=K)), padded(scale)


def _dequantized(q, scale):
    return q.cpu().double() * scale.cpu().double()[:, None]


def _truth(x, q, scale):
    return products.truth(x, _dequantized(q, scale))


def _causes(run, x, q, scale):
    whole_product, of_column, w = product(x, q), scale.cpu().double(), _dequantized(q, scale)
    block = run.launches[-1].constexprs.get("BLOCK_K", 64)
    yield "the scale is missing: y = acc · scale", whole_product
    yield "acc is divided by the scale; multiply", whole_product / of_column
    yield "the scale is applied twice", whole_product * of_column**2
    yield "the scale is added; multiply", whole_product + of_column
    yield "all columns get the scale of column 0; load scale_ptr + columns", whole_product * of_column[0]
    yield (
        "every tile gets the scales of the first one; load scale_ptr + columns",
        whole_product * of_column[torch.arange(len(of_column)) % run.launches[-1].constexprs.get("BLOCK_N", 64)],
    )
    if len(x) <= len(of_column):
        by_row = whole_product * of_column[: len(x), None]
        yield "the scale runs along the rows of y; it belongs to the columns, scale[None, :]", by_row
    if len(x) > 1:
        only_row = torch.cat([whole_product[:1] * of_column, whole_product[1:]])
        yield "only the first row is scaled", only_row
    every_step = torch.zeros_like(whole_product)
    for k in range(0, x.shape[1], block):
        every_step = (every_step + product(x[:, k : k + block], q[:, k : k + block])) * of_column
    yield "acc is multiplied by the scale in every step; once after the loop", every_step
    unsigned = q.cpu().double() % 256
    yield "the weights are read as unsigned numbers", product(x, unsigned) * of_column
    yield "the sign of the weights is lost", product(x, q.abs()) * of_column
    rounded = whole_product.to(half).double() * of_column
    if x.dtype == half and not bool(rounded.isfinite().all()):
        yield "acc is converted to float16 before the scale, and overflows beyond 65,504", rounded
    other = q.cpu().double().flatten().view(q.shape[1], q.shape[0]).T
    yield "q is read as (K, N); it is (N, K): q[column, k] is at column · K + k", product(x, other) * of_column
    yield from products.loop_causes(run, x, w, 64)
    roundings = (
        ("the weight is rounded to float16 after scaling; scale acc in float32 instead", product(x, w.to(half))),
        ("the scale is rounded to float16; keep it float32", whole_product * scale.cpu().to(half).double()),
        (
            "acc is rounded to float16 before the scale; multiply in float32",
            whole_product.to(half).double() * of_column,
        ),
        (
            "the sum is rounded to float16 in every step; keep acc in float32",
            products.in_steps(x, q, block, lambda acc: acc.to(half)) * of_column,
        ),
    )
    yield from products.rounding_causes(run, product(x, w), roundings)


def _loads(run, x, q, scale):
    expect_read_once(run, "q", q, run.launches[-1].constexprs.get("BLOCK_N", 64))
    return ()
