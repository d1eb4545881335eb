"""What proves exercise 2 of lab 04 right: two parts of a softmax merged."""

from __future__ import annotations

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.compare import close
from labs_helpers.course.verdict.inputs import numbers
from labs_helpers.course.verdict.wrong import Wrong

MINUS_INF = float("-inf")
NAMES = "m1", "l1", "o1", "m2", "l2", "o2"


@exercise("04/2", "merge", points=10, minutes=15, reference=exercises.merge)
def merge(student):
    scores, values = numbers(8, 60).cpu(), numbers(60, 16, seed=1).cpu()
    cases = {
        "scores near 0": scores,
        "scores near +200": 200 + scores,
        "scores near −200": scores - 200,
        "scores 400 apart": 200 * (2 * (torch.arange(60) % 20 < 7) - 1) + scores,
    }
    for case, s in cases.items():
        first, second, third = (_part(s[:, keys], values[keys]) for keys in (slice(0, 7), slice(7, 20), slice(20, 60)))
        _merged(case, student, first, second)
        _merged(f"{case}, the parts swapped", student, second, first)
        whole = _part(s.double(), values.double())
        for order, tree in {
            "(1, 2), 3": ((first, second), third),
            "1, (2, 3)": (first, (second, third)),
            "(3, 1), 2": ((third, first), second),
        }.items():
            m, total, o = _fold(student, tree)
            bound = 2.0**-24 * (60 + 8 * s.abs().max())
            close(
                o / total[:, None],
                whole[2] / whole[1][:, None],
                bound * values.abs().max(),
                f"{case}, three parts as {order}, o / l",
                "float32 exponentials and sums",
            )
            close(
                m + total.log(),
                whole[0] + whole[1].log(),
                bound,
                f"{case}, three parts as {order}, m + log l",
                "float32 exponentials and sums",
            )
        yield f"{case}: any order"
    part, empty = _part(scores, values), _part(scores[:, :0], values[:0])
    some = [p.clone() for p in part]
    for half, nothing in zip(some, (MINUS_INF, 0.0, 0.0), strict=True):
        half[::2] = nothing
    for case, parts in {
        "the second part empty": (part, empty),
        "the first part empty": (empty, part),
        "both empty": (empty, empty),
        "every other row empty in both": (some, some),
    }.items():
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
    given = [t.clone() for t in (*first, *second)]
    answer = student(*given)
    for name, now, before in zip(NAMES, given, (*first, *second), strict=True):
        if not torch.equal(now, before):
            raise Wrong(
                case,
                f"{name} is changed in place.\nLikely cause: +=, *= or a function whose name ends in _; "
                "both parts stay as they are, the result is three new tensors",
            )
    if not (isinstance(answer, tuple) and len(answer) == 3):
        raise Wrong(case, f"returned {type(answer).__name__}, expected three tensors: (m, l, o)")
    (m1, l1, o1), (m2, l2, o2) = ([t.double() for t in part] for part in (first, second))
    m, total, o = exercises.merge(m1, l1, o1, m2, l2, o2)
    shift = m.masked_fill(m == MINUS_INF, 0.0)
    f1, f2 = torch.exp(m1 - shift), torch.exp(m2 - shift)
    away = 2.0**-24 * (8 + 4 * ((m1 - shift).abs() * f1).nan_to_num() + 4 * ((m2 - shift).abs() * f2).nan_to_num())
    _close_m(
        f"{case}, m",
        answer[0],
        m,
        {
            "the 0 that is subtracted where both parts are empty is returned; return the maximum itself": shift,
            "m is the larger of the two, not their sum": m1 + m2,
            "the minimum": torch.minimum(m1, m2),
            "only the first part's": m1,
            "only the second part's": m2,
        },
    )
    empty = "where both parts are empty, −inf − (−inf) is NaN: subtract 0 there"
    close(
        answer[1],
        total,
        away * (l1 + l2) + 1e-37,
        f"{case}, l",
        "float32",
        {
            empty: total.where(m != MINUS_INF, torch.nan),
            "l is not rescaled to the common maximum": l1 + l2,
            "the factor is exp(m − m1), it has to be exp(m1 − m)": l1 / f1 + l2 / f2,
            "the first part's factor is exp(m − m1), it has to be exp(m1 − m)": l1 / f1 + f2 * l2,
            "the second part's factor is exp(m − m2), it has to be exp(m2 − m)": f1 * l1 + l2 / f2,
            "l1 is not rescaled": l1 + f2 * l2,
            "l2 is not rescaled": f1 * l1 + l2,
            "the parts' factors are swapped": f2 * l1 + f1 * l2,
            "the factors are in base 2: exp, not exp2": 2 ** (m1 - shift) * l1 + 2 ** (m2 - shift) * l2,
        },
    )
    one, two = f1[:, None], f2[:, None]
    close(
        answer[2],
        o,
        away[:, None] * (o1.abs() + o2.abs()) + 1e-37,
        f"{case}, o",
        "float32",
        {
            empty: o.where((m != MINUS_INF)[:, None], torch.nan),
            "o is not rescaled to the common maximum": o1 + o2,
            "o is divided by the factors, it has to be multiplied": o1 / one + o2 / two,
            "the first part's o is divided by its factor, it has to be multiplied": o1 / one + two * o2,
            "the second part's o is divided by its factor, it has to be multiplied": one * o1 + o2 / two,
            "o1 is not rescaled": o1 + two * o2,
            "o2 is not rescaled": one * o1 + o2,
            "the parts' factors are swapped": two * o1 + one * o2,
            "o is divided by l: it stays undivided until the end": o / total[:, None],
            "o is weighted with l as well: l is in it already": one * l1[:, None] * o1 + two * l2[:, None] * o2,
        },
    )


def _close_m(case: str, got, m, suspects: dict) -> None:
    """`close` on maxima; where −inf is expected, −inf is right."""
    if isinstance(got, torch.Tensor) and got.shape == m.shape:
        same = (m == MINUS_INF) & (got == MINUS_INF)
        got, m = got.masked_fill(same, 0.0), m.masked_fill(same, 0.0)
        suspects = {text: value.masked_fill(same, 0.0) for text, value in suspects.items()}
    close(got, m, 0.0, case, "a maximum is exact", suspects)
