"""Costs by elimination with one mistake each, as answers to exercise 2 of lab 11 give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import mean, median

Measure = Callable[..., list[float]]
Mistakes = Iterator[tuple[str, float]]
ESTIMATES: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
    ("the mean of the steps also contains the other programs' time; take the fastest step", mean),
    ("the median step is also slowed down by other programs; take the fastest step", median),
    ("the slowest step is taken; other programs only make steps slower, so take the fastest", max),
    ("the first step is taken; take the fastest", lambda steps: steps[0]),
    ("the last step is taken; take the fastest", lambda steps: steps[-1]),
    ("the times of a run are added up; take the fastest step", sum),
)
NAMES = ("communication", "loading")


def right(measure: Measure) -> dict[str, float]:
    step = min(measure())
    gains = {name: step - min(measure(**{part: False})) for name, part in (("communication",) * 2, ("data", "loading"))}
    return {name: max(0.0, ms) for name, ms in (gains | {"fixed": 2 * step - min(measure(batch=2))}).items()}


def part(own: str) -> Callable[[Measure], Mistakes]:
    """Return the function that yields pairs of a sentence and the cost of 'communication' or 'loading'."""
    other = next(name for name in NAMES if name != own)

    def mistakes(measure: Measure) -> Mistakes:
        without, also = {own: False}, {other: False}
        step, rest = min(measure()), min(measure(**without))
        neither = min(measure(communication=False, loading=False))
        for sentence, estimate in ESTIMATES:
            yield sentence, max(0.0, estimate(measure()) - estimate(measure(**without)))
        yield f"both parts are left out; leave out {own} alone", max(0.0, step - neither)
        alone = f"{other} is also off in both runs; leave out {own} alone"
        yield alone, max(0.0, min(measure(**also)) - neither)
        yield (
            f"this is the gain without {other}; communication=False leaves out communication",
            max(0.0, step - min(measure(**also))),
        )
        yield f"this is the time of a step without {own}; the cost is what the step gains by it", rest
        yield (
            f"this is the time of a step with {own} alone left in, not what a step gains without it",
            min(measure(**also)),
        )
        yield "the difference has the wrong sign: the whole step minus the step without the part", max(0.0, rest - step)
        yield "the difference has the wrong sign: the whole step minus the step without the part", rest - step
        yield "a step that gets slower without the part makes a cost below 0; return 0 instead", step - rest
        yield "the difference has no sign: a step that gets slower without the part costs 0", abs(step - rest)
        yield f"this cost is always 0: leave out {own} in one of two runs, and subtract", 0.0
        yield "this cost is never above 0: max(0, …) keeps what is above 0", min(0.0, step - rest)
        yield "this is a share of the step, not ms", max(0.0, step - rest) / step
        yield "this is a share of the step in percent, not ms", 100 * max(0.0, step - rest) / step
        yield "this is the whole step's time divided by the other's, not their difference in ms", step / rest

    return mistakes


def fixed(measure: Measure) -> Mistakes:
    """Yield pairs of a sentence and the fixed cost."""
    step, twice = min(measure()), min(measure(batch=2))
    neither = {"communication": False, "loading": False}
    for sentence, estimate in ESTIMATES:
        yield sentence, max(0.0, 2 * estimate(measure()) - estimate(measure(batch=2)))
    yield "this is what one batch adds, the part that does grow with the batch", twice - step
    yield (
        "this is half of it: 2 · time(1) − time(2) is fixed, time(1) − time(2) / 2 is a half",
        max(0.0, step - twice / 2),
    )
    slope = "from batch 1 to k, the time grows by (k − 1) · per_batch, and time(1) − per_batch is fixed"
    for batch in (3, 4, 8, 10):
        larger = min(measure(batch=batch))
        yield slope, max(0.0, 2 * step - larger)
        yield slope, max(0.0, step - (larger - step) / batch)
        yield slope, max(0.0, step - larger / batch)
        yield "k · time(1) − time(k) is (k − 1) · fixed; divide it by k − 1", max(0.0, batch * step - larger)
    yield "this is the whole step: one of the two runs needs a larger batch", step
    off = "communication and loading are off; the whole step takes fixed + per_batch · batch"
    yield off, max(0.0, 2 * min(measure(**neither)) - min(measure(**neither, batch=2)))
    for name in NAMES:
        off_too = f"{name} is off in these runs; the whole step takes fixed + per_batch · batch"
        yield off_too, max(0.0, 2 * min(measure(**{name: False})) - min(measure(**{name: False}, batch=2)))
        larger_only = f"{name} is off in the run with the larger batch; compare runs of the whole step"
        yield larger_only, max(0.0, 2 * step - min(measure(**{name: False}, batch=2)))
    yield (
        "the time without communication and loading also contains computing, which grows with the batch",
        min(measure(**neither)),
    )
    gains = sum(step - min(measure(**{name: False})) for name in NAMES)
    rest = "the step minus the other two costs also contains computing, which grows with the batch"
    yield rest, max(0.0, step - gains)
    yield rest, step - gains
    yield rest, step - sum(max(0.0, step - min(measure(**{name: False}))) for name in NAMES)
    both = [max(0.0, step - min(measure(**{name: False}))) for name in NAMES]
    taken = "the other costs are subtracted, but what does not grow with the batch belongs to the fixed cost, too"
    for cost in (*both, sum(both)):
        yield taken, max(0.0, 2 * step - twice - cost)
    yield "a cost below 0 is returned; return 0 instead", 2 * step - twice
    yield "the sign is lost: 2 · time(1) − time(2) may be below 0, and then the cost is 0", abs(2 * step - twice)
    yield "this cost is always 0, but it is what remains of time(1) without per_batch", 0.0
    yield "this is a share of the step, not ms", max(0.0, 2 * step - twice) / step
    yield "this is a share of the step in percent, not ms", 100 * max(0.0, 2 * step - twice) / step
