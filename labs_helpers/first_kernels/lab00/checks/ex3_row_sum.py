"""Exercise 3 of lab 00: the sum of each row, kept in float32."""

import torch

from labs_helpers.compile.source import source_of
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded, with_unit_stride
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.first_kernels.lab00.checks.blocks import block_size, covered, expect_blocks


@exercise("00/3", "row sum", points=20, minutes=15, reference=exercises.row_sum, kernel=True)
def row_sum(student):
    cases = (
        ("4×384 float16, small integers", (32 + 24 * numbers(4, 384)).round().half()),
        ("5×300, NaN around", surrounded(numbers(5, 300))),
        ("3×1100, BLOCK = 64", numbers(3, 1100), {"BLOCK": 64}),
        ("130×3, a transposed view", numbers(3, 130).t()),
        ("1×1", numbers(1, 1)),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, stores=stores, output="y", fused=True)
    yield "X read once, y written once"
    yield check_compiles("row sum", run.launches[-1])


def truth(x) -> Truth:
    values = x.cpu().double()
    # The bound of a float32 sum in any order (Higham, §3.1, as in verdict.compare). Sums of small integers are exact.
    bound, why = values.shape[1] * 2.0**-24 * values.abs().sum(1), "N·2⁻²⁴·Σ|x|"
    if x.dtype == torch.float16:
        bound, why = 0.0, "integers below 2²⁴ add up exactly in float32"
    return Truth(values.sum(1), bound, why, torch.float32, "sums of float16 are kept in float32")


def causes(run, x):
    values, N, BLOCK = x.cpu().double(), x.shape[1], block_size(run, "BLOCK", 128)
    total, steps = values.sum(1), -(-N // BLOCK)
    place = torch.arange(N)
    yield "every step of the loop adds the same columns: add the step's start to them", values[:, :BLOCK].sum(1) * steps
    yield (
        "only the first block of each row is added: the loop takes one step, or its mask blocks all later ones",
        values[:, :BLOCK].sum(1),
    )
    yield (
        "only the last block counts: add to the accumulator, do not replace it",
        values[:, (steps - 1) * BLOCK :].sum(1),
    )
    yield "the first block is missing: the loop starts at 0", values[:, BLOCK:].sum(1)
    yield "the last block is missing: the loop ends at N", values[:, : (steps - 1) * BLOCK].sum(1)
    yield "the last, partial block is missing", values[:, : N // BLOCK * BLOCK].sum(1)
    yield "the last element of each row is missing: use columns < N", values[:, :-1].sum(1)
    for end in {2 * BLOCK, 3 * BLOCK, 4 * BLOCK, 256, 512, 1024}:
        if BLOCK < end < N and end != (steps - 1) * BLOCK:
            yield (
                f"only the first {end} columns of a row are added: loop over all N",
                values[:, :end].sum(1),
            )
    overlap = sum((values[:, k : k + BLOCK].sum(1) for k in range(steps)), torch.zeros(len(values)))
    yield "the loop advances by one column: use range(0, N, BLOCK), or step * BLOCK", overlap
    far = sum((values[:, k : k + BLOCK].sum(1) for k in range(min(N, BLOCK))), torch.zeros(len(values)))
    every = sum((values[:, k : k + BLOCK].sum(1) for k in range(N)), torch.zeros(len(values)))
    yield "the loop advances by one column: use range(0, N, BLOCK), or step * BLOCK", far
    yield "the loop advances by one column: use range(0, N, BLOCK), or step * BLOCK", every
    yield "each element is added twice", 2 * total
    if BLOCK != 128:
        apart = values[:, place % 128 < BLOCK].sum(1)
        yield "the loop advances by the number 128 in place of BLOCK", apart
    yield "every program sums row 0", total[:1].expand(len(total))
    yield "the kernel assumes that X's column stride is 1", with_unit_stride(x, 1).sum(1)
    yield "this is the mean, not the sum", total / N
    inside = values * (place * x.stride(1) < N)
    yield "the mask compares offsets with N: compare columns < N", inside.sum(1)
    yield "the kernel assumes that X's row stride is 1", with_unit_stride(x, 0).sum(1)
    yield "tl.sum of a block is added to each of BLOCK partial sums; call it after the loop", BLOCK * total
    if N % BLOCK:
        yield "masked elements count as 1: use other=0.0", total + steps * BLOCK - N
    yield "this is the sum of |x|", values.abs().sum(1)
    yield "this is the sum of x²", (values**2).sum(1)
    yield "this is the largest element: use tl.sum", values.max(1).values
    lanes = torch.nn.functional.pad(values, (0, steps * BLOCK - N)).unflatten(1, (steps, BLOCK)).sum(1)
    yield "this is the largest of the partial sums: use tl.sum", lanes.max(1).values
    yield "the absolute values of the partial sums are added", lanes.abs().sum(1)
    yield "only the first of the partial sums is stored: add them up by tl.sum", lanes[:, 0]
    if x.dtype == torch.float16:
        yield (
            "the sum goes through float16, whose significand has 11 bits: keep the accumulator in tl.float32",
            total.half(),
        )
    nothing = torch.full_like(total, torch.nan)
    if "atomic_add" in source_of(run.launches[-1].kernel):
        yield "tl.atomic_add adds to the old value of y, and torch.empty does not initialize it", nothing
    elif N % BLOCK:
        yield "masked elements are not 0: pass other=0.0 to tl.load", nothing


def stores(run, x):
    M = len(x)
    yield (
        "every program stores to y[0]: the pointer is y_ptr + row, with row = tl.program_id(0)",
        covered(run, (M, lambda *_: range(1))),
    )


def loads(run, x):
    if x.shape[1] >= 64:
        expect_blocks(run, x.numel() + len(x))
    yield "X", x, 1, "each element belongs to one program, which reads it once"
