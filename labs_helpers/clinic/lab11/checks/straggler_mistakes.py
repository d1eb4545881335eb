"""Stragglers found with one mistake each, as answers to exercise 3 of lab 11 find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from operator import itemgetter, sub
from statistics import mean, median

Times = Sequence[Sequence[float]]  # by rank and step


def waits(begun: Times, finished: Times) -> list[list[float]]:
    return [[stop - start for start, stop in zip(*mine, strict=True)] for mine in zip(begun, finished, strict=True)]


def per_step(finished: Times) -> float:
    return mean(stop - start for start, stop in pairwise(finished[0]))


def chosen(
    values: Sequence[float], spread: float, least: float, choose: Callable = lambda values: values.index(min(values))
) -> int | None:
    """Return the rank that `choose` finds by its value, or None if the spread of the ranks is not above `least`."""
    return choose(values) if spread > least else None


def right(begun: Times, finished: Times) -> tuple[int, float] | None:
    means = [mean(mine) for mine in waits(begun, finished)]
    rank = chosen(means, max(means) - min(means), per_step(finished) / 10)
    return None if rank is None else (rank, _waste(means))


def _waste(means: Sequence[float]) -> float:
    """Return how much longer the other ranks wait than the one with the shortest mean wait."""
    return (sum(means) - len(means) * min(means)) / max(1, len(means) - 1)


def _last(values: Sequence[float]) -> int:
    return max(rank for rank, value in enumerate(values) if value == min(values))


def _longest(values: Sequence[float]) -> int:
    return values.index(max(values))


def _most_often(own: list[list[float]], first: Callable[[Sequence[float]], int]) -> int:
    steps = list(zip(*own, strict=True))
    counts = [sum(first(step) == rank for step in steps) for rank in range(len(own))]
    return counts.index(max(counts))


def ranks(begun: Times, finished: Times) -> Iterator[tuple[str, Callable[[], int | None]]]:
    """Yield pairs of a sentence and a function that returns the straggler."""
    own = waits(begun, finished)
    means, least = [mean(mine) for mine in own], per_step(finished) / 10
    spread = max(means) - min(means)

    def with_values(values: Sequence[float], choose: Callable = lambda values: values.index(min(values))) -> Callable:
        return lambda: chosen(values, max(values) - min(values), least, choose)

    longest = "this rank waits longest, so it waits for others; the straggler comes last and waits shortest"
    yield longest, with_values(means, _longest)
    yield longest, lambda: _longest(means)
    clocks = "moments on different ranks are compared, but each has its own clock; compare waits, finished − begun"
    for times in (begun, finished):
        for moment in (mean, itemgetter(0), itemgetter(-1)):
            moments = [moment(mine) for mine in times]
            yield clocks, partial(_longest, moments)
            yield clocks, partial(chosen, moments, spread, least, _longest)
            yield clocks, with_values(moments, _longest)
    steps = "every rank's step takes the same time, so the longest step does not show the straggler; its wait does"
    yield steps, lambda: 0
    yield steps, lambda: 0 if spread > least else None
    lengths = [mine[-1] - mine[0] for mine in begun]
    yield steps, partial(_longest, lengths)
    yield steps, partial(chosen, lengths, spread, least, _longest)
    computing = [mean(map(sub, mine[1:], ends)) for mine, ends in zip(begun, finished, strict=True)]
    yield (
        "the time from a finish to the next wait is the rank's own computing; its wait is finished − begun",
        with_values(computing),
    )
    yield "the wait in the first step is left out", with_values([mean(mine[1:]) for mine in own])
    yield "the wait in the last step is left out", with_values([mean(mine[:-1]) for mine in own])
    yield "only the first step's wait counts here; take the mean of all steps", with_values([mine[0] for mine in own])
    yield "only the last step's wait counts here; take the mean of all steps", with_values([mine[-1] for mine in own])
    yield "the median wait hides rare long pauses; take the mean", with_values([median(mine) for mine in own])
    yield (
        "the shortest single wait decides here; compare the ranks' mean waits",
        with_values([min(mine) for mine in own]),
    )
    single = "the longest single wait decides here; compare the ranks' mean waits"
    yield single, with_values([max(mine) for mine in own])
    often = "this rank is the last one most often, but perhaps by little; take the mean wait"
    for first in (lambda step: step.index(min(step)), _last):
        yield often, lambda first=first: _most_often(own, first) if spread > least else None
    yield "ranks count from 0", lambda: rank + 1 if (rank := with_values(means)()) is not None else None
    tie = "several ranks share the shortest wait, and the lowest of them counts"
    yield tie, with_values(means, _last)


def limits(begun: Times, finished: Times) -> Iterator[tuple[str, int | None]]:
    """Yield pairs of a sentence and the straggler, or None, by a wrong limit."""
    own, step = waits(begun, finished), per_step(finished)
    means, whole, count = [mean(mine) for mine in own], finished[0][-1] - finished[0][0], len(finished[0])
    spread, least = max(means) - min(means), step / 10
    computing = [step - mean(own[rank][1:]) for rank in (means.index(min(means)), _longest(means), 0)]
    bases = (
        ("10 ms are the limit here; it is 10% of the time per step", [100]),
        ("the limit is 10% of a wait; it is 10% of the time from one finish to the next",
         [min(means), max(means), mean(means)]),
        ("the limit is 10% of all steps' time; divide by their number", [whole]),
        ("in n steps there are n − 1 times from one finish to the next; divide by n − 1", [whole / count]),
        ("the time per step is counted from begun; count it from one finish to the next",
         [(finished[0][-1] - begun[0][0]) / count, (begun[0][-1] - begun[0][0]) / (count - 1)]),
        ("a single time from one finish to the next counts here; take their mean",
         [finished[0][1] - finished[0][0], finished[0][-1] - finished[0][-2]]),
        ("the limit is 10% of the time in which a rank computes; the time per step includes its wait", computing),
    )  # fmt: skip
    for sentence, values in bases:
        for base in values:
            yield sentence, chosen(means, spread, base / 10)
    compared = (
        ("the waste is compared with 10%; compare the longest wait with the shortest", _waste(means)),
        ("the shortest wait is compared with the mean wait; compare it with the longest", mean(means) - min(means)),
        ("the longest wait itself is compared with 10%; compare how far it exceeds the shortest", max(means)),
        ("all steps' waits are added up and compared with 10% of a single step", count * spread),
    )  # fmt: skip
    for sentence, value in compared:
        yield sentence, chosen(means, value, least)
    for value in (1, len(means) - 1, spread):
        yield "a rank is named although the waits differ by at most 10% of the time per step", chosen(means, value, 0)
    yield "at exactly 10% of the time per step, the answer is None", chosen(means, spread, least * (1 - 1e-9))
    yield "every answer is None: a return is missing, or the waits never differ by more than the limit", None


def wastes(begun: Times, finished: Times) -> Iterator[tuple[str, float | None]]:
    """Yield pairs of a sentence and the waste."""
    answer = right(begun, finished)
    own = waits(begun, finished)
    means = [mean(mine) for mine in own]
    least, count, world = min(means), len(finished[0]), len(means)
    others = _waste(means)
    found: tuple[tuple[str, float], ...] = (
        ("the straggler itself is counted; take the mean over the other ranks", mean(means) - least),
        ("the other ranks' waits are added up; take their mean", others * (world - 1)),
        ("this is the longest wait minus the shortest; take the mean over all other ranks", max(means) - least),
        ("the straggler's own wait is not subtracted", others + least),
        ("the straggler's own wait is not subtracted, and it is counted among the others", mean(means)),
        ("the waits of all steps are added up; divide by their number", others * count),
        ("n steps are divided by n − 1; every step has a wait", others * count / (count - 1)),
        ("this is the straggler's own wait; how much longer do the others wait?", least),
        ("this is a share of the time per step, not ms", others / per_step(finished)),
        ("this is in seconds, not ms", others / 1000),
        ("the difference has the wrong sign: the others' waits minus the straggler's", -others),
        ("the median of the others is taken; take their mean", median(sorted(means)[1:] or [0.0]) - least),
        ("all ranks' waits and steps are added up", others * count * (world - 1)),
        ("the wait in the first step is left out", _waste([mean(mine[1:]) for mine in own])),
        ("the wait in the last step is left out", _waste([mean(mine[:-1]) for mine in own])),
        ("the median wait hides rare long pauses; take the mean", _waste([median(mine) for mine in own])),
        ("the shortest single wait of each rank is taken; take the mean wait", _waste(list(map(min, own)))),
        ("the longest single wait of each rank is taken; take the mean wait", _waste(list(map(max, own)))),
        ("only the first step's waits count here; take the mean of all steps", _waste([mine[0] for mine in own])),
        ("only the last step's waits count here; take the mean of all steps", _waste([mine[-1] for mine in own])),
    )  # fmt: skip
    for sentence, waste in found:
        yield sentence, waste if answer else None
