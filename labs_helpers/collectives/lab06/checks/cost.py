"""What proves exercise 6 of lab 06 right: α and β found again in made-up times, and the crossover that follows."""

from __future__ import annotations

import math

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong, wrong_from

NBYTES = 8.0 * 4 ** np.arange(11)  # 8 B to 8 MB
# Relative errors with which the line of other weights is clearly another: its squares sum up to twice the least.
NOISE = np.array([2, -1, -5, -1, 0, -3, -3, -2, -3, -1, 5]) / 100
NEAR = 1.03  # times the least sum of squares


@exercise("06/6", "cost", points=5, minutes=15, reference=exercises.fit_cost)
def fit_cost(student):
    for alpha, beta in ((2e-6, 1e-10), (5e-7, 4e-11)):
        case = f"times of α = {1e6 * alpha:g} µs, 1/β = {1e-9 / beta:g} GB/s"
        got = _answer(case, student, NBYTES, alpha + beta * NBYTES, 8)
        _expect_number(
            case,
            "alpha",
            got[0],
            alpha,
            {
                "the times are of one way already": alpha / 2,
                "alpha and beta are swapped": beta,
                "alpha is in seconds, not in µs": 1e6 * alpha,
                "the model was fitted in logarithms, in which it is no straight line": _logarithmic(alpha, beta)[0],
            },
        )
        _expect_number(
            case,
            "beta",
            got[1],
            beta,
            {
                "beta is seconds a byte, not bytes a second": 1 / beta,
                "the times are of one way already": beta / 2,
                "nbytes are bytes, not elements": 8 * beta,
                "alpha and beta are swapped": alpha,
                "beta is seconds a byte, not a megabyte": (1e6 * beta, 2**20 * beta),
                "beta is seconds a byte, not a kilobyte": (1e3 * beta, 2**10 * beta),
                "beta is seconds a byte, not a gigabyte": (1e9 * beta, 2**30 * beta),
                "the model was fitted in logarithms": _logarithmic(alpha, beta)[1],
            },
        )
        yield case
    case = "the first again, each time up to 5% too long or too short"
    times = (2e-6 + 1e-10 * NBYTES) * (1 + NOISE)
    got = _answer(case, student, NBYTES, times, 8)
    _expect_least_squares(case, got, times)
    yield f"{case}: α = {1e6 * got[0]:.2f} µs"
    for ranks in (4, 8, 16, 64):
        alpha, beta, case = 2e-6, 1e-10, f"crossover on {ranks} ranks"
        got = _answer(case, student, NBYTES, alpha + beta * NBYTES, ranks)[2]
        if got == math.inf:
            raise Wrong(
                case,
                f"crossover is inf, but recursive doubling sends log2({ranks}) = {math.log2(ranks):g} "
                f"vectors (the logarithm is to base 2), the ring 2·{ranks - 1}/{ranks} = "
                f"{2 * (ranks - 1) / ranks:g} of them in chunks: from some size on the ring is faster",
            )
        expected = exercises.fit_cost(NBYTES, alpha + beta * NBYTES, ranks)[2]
        _expect_number(case, "crossover", got, expected, _crossings(alpha, beta, ranks), 1e-5)
        yield f"{case}: {expected:,.0f} bytes"
    case = "crossover on 2 ranks"
    _expect_never(case, student)
    yield f"{case}: recursive doubling always wins"


def _answer(case: str, student, nbytes, seconds, ranks: int) -> tuple:
    given = {"nbytes": nbytes.copy(), "seconds": seconds.copy()}
    answer = student(*given.values(), ranks)
    for name, before in (("nbytes", nbytes), ("seconds", seconds)):
        if not np.array_equal(given[name], before):
            raise Wrong(
                case,
                f"{name} was overwritten: element 0 was {before[0]:g} and is {given[name][0]:g}; work in "
                f"an array of your own (`{name} = 1 / {name}` makes one, `{name} **= -1` does not)",
            )
    if not (isinstance(answer, tuple) and len(answer) == 3 and all(np.ndim(part) == 0 for part in answer)):
        raise Wrong(case, f"returned {answer!r}; three numbers are asked for: (alpha, beta, crossover)")
    return tuple(map(float, answer))


def _expect_number(case: str, name: str, got, expected: float, suspects: dict, within: float = 1e-6) -> None:
    """suspects: cause → the number, or the numbers, that it would have given. Named only if no other gives the same."""
    if abs(got - expected) <= within * expected:
        return
    causes = [cause for cause, values in suspects.items() if any(_is(got, value) for value in np.atleast_1d(values))]
    cause = f"\nLikely cause: {causes[0]}." if len(causes) == 1 else ""
    raise Wrong(case, f"{name} is {got:.6g}, expected {expected:.6g}{cause}")


