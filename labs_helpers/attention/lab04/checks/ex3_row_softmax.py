"""Exercise 3 of lab 04: the softmax of a row in blocks."""

import math

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded, with_unit_stride

BLOCK = 64


@exercise("04/3", "row softmax", points=10, minutes=15, reference=exercises.row_softmax, kernel=True)
def row_softmax(student):
    x = numbers(4, 300)
    growing = numbers(5, 300) + 0.1 * torch.arange(300, device=x.device)
    gap = x.clone()
    gap[:, 64:200] = gap[2, :140] = -torch.inf
    cases = (
        ("5×320", numbers(5, 320), BLOCK),
        ("5×300, NaN around, growing along the row", surrounded(growing), BLOCK),
        ("4×300, all near +200", x + 200, BLOCK),
        ("4×300, all near −200", x - 200, BLOCK),
        ("4×300 with blocks of −inf, one of them at the start of row 2", gap, BLOCK),
        ("70×3, a transposed view", numbers(3, 70).t(), BLOCK),
        ("4×300 float16", (4 * x).half(), BLOCK),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, output="Y")
    yield "X read twice, Y written once"
    yield check_compiles("compiled", run.launches[-1])


def truth(x, BLOCK: int) -> Truth:
    values = x.cpu().double()
    expected = torch.softmax(values, 1)
    below = (values.amax(1, keepdim=True) - values).nan_to_num(posinf=0.0)
    # l: a sum of N exponentials, rescaled N/BLOCK times by factors whose exponents add up to less than `below`.
    steps = 4 * below + 4 * below.amax(1, keepdim=True) + x.shape[1] + 16
    bound = expected * (2.0**-24 * steps + torch.finfo(x.dtype).eps / 2) + 2.0**-25 * (x.dtype == torch.float16) + 1e-37
    return Truth(expected, bound, "float32 exponentials and sums, one rounding", x.dtype, "X has that")


def causes(run, x, BLOCK: int):
    strided, x = torch.softmax(with_unit_stride(x, 1), 1), x.cpu().double()
    right, nan = torch.softmax(x, 1), torch.full_like(x, torch.nan)
    blocks, past = x.split(BLOCK, 1), -x.shape[1] % BLOCK
    running = torch.stack([block.amax(1) for block in blocks], 1).cummax(1).values
    largest = running[:, -1:]
    sums = torch.stack(
        [(b - m[:, None]).exp().sum(1) for b, m in zip(blocks, running.clamp(min=-1e30).T, strict=True)], 1
    )
    numerator = torch.exp(x - largest)
    never = running[:, :1].isinf()
    yield "−inf − (−inf) is NaN in a row that has only seen −inf so far: subtract 0 there", right.where(~never, nan)
    yield "l_i is not rescaled when the maximum grows", numerator / sums.sum(1, keepdim=True)
    yield "only the last block is in l_i: add to it", numerator / sums[:, -1:]
    yield "only the first block is in l_i", numerator / torch.exp(blocks[0] - largest).sum(1, keepdim=True)
    yield "the result is not divided by l_i", numerator
    yield "the result is the logarithm", torch.log_softmax(x, 1)
    yield "each block is a softmax of its own", torch.cat([torch.softmax(block, 1) for block in blocks], 1)
    yield (
        'what is past the row\'s end counts as 0, and exp(0 − m) is not 0: other=-float("inf")',
        torch.softmax(torch.nn.functional.pad(x, (0, past)), 1)[:, : x.shape[1]],
    )
    yield "exp2 without the factor log2(e)", torch.softmax(x * math.log(2), 1)
    yield "X's column stride is taken to be 1: columns * stride_xn", strided
    yield "the new maximum is not kept: m_i = m_new at the end of the step", nan.where(x.isinf(), torch.inf)
    if bool((x > 80).all()):
        yield "exp overflows: the maximum is not subtracted", nan
    elif bool((x < -80).all()):
        yield "every exp is 0: the running maximum starts at 0, not at −inf, or is not subtracted", nan
    elif past:
        yield 'what is past the row\'s end is undefined: give the load other=-float("inf")', nan


def loads(run, x, BLOCK: int):
    yield "X", x, 2, "once for maximum and sum together, once for the result"
