"""What proves exercise 6 of lab 06 right: α and β found again in made-up times, and the crossover that follows."""

from __future__ import annotations

import math

import numpy as np

from labs_helpers.collectives import lesson
from labs_helpers.course.exercise import exercise
from labs_helpers.course.wrong import Wrong

NBYTES = 8.0 * 4 ** np.arange(11)  # 8 B to 8 MB


@exercise("06/6", "cost", points=5, minutes=15, reference=lesson.fit_cost)
def fit_cost(student):
    for alpha, beta in ((2e-6, 1e-10), (5e-7, 4e-11)):
        case = f"times of α = {1e6 * alpha:g} µs, 1/β = {1e-9 / beta:g} GB/s"
        got = _answer(case, student, NBYTES, alpha + beta * NBYTES, 8)
        _expect_number(case, "alpha", got[0], alpha, 1e-6, {
            "the times are of one way already": alpha / 2, "alpha and beta are swapped": beta,
            "the model was fitted in logarithms, in which it is no straight line": _logarithmic(alpha, beta)[0]})
        _expect_number(case, "beta", got[1], beta, 1e-6, {
            "beta is seconds a byte, not bytes a second": 1 / beta, "the times are of one way already": beta / 2,
            "nbytes are bytes, not elements": 8 * beta, "alpha and beta are swapped": alpha,
            "the model was fitted in logarithms": _logarithmic(alpha, beta)[1]})
        yield case
    times = (2e-6 + 1e-10 * NBYTES) * (1 + 0.05 * (-1.0) ** np.arange(len(NBYTES)))
    case = "the first again, each time 5% too long or too short"
    got = _answer(case, student, NBYTES, times, 8)
    _expect_number(case, "alpha", got[0], 2e-6, 0.2, {
        "absolute errors were minimised, so that the largest messages alone decide; divide each row by its time":
            np.polyfit(NBYTES, times, 1)[1]})
    _expect_number(case, "beta", got[1], 1e-10, 0.2, {})
    yield f"{case}: α = {1e6 * got[0]:.2f} µs"
    for ranks in (4, 8, 16, 64, 2):
        alpha, beta, case = 2e-6, 1e-10, f"crossover on {ranks} ranks"
        got = _answer(case, student, NBYTES, alpha + beta * NBYTES, ranks)[2]
        expected = lesson.fit_cost(NBYTES, alpha + beta * NBYTES, ranks)[2]
        _expect_number(case, "crossover", got, expected, 1e-5, _crossings(alpha, beta, ranks))
        yield f"{case}: " + (f"{expected:,.0f} bytes" if math.isfinite(expected) else "recursive doubling always wins")


def _answer(case: str, student, nbytes, seconds, ranks: int) -> tuple:
    answer = student(nbytes.copy(), seconds.copy(), ranks)
    if not (isinstance(answer, tuple) and len(answer) == 3 and all(np.ndim(part) == 0 for part in answer)):
        raise Wrong(case, f"returned {answer!r}; three numbers are asked for: (alpha, beta, crossover)")
    return answer


def _expect_number(case: str, name: str, got, expected: float, within: float, suspects: dict) -> None:
    if got == expected or abs(got - expected) <= within * expected < math.inf:
        return
    causes = [text for text, value in suspects.items()
              if got == value or math.isfinite(value) and abs(got - value) <= 1e-3 * abs(value)]
    cause = f"\nLikely cause: {causes[0]}." if causes else ""
    raise Wrong(case, f"{name} is {got:.6g}, expected {expected:.6g}" + (f" ± {within:.0%}" if within > 1e-3 else "")
                + cause)


def _logarithmic(alpha: float, beta: float) -> tuple[float, float]:
    slope, start = np.polyfit(np.log(NBYTES), np.log(alpha + beta * NBYTES), 1)
    return math.exp(start), slope


def _crossings(alpha: float, beta: float, ranks: int) -> dict:
    """Cause → the crossover that it gives: (messages, vectors) of the ring and of recursive doubling."""
    steps = math.log2(ranks)

    def crossing(ring, doubling):
        apart = doubling[1] - ring[1]
        return alpha / beta * (ring[0] - doubling[0]) / apart if apart else math.inf

    around, share = 2 * (ranks - 1), 2 * (ranks - 1) / ranks
    wrong = {
        "the ring goes round twice: 2·(ranks − 1) steps": crossing((around / 2, share / 2), (steps, steps)),
        "each of the ring's steps sends a chunk, n / ranks bytes": crossing((around, around), (steps, steps)),
        "each step of recursive doubling sends the whole vector": crossing((around, share), (steps, steps / ranks)),
        "the number of steps is the logarithm to base 2":
            crossing((around, share), (math.log(ranks),) * 2) if math.log(ranks) > share else math.inf,
        "in bytes, not in elements": crossing((around, share), (steps, steps)) / 8,
        "alpha and beta are swapped": crossing((around, share), (steps, steps)) * (beta / alpha) ** 2,
    }
    return wrong
