"""Check exercise 6 of lab 06: recover α and β from made-up times, and the crossover that follows from them."""

import math

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, expect_number, expect_tuple, likely

NBYTES = 8.0 * 4 ** np.arange(11)  # 8 B to 8 MB
# Relative errors with which the line of other weights is clearly another: its squares sum up to twice the least.
NOISE = np.array([2, -1, -5, -1, 0, -3, -3, -2, -3, -1, 5]) / 100
NEAR = 1.03  # times the least sum of squares
ALPHA, BETA = 2e-6, 1e-10


@exercise("06/6", "cost", points=5, minutes=15, reference=exercises.fit_cost)
def fit_cost(student):
    for alpha, beta in ((ALPHA, BETA), (5e-7, 4e-11)):
        case = f"times of α = {1e6 * alpha:g} µs, 1/β = {1e-9 / beta:g} GB/s"
        found = _answer(case, student, alpha + beta * NBYTES, 8)
        for part, name, right in ((0, "alpha", alpha), (1, "beta", beta)):
            causes = ((cause, line[part]) for cause, line in exact_causes(alpha, beta) if line[part] != right)
            expect_number(case, name, found[part], right, causes, 1e-6)
        yield case
    case, exact = "the first again, each time up to 5% too long or too short", ALPHA + BETA * NBYTES
    found = _answer(case, student, exact * (1 + NOISE), 8)
    _expect_least_squares(case, found[:2], exact * (1 + NOISE))
    yield f"{case}: α = {1e6 * found[0]:.2f} µs"
    for ranks in (8, 4, 16, 64):  # at 4 many mistakes have the same outcome
        case = f"crossover on {ranks} ranks"
        found, expected = _answer(case, student, exact, ranks)[2], exercises.fit_cost(NBYTES, exact, ranks)[2]
        expect_number(case, "crossover", found, expected, crossover_causes(ranks), 1e-5)
        yield f"{case}: {expected:,.0f} bytes"
    case = "crossover on 2 ranks"
    never = "on 2 ranks both send equally many bytes, the ring in one message more: return math.inf"
    try:
        crossover = _answer(case, student, exact, 2)[2]
    except ZeroDivisionError as error:
        raise Wrong(case, describe_error(student, error).found, cause=never) from None
    if crossover != math.inf:
        raise Wrong(case, f"crossover is {crossover}, expected inf", cause=never)
    yield f"{case}: recursive doubling always wins"


def _answer(case: str, student, seconds, ranks: int) -> list:
    """Return (alpha, beta, crossover). Raise Wrong if the arrays have changed."""
    given = {"nbytes": NBYTES.copy(), "seconds": seconds.copy()}
    answer = student(*given.values(), ranks)
    answer = tuple(answer) if isinstance(answer, list) else answer
    for name, before in (("nbytes", NBYTES), ("seconds", seconds)):
        if not np.array_equal(given[name], before):
            own = f"work in an array of your own (`{name} = 1 / {name}` makes one, `{name} **= -1` does not)"
            raise Wrong(case, f"{name} was overwritten: element 0 was {before[0]:g} and is {given[name][0]:g}; {own}")
    # An array without dimensions is a number too.
    return [np.asarray(part)[()] for part in expect_tuple(case, answer, "alpha", "beta", "crossover")]


def exact_causes(alpha: float, beta: float):
    """Return cause → (α, β), for exact times."""
    slope, start = np.polyfit(np.log(NBYTES), np.log(alpha + beta * NBYTES), 1)
    yield "the model was fitted in logarithms, where it is not a straight line", (math.exp(start), slope)
    first = "alpha is the shortest message's time; it should be the line's value at n = 0"
    yield first, (alpha + beta * NBYTES[0], beta)
    yield "the times are already those of one message", (alpha / 2, beta / 2)
    yield "alpha and beta are swapped", (beta, alpha)
    yield "alpha is in seconds, not in µs", (1e6 * alpha, beta)
    yield "beta is seconds per byte, not bytes per second", (alpha, 1 / beta)
    yield "nbytes are bytes, not elements", (alpha, 8 * beta)
    t = alpha + beta * NBYTES
    one, by_time, both = np.ones_like(t), "each row is divided by its time", "so are both of its columns: (1/t, n/t)"
    for sentence, first, second, right in (
        (f"{by_time}, not multiplied by it", t, NBYTES * t, one),
        (f"{by_time}, and so is the right side, which is then 1", 1 / t, NBYTES / t, t),
        (f"{by_time}, {both}", 1 / t, NBYTES, one),
        (f"{by_time}, {both}", one, NBYTES / t, one),
    ):
        yield sentence, tuple(np.linalg.lstsq(np.column_stack([first, second]), right, rcond=None)[0])
    for unit, decimal, binary in (("kilo", 1e3, 2**10), ("mega", 1e6, 2**20), ("giga", 1e9, 2**30)):
        yield f"beta is seconds per byte, not per {unit}byte", (alpha, decimal * beta)
        yield f"beta is seconds per byte, not per {unit}byte", (alpha, binary * beta)


