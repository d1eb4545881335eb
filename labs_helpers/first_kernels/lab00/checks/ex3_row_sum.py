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
    # A float32 sum in any order (Higham, §3.1 as in verdict.compare); of small integers every one is exact.
    bound, why = values.shape[1] * 2.0**-24 * values.abs().sum(1), "N·2⁻²⁴·Σ|x|"
    if x.dtype == torch.float16:
        bound, why = 0.0, "integers below 2²⁴ add up exactly in float32"
    return Truth(values.sum(1), bound, why, torch.float32, "sums of float16 are kept in float32")


def causes(run, x):
    values, N, BLOCK = x.cpu().double(), x.shape[1], block_size(run, "BLOCK", 128)
    total, steps = values.sum(1), -(-N // BLOCK)
    place = torch.arange(N)
    yield "every step of the loop adds the same columns: its start has to enter them", values[:, :BLOCK].sum(1) * steps
    yield (
        "only the first block of each row is added: the loop makes one step, or its mask lets nothing through after it",
        values[:, :BLOCK].sum(1),
    )
    yield (
        "only the last block is left: add to the accumulator, do not replace it",
        values[:, (steps - 1) * BLOCK :].sum(1),
    )
    yield "the first block is missing: the loop starts at 0", values[:, BLOCK:].sum(1)
    yield "the last block is missing: the loop ends at N", values[:, : (steps - 1) * BLOCK].sum(1)
    yield "the last, partial block is missing", values[:, : N // BLOCK * BLOCK].sum(1)
    yield "the last element of each row is missing: columns < N", values[:, :-1].sum(1)
    for end in {2 * BLOCK, 3 * BLOCK, 4 * BLOCK, 256, 512, 1024}:
        if BLOCK < end < N and end != (steps - 1) * BLOCK:
            yield (
                f"only the first {end} columns of a row are added: a loop goes over all N of them",
                values[:, :end].sum(1),
            )
    overlap = sum((values[:, k : k + BLOCK].sum(1) for k in range(steps)), torch.zeros(len(values)))
    yield "the loop's steps are one column apart: range(0, N, BLOCK), or step * BLOCK", overlap
    far = sum((values[:, k : k + BLOCK].sum(1) for k in range(min(N, BLOCK))), torch.zeros(len(values)))
    every = sum((values[:, k : k + BLOCK].sum(1) for k in range(N)), torch.zeros(len(values)))
    yield "the loop's steps are one column apart: range(0, N, BLOCK), or step * BLOCK", far
    yield "the loop's steps are one column apart: range(0, N, BLOCK), or step * BLOCK", every
    yield "each element is added twice", 2 * total
    if BLOCK != 128:
        apart = values[:, place % 128 < BLOCK].sum(1)
        yield "the loop's steps are 128 apart, written as a number where BLOCK belongs", apart
    yield "every program sums row 0", total[:1].expand(len(total))
    yield "X's column stride is taken to be 1", with_unit_stride(x, 1).sum(1)
    yield "the mean, not the sum", total / N
    inside = values * (place * x.stride(1) < N)
    yield "the mask holds offsets against N, not columns: columns < N", inside.sum(1)
    yield "X's row stride is taken to be 1", with_unit_stride(x, 0).sum(1)
    yield "tl.sum of a block is added to each of BLOCK partial sums; it belongs behind the loop", BLOCK * total
    if N % BLOCK:
        yield "masked elements are added as 1, not as 0: other=0.0", total + steps * BLOCK - N
    yield "the sum of |x|", values.abs().sum(1)
    yield "the sum of x²", (values**2).sum(1)
    yield "the largest element, not the sum: tl.sum", values.max(1).values
    lanes = torch.nn.functional.pad(values, (0, steps * BLOCK - N)).unflatten(1, (steps, BLOCK)).sum(1)
    yield "the largest of the partial sums, not their sum: tl.sum", lanes.max(1).values
    yield "the partial sums are added without their signs", lanes.abs().sum(1)
    yield "only the first of the partial sums is stored: tl.sum adds them up", lanes[:, 0]
    if x.dtype == torch.float16:
        yield (
            "the sum goes through float16, whose significand has 11 bits: keep the accumulator in tl.float32",
            total.half(),
        )
    nothing = torch.full_like(total, torch.nan)
    if "atomic_add" in source_of(run.launches[-1].kernel):
        yield "tl.atomic_add adds to what stands in y, and torch.empty leaves there what was there before", nothing
    elif N % BLOCK:
        yield "a masked element is not 0: give the load other=0.0", nothing


def stores(run, x):
    M = len(x)
    yield (
        "every program stores to y[0]: its row, tl.program_id(0), has to enter the pointer, y_ptr + row",
        covered(run, (M, lambda *_: range(1))),
    )


def loads(run, x):
    if x.shape[1] >= 64:
        expect_blocks(run, x.numel() + len(x))
    yield "X", x, 1, "each element belongs to one program, which reads it once"
