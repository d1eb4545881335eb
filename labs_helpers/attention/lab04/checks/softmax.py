"""What proves exercise 3 of lab 04 right: the softmax of a row in blocks."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.compare import close
from labs_helpers.course.verdict.inputs import numbers, with_unit_stride
from labs_helpers.course.verdict.kernel_trial import compiled_for, run_watched
from labs_helpers.course.verdict.surroundings import surrounded
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.measure.machine import this_machine

MINUS_INF = float("-inf")


@exercise("04/3", "row softmax", points=10, minutes=15, reference=exercises.row_softmax, kernel=True)
def row_softmax(student):
    gap = numbers(4, 300)
    gap[:, 64:200] = gap[2, :140] = MINUS_INF
    for case, x in {
        "5×320": numbers(5, 320),
        "5×300, NaN around, growing along the row": surrounded(
            numbers(5, 300) + 0.1 * torch.arange(300, device=this_machine().device)
        ),
        "4×300, all near +200": numbers(4, 300) + 200,
        "4×300, all near −200": numbers(4, 300) - 200,
        "4×300 with blocks of −inf, one of them at the start of row 2": gap,
        "70×3, a transposed view": numbers(3, 70).t(),
        "4×300 float16": (4 * numbers(4, 300)).half(),
    }.items():
        run = run_watched(case, student, x, BLOCK=64)
        run.expect_written_once("Y")
        if run.value.dtype != x.dtype:
            raise Wrong(case, f"the result is {run.value.dtype}, X is {x.dtype}")
        values = x.cpu().double()
        expected = torch.softmax(values, 1)
        below = (values.amax(1, keepdim=True) - values).nan_to_num(posinf=0.0)
        half = torch.finfo(x.dtype).eps / 2
        # l: a sum of N exponentials, rescaled N/BLOCK times by factors whose exponents add up to less than `below`.
        bound = expected * (2.0**-24 * (4 * below + 4 * below.amax(1, keepdim=True) + x.shape[1] + 16) + half)
        close(
            run.value,
            expected,
            bound + 2.0**-25 * (x.dtype == torch.float16) + 1e-37,
            case,
            "float32 exponentials and sums, one rounding",
            _softmax_slips(values, 64) | _unkept(run.value, x),
        )
        run.expect_loads("X", x, 2, "once for maximum and sum together, once for the result")
        yield case
    yield "X read twice, Y written once"
    compiled = compiled_for("compiled", run.launches[-1], "sm_90", torch.float16)
    yield f"compiles for sm_90: {compiled.registers} registers a thread"


def _softmax_slips(x, BLOCK: int) -> dict:
    """Cause → what the softmax would be. x: float64 (M, N)."""
    M, N = x.shape
    blocks = x.split(BLOCK, 1)
    running = torch.stack([b.amax(1) for b in blocks], 1).cummax(1).values
    largest = running[:, -1:]
    sums = torch.stack([torch.exp(b - m[:, None]).sum(1) for b, m in zip(blocks, running.T, strict=True)], 1)
    numerator = torch.exp(x - largest)
    nan = torch.full_like(x, torch.nan)
    padded = -N % BLOCK
    wrong = {
        "−inf − (−inf) is NaN in a row that has only seen −inf so far: subtract 0 there": torch.softmax(x, 1).where(
            ~torch.isinf(running[:, :1]), nan
        ),
        "l_i is not rescaled when the maximum grows": numerator / sums.sum(1, keepdim=True),
        "only the last block is in l_i: add to it": numerator / sums[:, -1:],
        "only the first block is in l_i": numerator / torch.exp(blocks[0] - largest).sum(1, keepdim=True),
        "the result is not divided by l_i": numerator,
        "the result is the logarithm": torch.log_softmax(x, 1),
        "each block is a softmax of its own": torch.cat([torch.softmax(b, 1) for b in blocks], 1),
        'what is past the row\'s end counts as 0, and exp(0 − m) is not 0: other=-float("inf")': torch.softmax(
            torch.cat([x, x.new_zeros(M, padded)], 1), 1
        )[:, :N],
        "exp2 without the factor log2(e)": torch.softmax(x * torch.log(torch.tensor(2.0, dtype=x.dtype)), 1),
    }
    if bool((x > 80).all()):
        wrong["exp overflows: the maximum is not subtracted"] = nan
    if bool((x < -80).all()):
        wrong["every exp is 0: the running maximum starts at 0, not at −inf, or is not subtracted"] = nan
    if padded:
        wrong['what is past the row\'s end is undefined: give the load other=-float("inf")'] = nan
    return wrong


def _unkept(got, x) -> dict:
    """Two causes that values alone do not tell: X's stride forgotten, and a running maximum that stays −inf."""
    causes = {}
    if x.stride(1) != 1:
        causes["X's column stride is taken to be 1: columns * stride_xn"] = torch.softmax(with_unit_stride(x, 1), 1)
    if bool(got.isinf().any()):
        causes["the new maximum is not kept: m_i = m_new at the end of the step"] = torch.where(
            x.cpu() == MINUS_INF, torch.nan, torch.inf
        ).double()
    return causes