def _is(got, value: float) -> bool:
    return bool(got == value or math.isfinite(value) and abs(got - value) <= 1e-3 * abs(value))


def _expect_least_squares(case: str, got, times) -> None:
    """Raises Wrong unless the sum of the squared relative errors of α + βn is nearly the least possible."""

    def squares(alpha, beta):
        return float(np.sum(((alpha + beta * NBYTES) / times - 1) ** 2))

    least = squares(*_weighted(times, 1 / times))
    if squares(*got[:2]) <= NEAR * least:
        return
    beta = (times[-1] - times[0]) / (NBYTES[-1] - NBYTES[0])
    suspects = {
        "absolute errors were minimised, so that the largest messages alone decide; divide each row by its time":
            _weighted(times, np.ones(len(times))),
        "the squares of the errors were divided by the times, not the errors; np.polyfit squares w as well":
            _weighted(times, 1 / np.sqrt(times)),
        "the rows were divided by nbytes, not by their times": _weighted(times, 1 / NBYTES),
        "the rows were divided by the root of nbytes, not by their times": _weighted(times, 1 / np.sqrt(NBYTES)),
        "the errors were divided by the times twice": _weighted(times, 1 / times**2),
        "the line goes through the first and the last point alone": (times[0] - beta * NBYTES[0], beta),
    }  # fmt: skip
    cause = next(
        (
            f"\nLikely cause: {text}."
            for text, line in suspects.items()
            if all(_is(value, other) for value, other in zip(got, line, strict=False))
        ),
        "",
    )
    raise Wrong(
        case,
        f"with α = {got[0]:.4g} and β = {got[1]:.4g} the squares of the relative errors, "
        f"(α + βn) / seconds − 1, sum up to {squares(*got[:2]):.3g}; the least possible is {least:.3g}{cause}",
    )


def _weighted(times, weights) -> tuple[float, float]:
    """(α, β) for which the sum of the squares of weights · (α + βn − times) is the least."""
    rows = np.column_stack([weights, weights * NBYTES])
    alpha, beta = np.linalg.lstsq(rows, weights * times, rcond=None)[0]
    return float(alpha), float(beta)


def _expect_never(case: str, student) -> None:
    """On 2 ranks the ring never catches up."""
    why = (
        "On 2 ranks both algorithms send as many bytes, and the ring sends one message more: it never catches up, "
        "and math.inf is asked for."
    )
    try:
        got = _answer(case, student, NBYTES, 2e-6 + 1e-10 * NBYTES, 2)[2]
    except ZeroDivisionError as error:
        files = {plain(part).__code__.co_filename for part in reachable(student).values()}
        raise Wrong(case, f"{wrong_from(error, files).message}\n{why}") from None
    if got != math.inf:
        raise Wrong(case, f"crossover is {got:.6g}, expected inf\n{why}")


def _logarithmic(alpha: float, beta: float) -> tuple[float, float]:
    slope, start = np.polyfit(np.log(NBYTES), np.log(alpha + beta * NBYTES), 1)
    return math.exp(start), slope


def _crossings(alpha: float, beta: float, ranks: int) -> dict:
    """Cause → the crossover that it gives: (messages, vectors) of the ring and of recursive doubling."""
    steps = math.log2(ranks)

    def crossing(ring, doubling):
        apart = doubling[1] - ring[1]
        return alpha / beta * (ring[0] - doubling[0]) / apart if apart else math.inf

    around, share, natural = 2 * (ranks - 1), 2 * (ranks - 1) / ranks, math.log(ranks)
    right = crossing((around, share), (steps, steps))
    return {
        "the ring goes round twice: 2·(ranks − 1) steps": crossing((around / 2, share / 2), (steps, steps)),
        "each of the ring's steps sends a chunk, n / ranks bytes": crossing((around, around), (steps, steps)),
        "each step of recursive doubling sends the whole vector": crossing((around, share), (steps, steps / ranks)),
        "the number of steps is the logarithm to base 2": [
            crossing((around, share), doubling) for doubling in ((natural,) * 2, (natural, steps), (steps, natural))
        ],
        "in bytes, not in elements": right / 8,
        "the crossover is the size of the vector, not of one of its chunks": right / ranks,
        "alpha and beta are swapped": right * (beta / alpha) ** 2,
    }
