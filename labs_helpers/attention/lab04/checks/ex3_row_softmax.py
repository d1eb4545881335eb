"""Exercise 3 of lab 04: a softmax that reads its row in blocks."""

from itertools import chain

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.lab04.checks.bare_loads import loads_without_other
from labs_helpers.attention.lab04.checks.explaining import explaining
from labs_helpers.attention.lab04.checks.steps import LOG2E, Step, exp, mistakes, roundings, walk
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Truth, check_compiles, kernel_cases, numbers, surrounded, with_unit_stride

FIRST = "5×320"


@exercise("04/3", "row softmax", points=10, minutes=15, reference=exercises.row_softmax, kernel=True)
def row_softmax(student):
    x = numbers(4, 300)
    steps = torch.tensor([0.0, 300.0, -300.0, 600.0, 300.0], device=x.device).repeat_interleave(64)[:300]
    gap = x - 200
    gap[:, 64:200] = gap[2, :140] = -torch.inf
    faint = numbers(2, 1040) - 8 * (
        torch.arange(1040, device=x.device) >= 16
    )  # a thousand elements with e⁻⁸ of the weight
    cases = (
        (FIRST, numbers(5, 320), 64),
        ("5×300, surrounded by NaN, blocks of 128", surrounded(numbers(5, 300)), 128),
        ("4×300, all elements near +200", x + 200, 64),
        ("4×300, all elements near −200", x - 200, 64),
        ("4×300, rising and falling by 300 from block to block", x + steps, 64),
        ("4×300 with blocks of −inf, one at the start of row 2", gap, 64),
        ("70×3, a transposed view", numbers(3, 70).t(), 32),
        ("2×1040 float16, most elements with a small weight", faint.half(), 16),
    )
    run = yield from kernel_cases(student, cases, truth, causes, loads, stores=stores, output="Y", fused=True)
    yield "X is read twice and Y is written once"
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
    right = truth(x, BLOCK)
    return explaining(mistaken(run, x, BLOCK), run.value, right.expected, right.bound)


def mistaken(run, x, BLOCK: int):
    unit, x = with_unit_stride(x, 1), x.cpu().double()
    right, nan = torch.softmax(x, 1), torch.full_like(x, torch.nan)
    blocks, past = x.split(BLOCK, 1), -x.shape[1] % BLOCK
    largest = x.amax(1, keepdim=True)
    sums, numerator = torch.exp(x - largest).sum(1, keepdim=True), torch.exp(x - largest)
    never = blocks[0].amax(1, keepdim=True).isinf()
    yield "−inf − (−inf) is NaN in a row that has only seen −inf so far; subtract 0 there", right.where(~never, nan)
    made = {} if run.case == FIRST else {text: y for text, y in row_mistakes(numbers(5, 320).cpu().double(), 64)}
    to_own = roundings("X's dtype", 1.0) if run.value.dtype == torch.float16 else ()
    for sentence, answer in row_mistakes(x, BLOCK, to_own):
        if sentence not in made or torch.allclose(made[sentence], made[""], rtol=1e-3):  # else the first case shows it
            yield sentence, answer
    yield "l_i contains only the first block", numerator / torch.exp(blocks[0] - largest).sum(1, keepdim=True)
    yield "the result is not divided by l_i", numerator
    yield "the result is multiplied by l_i; divide it by l_i", numerator * sums
    yield "the second pass does not subtract the maximum: exp(x − m_i)", exp(x) / sums
    yield "the maximum is added in the exponent; subtract it: exp(x − m_i)", exp(x + largest) / sums
    yield "l_i is subtracted in the exponent; subtract its logarithm, or divide by l_i", exp(x - largest - sums)
    yield "the result is the logarithm of the softmax", torch.log_softmax(x, 1)
    own = torch.cat([block.amax(1, keepdim=True).expand_as(block) for block in blocks], 1)
    yield "the second pass subtracts each block's own maximum; m_i is the maximum of the row", torch.exp(x - own) / sums
    yield (
        "each block gets its own softmax; the softmax is over the whole row",
        torch.cat([torch.softmax(block, 1) for block in blocks], 1),
    )
    yield (
        'elements past the row\'s end are loaded as 0, and exp(0 − m) is not 0; use other=-float("inf")',
        torch.softmax(torch.nn.functional.pad(x, (0, past)), 1)[:, : x.shape[1]],
    )
    yield "exp2 is used without the factor log2(e)", torch.softmax(x / LOG2E, 1)
    yield "the second pass uses exp2 without the factor log2(e)", torch.exp((x - largest) / LOG2E) / sums
    of_unit = unit.amax(1, keepdim=True)
    for where, numerators, total in (
        ("", torch.exp(unit - of_unit), torch.exp(unit - of_unit).sum(1, keepdim=True)),
        (" in the second load", torch.exp(unit - largest), sums),
        (" in the first load", torch.exp(x - of_unit), torch.exp(unit - of_unit).sum(1, keepdim=True)),
    ):
        yield f"X's column stride is taken to be 1{where}: columns * stride_xn", numerators / total
    for sentence, times in walks(x.shape[1], BLOCK):
        m = x.where(times > 0, -torch.inf).amax(1, keepdim=True)
        yield sentence, torch.exp(x - m) / (torch.exp(x - m) * times).sum(1, keepdim=True)
    yield "the new maximum is not kept; set m_i = m_new at the end of the step", nan.where(x.isinf(), torch.inf)
    if bool((x > 80).all()):
        yield "exp overflows: the maximum is not subtracted", nan
    elif bool((x < -80).all()):
        yield "every exp is 0: the running maximum starts at 0, not at −inf, or you do not subtract it", nan
    elif past and "x" in loads_without_other(run.launches[-1].kernel):
        yield 'elements past the row\'s end are undefined; give the load other=-float("inf")', nan


def walks(N: int, BLOCK: int):
    """Yield (sentence, how often the loop visits each element of a row, (N,)) for wrong numbers in place of BLOCK."""
    for width in {16, 32, 64, 128, 256, 512, 1024} - {BLOCK}:
        for step, block in ((BLOCK, width), (width, BLOCK)):
            times = torch.zeros(N, dtype=torch.float64)
            for start in range(0, N, step):
                times[start : start + block] += 1
            yield f"the number {width} is used instead of BLOCK", times


def stores(run, x, BLOCK: int):
    early = torch.arange(x.shape[1]) < x.shape[1] - 1
    yield "the store's mask leaves out the last element; use columns < N", early.int().expand(x.shape).numpy()
    for sentence, times in walks(x.shape[1], BLOCK):
        yield sentence, times.clamp(max=1 if (times == 0).any() else torch.inf).expand(x.shape).numpy()


def row_mistakes(x: torch.Tensor, BLOCK: int, more=()):
    """Yield (sentence, Y) for mistakes in the maximum or the sum; the first pair is the right Y, with sentence ''."""
    no_values = torch.zeros(x.shape[1], 1, dtype=torch.float64)
    for sentence, step in chain([("", Step.ends)], mistakes(1.0, 1, BLOCK), more):
        if all(
            word not in sentence
            for word in (
                "acc is",
                "the accumulator",
                "of acc",
                "of l_i",
                "tl.dot",
                "V is",
                "the scale",
                "the scores are",
            )
        ):
            m, total, _ = walk(x, no_values, BLOCK, step)
            yield sentence, exp(x - m) / total


def loads(run, x, BLOCK: int):
    yield "X", x, 2, "once for the maximum and the sum together, once for the result"
