"""What proves exercises 2 and 3 of lab 04 right: two softmaxes merged, and one row's in blocks."""

from __future__ import annotations

import torch

from labs_helpers import attention
from labs_helpers.bench.machine import this_machine
from labs_helpers.course.compare import close
from labs_helpers.course.exercise import exercise
from labs_helpers.course.inputs import numbers
from labs_helpers.course.kernel_trial import compiled_for, run_watched
from labs_helpers.course.surroundings import surrounded
from labs_helpers.course.wrong import Wrong

MINUS_INF = float("-inf")


@exercise("04/2", "merge", points=10, minutes=15, reference=attention.merge)
def merge(student):
    scores, values = numbers(8, 60).cpu(), numbers(60, 16, seed=1).cpu()
    cases = {"scores near 0": scores, "scores near +200": 200 + scores, "scores near −200": scores - 200,
             "scores 400 apart": 200 * (2 * (torch.arange(60) % 20 < 7) - 1) + scores}
    for case, s in cases.items():
        first, second, third = (_part(s[:, keys], values[keys]) for keys in
                                (slice(0, 7), slice(7, 20), slice(20, 60)))
        _merged(case, student, first, second)
        _merged(f"{case}, the parts swapped", student, second, first)
        whole = _part(s.double(), values.double())
        for order, tree in {"(1, 2), 3": ((first, second), third), "1, (2, 3)": (first, (second, third)),
                            "(3, 1), 2": ((third, first), second)}.items():
            m, total, o = _fold(student, tree)
            bound = 2.0**-24 * (60 + 8 * s.abs().max())
            close(o / total[:, None], whole[2] / whole[1][:, None], bound * values.abs().max(),
                  f"{case}, three parts as {order}, o / l", "float32 exponentials and sums")
            close(m + total.log(), whole[0] + whole[1].log(), bound, f"{case}, three parts as {order}, m + log l",
                  "float32 exponentials and sums")
        yield f"{case}: any order"
    part, empty = _part(scores, values), _part(scores[:, :0], values[:0])
    some = [p.clone() for p in part]
    for half, nothing in zip(some, (MINUS_INF, 0.0, 0.0), strict=True):
        half[::2] = nothing
    for case, parts in {"the second part empty": (part, empty), "the first part empty": (empty, part),
                        "both empty": (empty, empty), "every other row empty in both": (some, some)}.items():
        _merged(case, student, *parts)
        yield case


def _part(s, values):
    """(m, l, o) of a part, for scores s (rows, keys) and values (keys, D)."""
    m = s.amax(1) if s.shape[1] else torch.full((len(s),), MINUS_INF, dtype=s.dtype)
    p = torch.exp(s - m[:, None])
    return m, p.sum(1), p @ values


def _fold(student, tree):
    return tree if isinstance(tree[0], torch.Tensor) else student(*_fold(student, tree[0]), *_fold(student, tree[1]))


def _merged(case: str, student, first, second) -> None:
    answer = student(*(t.clone() for t in first), *(t.clone() for t in second))
    if not (isinstance(answer, tuple) and len(answer) == 3):
        raise Wrong(case, f"returned {type(answer).__name__}, expected three tensors: (m, l, o)")
    (m1, l1, o1), (m2, l2, o2) = ([t.double() for t in part] for part in (first, second))
    m, total, o = attention.merge(m1, l1, o1, m2, l2, o2)
    shift = m.masked_fill(m == MINUS_INF, 0.0)
    f1, f2 = torch.exp(m1 - shift), torch.exp(m2 - shift)
    away = 2.0**-24 * (8 + 4 * ((m1 - shift).abs() * f1).nan_to_num() + 4 * ((m2 - shift).abs() * f2).nan_to_num())
    if not torch.equal(torch.as_tensor(answer[0]).double(), m):
        close(answer[0], m.nan_to_num(neginf=-1e38), 0.0, f"{case}, m", "a maximum is exact", {
            "m is the larger of the two, not their sum": m1 + m2,
            "the minimum": torch.minimum(m1, m2), "only the first part's": m1, "only the second part's": m2})
    empty = "where both parts are empty, −inf − (−inf) is NaN: subtract 0 there"
    close(answer[1], total, away * (l1 + l2) + 1e-37, f"{case}, l", "float32", {
        empty: total.where(m != MINUS_INF, torch.nan),
        "l is not rescaled to the common maximum": l1 + l2,
        "the factor is exp(m − m1), it has to be exp(m1 − m)": l1 / f1 + l2 / f2,
        "l1 is not rescaled": l1 + f2 * l2, "l2 is not rescaled": f1 * l1 + l2,
        "the parts' factors are swapped": f2 * l1 + f1 * l2,
        "the factors are in base 2: exp, not exp2": 2 ** (m1 - shift) * l1 + 2 ** (m2 - shift) * l2})
    one, two = f1[:, None], f2[:, None]
    close(answer[2], o, away[:, None] * (o1.abs() + o2.abs()) + 1e-37, f"{case}, o", "float32", {
        empty: o.where((m != MINUS_INF)[:, None], torch.nan),
        "o is not rescaled to the common maximum": o1 + o2,
        "o1 is not rescaled": o1 + two * o2, "o2 is not rescaled": one * o1 + o2,
        "the parts' factors are swapped": two * o1 + one * o2,
        "o is divided by l: it stays undivided until the end": o / total[:, None],
        "o is weighted with l as well: l is in it already": one * l1[:, None] * o1 + two * l2[:, None] * o2})


@exercise("04/3", "row softmax", points=10, minutes=15, reference=attention.row_softmax, kernel=True)
def row_softmax(student):
    gap = numbers(4, 300)
    gap[:, 64:200] = gap[2, :140] = MINUS_INF
    for case, x in {
        "5×320": numbers(5, 320),
        "5×300, NaN around, growing along the row": surrounded(numbers(5, 300) + 0.1 * torch.arange(
            300, device=this_machine().device)),
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
        close(run.value, expected, bound + 2.0**-25 * (x.dtype == torch.float16) + 1e-37, case,
              "float32 exponentials and sums, one rounding", _softmax_slips(values, 64))
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
        "−inf − (−inf) is NaN in a row that has only seen −inf so far: subtract 0 there":
            torch.softmax(x, 1).where(~torch.isinf(running[:, :1]), nan),
        "l_i is not rescaled when the maximum grows": numerator / sums.sum(1, keepdim=True),
        "only the last block is in l_i: add to it": numerator / sums[:, -1:],
        "only the first block is in l_i": numerator / torch.exp(blocks[0] - largest).sum(1, keepdim=True),
        "the result is not divided by l_i": numerator,
        "the result is the logarithm": torch.log_softmax(x, 1),
        "each block is a softmax of its own": torch.cat([torch.softmax(b, 1) for b in blocks], 1),
        "what is past the row's end counts as 0, and exp(0 − m) is not 0: other=-float(\"inf\")":
            torch.softmax(torch.cat([x, x.new_zeros(M, padded)], 1), 1)[:, :N],
        "exp2 without the factor log2(e)": torch.softmax(x * torch.log(torch.tensor(2.0, dtype=x.dtype)), 1),
    }
    if bool((x > 80).all()):
        wrong["exp overflows: the maximum is not subtracted"] = nan
    if bool((x < -80).all()):
        wrong["every exp is 0: the running maximum starts at 0, not at −inf, or is not subtracted"] = nan
    if padded:
        wrong["what is past the row's end is undefined: give the load other=-float(\"inf\")"] = nan
    return wrong
