"""Check exercise 10 of lab 13: when speculation gains, and when it loses."""

from math import isclose

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.speculation_mistakes import MISTAKES, chosen

NAMES = "k", "tokens", "speed_up"
CASES = (  # alpha, cost, most
    (0.8, 0.1, 8), (0.6, 0.3, 8), (0.5, 0.6, 8), (0.9, 0.05, 5), (0.95, 0.02, 8), (0.3, 0.02, 4), (1.0, 0.1, 6),
    (0.0, 0.0, 3), (0.7, 0.2, 0), (0.0, 0.2, 5),
)  # fmt: skip
ERRORS = (
    (r"division by zero", "(1 − alpha^(k+1)) / (1 − alpha) has no value for alpha = 1, where the sum is k + 1"),
)  # fmt: skip
ADVICE = "for k = 1 a step makes 1 + alpha tokens in cost + 1 target passes; write down k = 2"


@exercise("13/10", "when speculation loses", points=10, minutes=15, reference=exercises.best_speculation)
def best_speculation(student):
    def numbers(*arguments):
        answer = expect_tuple("", student(*arguments), *NAMES)
        for name, number in zip(NAMES, answer, strict=True):
            expect_is_number("", name, number)
        return answer

    cases = [_case(*case) for case in CASES]
    yield from judge(student, numbers, cases, MISTAKES, told=_told, same=_same, errors=ERRORS, advice=ADVICE)


def _case(alpha, cost, most):
    k, tokens, speed_up = right = chosen(alpha, cost, most)
    name = f"alpha = {alpha:g}, cost = {cost:g}, up to {most} proposals"
    return Case(name, (alpha, cost, most), right, f"{name}: k = {k}, {tokens:.2f} tokens, {speed_up:.2f} times as fast")


def _same(found, other):
    return all(isclose(a, b, rel_tol=1e-9) for a, b in zip(found, other, strict=True))


def _told(case, found):
    i = next(i for i in range(3) if not isclose(found[i], case.right[i], rel_tol=1e-9))
    return f"{found[i]:.6g}", f"{case.right[i]:.6g}", NAMES[i] + (f" (for k = {found[0]:g})" if i else "")
