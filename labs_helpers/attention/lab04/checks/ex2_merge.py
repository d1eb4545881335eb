"""Exercise 2 of lab 04: merge two parts of a softmax."""

import math
from functools import partial
from itertools import chain, permutations

import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.lab04.checks.pytorch_errors import explained
from labs_helpers.attention.lab04.checks.results import expect_parts
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_close, numbers
from labs_helpers.course.verdict.causes import still_possible
from labs_helpers.course.verdict.compare import is_within
from labs_helpers.course.verdict.left_alone import Given, expect_new_results

UNIT = 2.0**-24


@exercise("04/2", "merge", points=10, minutes=15, reference=exercises.merge)
def merge(student):
    scores, values = numbers(8, 60).cpu(), numbers(60, 16, seed=1).cpu()
    expect_merged = partial(_expect_merged, student, {"m": [], "l": [], "o": []})
    for case, s in (
        ("scores near 0", scores),
        ("scores near +200", 200 + scores),
        ("scores near −200", scores - 200),
        ("scores 400 apart", 200 * (2 * (torch.arange(60) % 20 < 7) - 1) + scores),
    ):
        parts = (_part(s[:, keys], values[keys]) for keys in (slice(7), slice(7, 20), slice(20, 60)))
        for first, second, third in permutations(parts):
            both = expect_merged(case, first, second)
            expect_merged(f"{case}, three parts", both, third)
            expect_merged(f"{case}, three parts", third, both)
        yield f"{case}, in any order"

    part, empty = _part(scores, values), _part(scores[:, :0], values[:0])
    some = _part(scores.masked_fill(torch.arange(8)[:, None] % 2 == 0, -torch.inf), values)
    for case, *parts in (
        ("the second part is empty", part, empty),
        ("the first part is empty", empty, part),
        ("both parts are empty", empty, empty),
        ("every other row is empty in both parts", some, some),
    ):
        expect_merged(case, *parts)
        yield case


def _part(s, values):
    """Return (m, l, o) of a part with scores s (rows, keys) and values (keys, D)."""
    m = s.amax(1) if s.shape[1] else s.new_full((len(s),), -torch.inf)
    p = torch.exp(s - m.clamp(min=-1e30)[:, None])
    return m, p.sum(1), p @ values


def _expect_merged(student, passed: dict, case: str, first, second) -> tuple:
    """Return the student's (m, l, o) of both parts, or raise Wrong.

    passed: for m, l and o, the causes and a test of right answers for each case that has passed.
    """
    tensors = [t.clone() for t in (*first, *second)]
    given = Given(student, tensors, {})
    with explained(student, case):
        answer = student(*tensors)
    found = expect_parts(case, answer, {name: (part.shape, None) for name, part in zip("mlo", first, strict=True)})
    given.expect_left_alone(case, found)
    (m1, l1, o1), (m2, l2, o2) = ([t.double() for t in part] for part in (first, second))
    m = torch.maximum(m1, m2)
    shift = m.masked_fill(m.isinf(), 0.0)
    f1, f2 = torch.exp(m1 - shift), torch.exp(m2 - shift)
    away = UNIT * (8 + 4 * ((m1 - shift).abs() * f1).nan_to_num() + 4 * ((m2 - shift).abs() * f2).nan_to_num())
    total, column = f1 * l1 + f2 * l2, f1[:, None] * o1 + f2[:, None] * o2
    for name, value, right, bound, causes in (
        ("m", found[0], m, 0.0 * m.nan_to_num(), partial(_causes_of_m, m1, m2, shift, total)),
        ("l", found[1], total, away * (l1 + l2) + 1e-37, partial(_causes_of_l, m1, m2, l1, l2)),
        ("o", found[2], column, away[:, None] * (o1.abs() + o2.abs()) + 1e-37, partial(_causes_of_o, first, second)),
    ):
        earlier = ((before(), is_right) for before, is_right in passed[name])
        why = "a maximum is exact" if name == "m" else "float32"
        expect_close(case, value, right, bound, why, still_possible(causes(), earlier), name)
        passed[name].append((causes, partial(is_within, expected=right, bound=bound)))
    if len(passed["m"]) == 1:
        expect_new_results(case, found, partial(student, *tensors))
    return found


