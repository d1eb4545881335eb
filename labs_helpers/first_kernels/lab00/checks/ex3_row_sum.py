"""Exercise 3 of lab 00: the sum of each row, kept in float32."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded, with_unit_stride
from labs_helpers.first_kernels.lab00 import exercises


@exercise("00/3", "row sum", points=20, minutes=15, reference=exercises.row_sum, kernel=True)
def row_sum(student):
    cases = (
        ("4×256 float16, small integers", (32 + 8 * numbers(4, 256)).round().half()),
        ("5×300, NaN around", surrounded(numbers(5, 300))),
        ("130×3, a transposed view", numbers(3, 130).t()),
        ("1×1", numbers(1, 1)),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, output="y")
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
    values, N = x.cpu().double(), x.shape[1]
    total, first = values.sum(1), values[:, :128].sum(1)
    yield "every step of the loop adds the same columns: its start has to enter them", first * -(-N // 128)
    yield "only the first block of each row is added", first
    last = values[:, (N - 1) // 128 * 128 :].sum(1)
    yield "only the last block is left: add to the accumulator, do not replace it", last
    yield "the last, partial block is missing", values[:, : N // 128 * 128].sum(1)
    yield "every program sums row 0", total[:1].expand(len(total))
    yield "X's column stride is taken to be 1", with_unit_stride(x, 1).sum(1)
    yield "the mean, not the sum", total / N
    if x.dtype == torch.float16:
        yield "the sum goes through float16, which has 11 bits: keep the accumulator in tl.float32", total.half()
    yield "a masked element is not 0: give the load other=0.0", torch.full_like(total, torch.nan)


def loads(run, x):
    yield "X", x, 1, "each element belongs to one program, which reads it once"
