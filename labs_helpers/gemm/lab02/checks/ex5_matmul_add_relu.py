"""Check exercise 5 of lab 02: the epilogue that adds C and applies the ReLU."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import check_tensor_cores, numbers, surrounded
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.checks.cases import tile_cases
from labs_helpers.gemm.lab02.checks.products import product, product_causes, reuse, truth


@exercise("02/5", "epilogue", points=10, minutes=10, reference=exercises.matmul_add_relu, kernel=True)
def matmul_add_relu(student):
    a, b, c = numbers(100, 70), numbers(70, 130, seed=1), numbers(100, 130, seed=2)
    a_turned, b_turned = surrounded(a.t()).t(), surrounded(b.t()).t()
    transposed = (64 * numbers(130, 100, seed=2)).half().t()
    oblong, wide = {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 16}, {"BLOCK_M": 32}
    one_row = surrounded(numbers(1, 130, seed=2)).expand(100, 130)
    cases = (
        ("100×130×70 float32 in tiles of 64×32×16, A and B transposed", a_turned, b_turned, surrounded(c), oblong),
        ("100×130×70 float16 in tiles of 32×64×32, C transposed", a.half(), b.half(), transposed, wide),
        ("100×130×70 float32, C expanded from one row", a, b, one_row),
    )
    run = yield from tile_cases(student, cases, truth, causes, loads, fused=True)
    yield "one kernel reads C once and writes D once, which saves two kernels"
    yield check_tensor_cores(run.launches[-1])


def causes(run, a, b, c):
    dot, addend = product(a, b), c.cpu().double()
    steps = -(-a.shape[1] // run.launches[-1].constexprs.get("BLOCK_K", 32))
    yield "the ReLU comes before C is added", dot.relu() + addend
    yield "the ReLU is missing", dot + addend
    yield "C is not added", dot.relu()
    yield "the ReLU is applied to C alone; apply it to the sum", dot + addend.relu()
    yield "A·B and C each get their own ReLU; apply one ReLU to the sum", dot.relu() + addend.relu()
    yield "C is added in every step of the K loop instead of once", (dot + steps * addend).relu()
    if not torch.equal(addend, addend[:1].expand_as(addend)):
        yield "every row of D gets the same row of C; C has one row per row of D", (dot + addend[:1]).relu()
    for part, one in (("A·B", dot), ("C", addend)):
        sentence = f"the kernel tests whether {part} is above 0; it must test the sum"
        yield sentence, torch.where(one > 0, dot + addend, 0.0)
    yield "the whole tile gets one element of C; C's pointers lack their offsets", (dot + addend[:1, :1]).relu()
    yield "values above 1 are cut off, but a ReLU has no upper limit", (dot + addend).clamp(0, 1)
    running, block = torch.zeros_like(dot), run.launches[-1].constexprs.get("BLOCK_K", 32)
    for k in range(0, a.shape[1], block):
        running = (running + product(a[:, k : k + block], b[k : k + block])).relu()
    yield "the ReLU is applied in every step of the K loop instead of once", (running + addend).relu()
    yield "C is added twice", (dot + 2 * addend).relu()
    yield "C is subtracted", (dot - addend).relu()
    yield "the product is multiplied by C instead of added to it", (dot * addend).relu()
    yield (
        "the kernel takes the smaller of the sum and 0; a ReLU takes the larger, tl.maximum",
        (dot + addend).clamp(max=0),
    )
    yield "a ReLU replaces a negative value by 0; it does not change the sign", (dot + addend).abs()
    if a.dtype == torch.float16:
        yield (
            "the product is rounded to float16 before C is added; add C while the accumulator is float32",
            (dot.to(a.dtype) + c.cpu()).relu(),
        )
    yield from product_causes(run, a, b, lambda dot: (dot + addend).relu())


def loads(run, a, b, c):
    if c.stride(0):
        yield "C", c, 1, "each program needs its own tile of C once"
    yield from reuse(run, a, b)