def _causes_of_m(m1, m2, shift, total):
    yield "l is returned instead of m; the order is (m, l, o)", total
    yield "m is only the larger maximum; the sums belong to l", torch.logaddexp(m1, m2)
    yield "m is only the larger maximum; the sums belong to l", torch.maximum(m1, m2) + total.log()
    yield "m is the larger of the two, not their mean", (m1 + m2) / 2
    yield "m contains the 0 that you subtract where both parts are empty; return the maximum itself", shift
    yield "m is the larger of the two, not their sum", m1 + m2
    yield "m is the smaller maximum, not the larger one", torch.minimum(m1, m2)
    yield "m is the maximum over all rows; each row has its own maximum", torch.maximum(m1, m2).amax().expand_as(m1)
    yield "m is the first part's maximum; take the larger of the two", m1
    yield "m is the second part's maximum; take the larger of the two", m2


def _causes_of_l(m1, m2, l1, l2):
    m, parts = torch.maximum(m1, m2), [g * x for g, x in zip(_factors(m1, m2), (l1, l2), strict=True)]
    right = sum(parts)
    yield from _causes("l", m1, m2, l1, l2)
    yield "l is the sum itself, not its logarithm", right.log()
    yield "l is m plus the logarithm of the sum, the log-sum-exp; return the sum", m + right.log()
    yield "m is returned instead of l", m
    yield "the two parts of l are multiplied; add them", parts[0] * parts[1]
    yield "l is the larger of the two parts; it is their sum", torch.maximum(*parts)


def _causes_of_o(first, second):
    (m1, l1, o1), (m2, l2, o2) = ([t.double() for t in part] for part in (first, second))
    f1, f2, m1, m2, l1, l2 = (t[:, None] for t in (*_factors(m1, m2), m1, m2, l1, l2))
    total, weighted = f1 * l1 + f2 * l2, f1 * l1 * o1 + f2 * l2 * o2
    yield from _causes("o", m1, m2, o1, o2)
    yield "o is divided by l; leave it undivided until the end", (f1 * o1 + f2 * o2) / total
    yield "o is multiplied by l as well; o is already a sum over the keys", weighted
    yield "o is multiplied by l and divided by the new l; o is a sum, not a mean", weighted / total
    yield "each part of o is divided by its l; divide the sum once, at the end", f1 * o1 / l1 + f2 * o2 / l2


def _factors(m1, m2, empty=None):
    """Return exp(m1 − m) and exp(m2 − m); subtract 0 instead of m where `empty`, by default where both parts are."""
    m = torch.maximum(m1, m2)
    shift = m.masked_fill(m.isinf() if empty is None else empty, 0.0)
    return torch.exp(m1 - shift), torch.exp(m2 - shift)


def _causes(x: str, m1, m2, x1, x2):
    """Yield the mistakes in f1·x1 + f2·x2, where x names l or o."""
    (f1, f2), m = _factors(m1, m2), torch.maximum(m1, m2)
    turned, ln2 = f"inverted: multiply {x}1 by exp(m1 − m)", math.log(2)
    asks = "subtract 0 only where both parts are empty, so that m is −inf; the guard tests"
    some = min(f1.min(), f2.min()) > 0  # else what is divided by them is NaN, too
    for sentence, g1, g2 in chain(
        (
            (f"{x} is not rescaled to the common maximum", 1.0, 1.0),
            (f"the second part of {x} is missing", f1, 0.0),
            (f"the first part of {x} is missing", 0.0, f2),
            (f"the parts of {x} are subtracted", f1, -f2),
            (f"{x}1 is not rescaled", 1.0, f2),
            (f"{x}2 is not rescaled", f1, 1.0),
            ("the two factors are swapped", f2, f1),
            ("the factors are in base 2; use exp, not exp2", f1**ln2, f2**ln2),
            ("m1 is missing in the first part's factor, exp(m1 − m)", torch.exp(-m), f2),
            ("m2 is missing in the second part's factor, exp(m2 − m)", f1, torch.exp(-m)),
            ("where both parts are empty, −inf − (−inf) is NaN; subtract 0 there", *_factors(m1, m2, m != m)),
            (f"{asks} m1", *_factors(m1, m2, m1.isinf())),
            (f"{asks} m2", *_factors(m1, m2, m2.isinf())),
            (f"{asks} whether either part is empty", *_factors(m1, m2, m1.isinf() | m2.isinf())),
        ),
        int(some)
        * (
            (f"the factors of {x} are {turned}", 1 / f1, 1 / f2),
            (f"the factor of {x}1 is {turned}", 1 / f1, f2),
            (f"the factor of {x}2 is {turned.replace('1', '2')}", f1, 1 / f2),
            ("the factors use the other part's maximum; use exp(m1 − m), with the common maximum", f1 / f2, f2 / f1),
        ),
    ):
        yield sentence, g1 * x1 + g2 * x2
