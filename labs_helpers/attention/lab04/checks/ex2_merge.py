"""Exercise 2 of lab 04: two parts of a softmax merged."""

import math
from itertools import chain, permutations

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.lab04.checks.causes import times_too_large
from labs_helpers.attention.lab04.checks.pytorch_errors import explained
from labs_helpers.attention.lab04.checks.results import expect_parts
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_close, numbers

UNIT = 2.0**-24


@exercise("04/2", "merge", points=10, minutes=15, reference=exercises.merge)
def merge(student):
    scores, values = numbers(8, 60).cpu(), numbers(60, 16, seed=1).cpu()
    for case, s in (
        ("scores near 0", scores),
        ("scores near +200", 200 + scores),
        ("scores near −200", scores - 200),
        ("scores 400 apart", 200 * (2 * (torch.arange(60) % 20 < 7) - 1) + scores),
    ):
        parts = (_part(s[:, keys], values[keys]) for keys in (slice(7), slice(7, 20), slice(20, 60)))
        for first, second, third in permutations(parts):
            both = _expect_merged(case, student, first, second)
            _expect_merged(f"{case}, three parts", student, both, third)
            _expect_merged(f"{case}, three parts", student, third, both)
        yield f"{case}: any order"

    part, empty = _part(scores, values), _part(scores[:, :0], values[:0])
    some = _part(scores.masked_fill(torch.arange(8)[:, None] % 2 == 0, -torch.inf), values)
    for case, *parts in (
        ("the second part empty", part, empty),
        ("the first part empty", empty, part),
        ("both empty", empty, empty),
        ("every other row empty in both", some, some),
    ):
        _expect_merged(case, student, *parts)
        yield case


def _part(s, values):
    """(m, l, o) of a part, for scores s (rows, keys) and values (keys, D)."""
    m = s.amax(1) if s.shape[1] else s.new_full((len(s),), -torch.inf)
    p = torch.exp(s - m.clamp(min=-1e30)[:, None])
    return m, p.sum(1), p @ values


def _expect_merged(case: str, student, first, second) -> tuple:
    """The student's (m, l, o) of both parts; raises Wrong."""
    given = [t.clone() for t in (*first, *second)]
    shapes = {name: (part.shape, None) for name, part in zip("mlo", first, strict=True)}
    with explained(student, case):
        answer = student(*given)
    m, total, o = expect_parts(case, answer, shapes)
    for name, now, before in zip(("m1", "l1", "o1", "m2", "l2", "o2"), given, (*first, *second), strict=True):
        if not torch.equal(now, before):
            raise Wrong(
                case,
                f"{name} is changed in place.",
                cause="+=, *= or a function whose name ends in _; both parts stay as they are, the result is three new "
                "tensors",
            )
    (m1, l1, o1), (m2, l2, o2) = ([t.double() for t in part] for part in (first, second))
    right_m = torch.maximum(m1, m2)
    nothing = right_m.isinf()
    shift = right_m.masked_fill(nothing, 0.0)
    f1, f2 = torch.exp(m1 - shift), torch.exp(m2 - shift)
    right_l, right_o = f1 * l1 + f2 * l2, f1[:, None] * o1 + f2[:, None] * o2
    away = UNIT * (8 + 4 * ((m1 - shift).abs() * f1).nan_to_num() + 4 * ((m2 - shift).abs() * f2).nan_to_num())
    expect_close(case, m, right_m, 0.0, "a maximum is exact", _causes_of_m(m1, m2, shift, right_l), "m")
    causes = chain(
        _causes("l", l1, l2, f1, f2, nothing),
        [("l is the sum itself, not its logarithm", right_l.log())],
        [("m is added to the logarithm of l: that is the log-sum-exp; l is the sum", right_m + right_l.log())],
        [("m is returned in l's place", right_m)],
        times_too_large("l", right_l, total),
    )
    expect_close(case, total, right_l, away * (l1 + l2) + 1e-37, "float32", causes, "l")
    f1, f2, away, nothing = (t[:, None] for t in (f1, f2, away, nothing))
    weighted = f1 * l1[:, None] * o1 + f2 * l2[:, None] * o2
    divided = f1 * o1 / l1[:, None] + f2 * o2 / l2[:, None]
    causes = chain(
        _causes("o", o1, o2, f1, f2, nothing),
        [("o is divided by l: it stays undivided until the end", right_o / right_l[:, None])],
        [("o is weighted with l as well: l is in it already", weighted)],
        [("o is weighted with l as well, and divided: o is a sum already, not a mean", weighted / right_l[:, None])],
        [("each part of o is divided by its l; o is the sum, divided once, at the end", divided)],
        times_too_large("o", right_o, o),
    )
    expect_close(case, o, right_o, away * (o1.abs() + o2.abs()) + 1e-37, "float32", causes, "o")
    return m, total, o


def _causes_of_m(m1, m2, shift, right_l):
    yield "l is returned in m's place; the order is (m, l, o)", right_l
    yield "m is the larger maximum alone; the sums belong to l", torch.logaddexp(m1, m2)
    yield "m is the larger maximum alone; the sums belong to l", torch.maximum(m1, m2) + right_l.log()
    yield "m is the larger of the two, not their mean", (m1 + m2) / 2
    yield "the 0 that is subtracted where both parts are empty is returned; return the maximum itself", shift
    yield "m is the larger of the two, not their sum", m1 + m2
    yield "this is the smaller maximum", torch.minimum(m1, m2)
    yield "only the first part's", m1
    yield "only the second part's", m2


def _causes(x: str, x1, x2, f1, f2, nothing):
    """Of l or o, called `x`: f1·x1 + f2·x2."""
    yield f"{x} is not rescaled to the common maximum", x1 + x2
    yield f"the second part of {x} is missing", f1 * x1
    yield f"the first part of {x} is missing", f2 * x2
    yield f"the parts of {x} are subtracted", f1 * x1 - f2 * x2
    yield f"{x}1 is not rescaled", x1 + f2 * x2
    yield f"{x}2 is not rescaled", f1 * x1 + x2
    yield "the parts' factors are swapped", f2 * x1 + f1 * x2
    yield "the factors are in base 2: exp, not exp2", f1 ** math.log(2) * x1 + f2 ** math.log(2) * x2
    right = f1 * x1 + f2 * x2
    yield "where both parts are empty, −inf − (−inf) is NaN: subtract 0 there", right.masked_fill(nothing, torch.nan)
    if min(f1.min(), f2.min()) > 0:  # else they are NaN, too
        yield f"the factors of {x} are turned around: {x}1 has to be multiplied by exp(m1 − m)", x1 / f1 + x2 / f2
        yield f"the factor of {x}1 is turned around: {x}1 has to be multiplied by exp(m1 − m)", x1 / f1 + f2 * x2
        yield f"the factor of {x}2 is turned around: {x}2 has to be multiplied by exp(m2 − m)", f1 * x1 + x2 / f2
