"""Check exercise 10 of lab 13: when speculation gains, and when it loses."""

from math import isclose

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import numbers_of
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises

NAMES = "k", "tokens", "speed_up"
CASES = (  # alpha, cost, most
    (0.8, 0.1, 8), (0.6, 0.3, 8), (0.5, 0.6, 8), (0.9, 0.05, 5), (0.95, 0.02, 8), (0.3, 0.02, 4), (1.0, 0.1, 6),
    (0.0, 0.0, 3), (0.7, 0.2, 0), (0.0, 0.2, 5),
)  # fmt: skip
ERRORS = (
    (r"division by zero", "(1 − alpha^(k+1)) / (1 − alpha) has no value for alpha = 1, where the sum is k + 1"),
)  # fmt: skip
TOKENS, TIME = "sum(alpha**i for i in range(k + 1))", "k * cost + 1"
OWN = "the target's own token is missing: even if every proposal is rejected, a step makes 1 token"
UPSIDE_DOWN = "the speed-up is upside down: tokens divided by the time of a step"
MISTAKES = [
    (OWN, (TOKENS, "sum(alpha**i for i in range(1, k + 1))")),
    (OWN, (TOKENS, "sum(alpha**i for i in range(1, k + 1)) if k else 1")),
    ("a proposal counts only if all before it were accepted: proposal i with probability alpha^i, not alpha",
     (TOKENS, "1 + alpha * k")),
    ("a step keeps the proposals before the first rejected one, not all or none", (TOKENS, "1 + k * alpha**k")),
    ("every proposal is counted as accepted", (TOKENS, "k + 1")),
    ("one proposal too many: alpha^i for i from 0 to k", ("range(k + 1)", "range(k + 2)")),
    ("one proposal too few: alpha^i for i from 0 to k", ("range(k + 1)", "range(max(k, 1))")),
    ("the draft's passes take time, too: k · cost", (TIME, "1")),
    ("the target's pass takes time, too: 1", (TIME, "k * cost if k else 1")),
    ("k proposals take k passes of the draft", (TIME, "cost + 1")),
    ("k proposals take k passes of the draft, not k + 1", (TIME, "(k + 1) * cost + 1")),
    ("the target makes one pass per step, not one per position", (TIME, "(k + 1) + k * cost")),
    ("k = 0 is allowed: no speculation may be the best", ("range(most + 1)", "range(1, most + 1)")),
    ("k = `most` is allowed", ("range(most + 1)", "range(max(most, 1))")),
    ("the k with the most tokens is chosen; the best speed-up counts", ("speed_up > best[2]", "tokens > best[1]")),
    ("of equally good k, the smallest is asked for", ("speed_up > best", "speed_up >= best")),
    ("the worst k is chosen", ("speed_up > best", "speed_up < best")),
    (UPSIDE_DOWN, ("tokens / (k * cost + 1)", "(k * cost + 1) / tokens")),
    (UPSIDE_DOWN, ("tokens / (k * cost + 1)", "(k * cost + 1) / tokens"), ("speed_up > best", "speed_up < best")),
]  # fmt: skip
ADVICE = "for k = 1 a step makes 1 + alpha tokens in cost + 1 target passes; write down k = 2"


@exercise("13/10", "when speculation loses", points=10, minutes=15, reference=exercises.best_speculation)
def best_speculation(student):
    cases, mistakes = [_case(*case) for case in CASES], variants(exercises.best_speculation, MISTAKES)
    call = numbers_of(student, *NAMES)
    yield from judge(student, call, cases, mistakes, told=_told, same=_same, errors=ERRORS, advice=ADVICE)


def _case(alpha, cost, most):
    k, tokens, speed_up = right = variant(exercises.best_speculation)(alpha, cost, most)
    name = f"alpha = {alpha:g}, cost = {cost:g}, up to {most} proposals"
    return Case(name, (alpha, cost, most), right, f"{name}: k = {k}, {tokens:.2f} tokens, {speed_up:.2f} times as fast")


def _same(found, other):
    return all(isclose(a, b, rel_tol=1e-9) for a, b in zip(found, other, strict=True))


def _told(case, found):
    i = next(i for i in range(3) if not isclose(found[i], case.right[i], rel_tol=1e-9))
    return f"{found[i]:.6g}", f"{case.right[i]:.6g}", NAMES[i] + (f" (for k = {found[0]:g})" if i else "")