def _expect_least_squares(case: str, line, times) -> None:
    """Raise Wrong unless the sum of the squared relative errors of `line`, (α, β), is close to the smallest
    possible."""

    def squares(alpha, beta) -> float:
        return float(np.sum(((alpha + beta * NBYTES) / times - 1) ** 2))

    found, least = squares(*line), squares(*_weighted(times, 1 / times))
    if found > NEAR * least:
        raise Wrong(
            case,
            f"with α = {line[0]:.4g} and β = {line[1]:.4g} the squares of the relative errors, (α + βn) / seconds − 1, "
            f"sum up to {found:.3g}; the least possible is {least:.3g}",
            cause=likely(line_causes(times), lambda other: np.allclose(line, other, rtol=1e-3, atol=0)),
        )


def line_causes(times):
    """Return cause → (α, β), for inexact times."""
    largest = "absolute errors were minimized, so the largest messages decide; divide each row by its time"
    squared = "the squares of the errors were divided by the times, not the errors; np.polyfit squares w as well"
    slope = (times[-1] - times[0]) / (NBYTES[-1] - NBYTES[0])
    yield largest, _weighted(times, np.ones(len(times)))
    yield squared, _weighted(times, 1 / np.sqrt(times))
    yield "the rows were divided by nbytes, not by their times", _weighted(times, 1 / NBYTES)
    yield "the rows were divided by the root of nbytes, not by their times", _weighted(times, 1 / np.sqrt(NBYTES))
    yield "the errors were divided by the times twice", _weighted(times, 1 / times**2)
    yield "the line goes only through the first and the last point", (times[0] - slope * NBYTES[0], slope)
    slope = (times[1] - times[0]) / (NBYTES[1] - NBYTES[0])
    yield "the line goes only through the first two points", (times[0] - slope * NBYTES[0], slope)


def _weighted(times, weights) -> np.ndarray:
    """Return the (α, β) that minimizes the sum of the squares of weights · (α + βn − times)."""
    return np.linalg.lstsq(np.column_stack([weights, weights * NBYTES]), weights * times, rcond=None)[0]


def crossover_causes(ranks: int):
    steps, around, share = math.log2(ranks), 2 * (ranks - 1), 2 * (ranks - 1) / ranks  # the ring: messages, vectors

    def crossing(ring=(around, share), doubling=(steps, steps)) -> float:
        """Return where the two algorithms cost the same; each is given as (messages, vectors)."""
        apart = doubling[1] - ring[1]
        return ALPHA / BETA * (ring[0] - doubling[0]) / apart if apart else math.inf

    counts = f"recursive doubling sends log2({ranks}) = {steps:g} vectors (the logarithm is to base 2)"
    yield f"{counts}, the ring {share:g} of them in chunks: from some size on the ring is faster", math.inf
    twice, rounds = "the ring goes around twice: 2·(ranks − 1) steps", "one round of the ring has ranks − 1 steps"
    chunk = "each of the ring's steps sends a chunk, n / ranks bytes"
    for sentence, *ring in (
        (twice, around / 2, share / 2),
        (f"{twice}; its messages are counted once", around / 2, share),
        (f"{twice}; its bytes are counted once", around, share / 2),
        (rounds, 2 * ranks, 2),
        (rounds, 2 * ranks, share),
        (rounds, around, 2),
        (chunk, around, around),
        (f"{chunk}, 2·(ranks − 1) times", around, share / ranks),
        (f"{chunk}, 2·(ranks − 1) times", around, 2 / ranks),
    ):
        yield sentence, crossing(ring=ring)
    for bytes_of in (steps / ranks, 1, share / 2):
        yield "each step of recursive doubling sends the whole vector", crossing(doubling=(steps, bytes_of))
    yield "recursive doubling takes its log2(ranks) steps once", crossing(doubling=(2 * steps, 2 * steps))
    for x in (math.log(ranks), math.log10(ranks), ranks / 2, ranks, ranks - 1):
        for doubling in ((x, x), (x, steps), (steps, x)):
            yield "the number of steps is the logarithm to base 2", crossing(doubling=doubling)
    solved = "n = α·(messages more of the ring) / (β·(vectors fewer))"
    more, fewer = around - steps, steps - share
    inverted = ALPHA / BETA * fewer / more, BETA / ALPHA * fewer / more, BETA / ALPHA * more / fewer
    if fewer > 0:
        yield f"solved for the wrong side: {solved}", inverted
        yield f"α or β is left out: {solved}", (more / fewer, more / fewer / BETA, ALPHA * more / fewer)
        yield f"the numbers of messages and of vectors are left out: {solved}", ALPHA / BETA
    yield "in bytes, not in elements", crossing() / 8
    yield "the crossover is the size of the vector, not of one of its chunks", crossing() / ranks
    yield "one of the two sides has the wrong sign", -crossing()
    yield "alpha and beta are swapped", crossing() * (BETA / ALPHA) ** 2
