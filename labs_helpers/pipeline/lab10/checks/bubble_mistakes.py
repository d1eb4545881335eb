"""Bubbles and stashes with one mistake each, as answers to exercise 5 of lab 10 give them."""

from __future__ import annotations

from collections.abc import Iterator

INTERLEAVED = "interleaved"


def right_bubble(schedule: str, p: int, m: int, v: int = 1) -> float:
    return (p - 1) / (v * m + p - 1)


def right_stashes(schedule: str, p: int, m: int, v: int = 1) -> int:
    return min(_unlimited(schedule, p, m, v), v * m)


def _unlimited(schedule: str, p: int, m: int, v: int) -> int:
    """Return the stashes of rank 0 if there are enough micro-batches."""
    return {"GPipe": m, "1F1B": p, INTERLEAVED: 2 * (p - 1) + (v - 1) * p + 1}[schedule]


def bubbles(schedule: str, p: int, m: int, v: int = 1) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the bubble that it gives."""
    right, one = right_bubble(schedule, p, m, v), schedule == "1F1B"
    over = "(p − 1) / (v m) is the bubble over the useful time; its share of the step is (p − 1) / (v m + p − 1)"
    yield over, (p - 1) / (v * m)
    shrinks = "1F1B does not shrink the bubble: it waits as long as GPipe, and holds fewer stashes"
    yield shrinks, 0.0 if one else right
    yield shrinks, right / 2 if one else right
    yield shrinks, (p - 1) / (2 * m + p - 1) if one else right
    yield (
        "chunks do not count: with v of them a rank waits for passes that are v times as short",
        right_bubble("", p, m),
    )
    whole = "the share is divided by the chunks; divide the waiting time, which is also a part of the step"
    yield whole, right_bubble("", p, m) / v
    yield "more chunks make the bubble smaller, not larger", v * (p - 1) / (m + v * (p - 1))
    yield "this is the share in which a rank works; the bubble is the rest", 1 - right
    yield "this is the number of waits, not their share of the step", float(p - 1)
    both = "a rank waits p − 1 times in the forward and the backward passes together, not in each of them"
    yield both, 2 * (p - 1) / (v * m + 2 * (p - 1))
    yield "p ranks make p − 1 waits: the first rank waits for nobody at the start", p / (v * m + p)
    yield "p and p − 1 are mixed up in the denominator: the step lasts v m + p − 1 passes", (p - 1) / (v * m + p)
    yield "the share is in percent; a share is between 0 and 1", 100 * right
    yield "the micro-batches and the ranks are swapped", (m - 1) / (v * p + m - 1)


def stashes(schedule: str, p: int, m: int, v: int = 1) -> Iterator[tuple[str, int]]:
    """Yield pairs of a sentence and the stashes that it gives."""
    right, one, many = right_stashes(schedule, p, m, v), schedule == "1F1B", schedule == INTERLEAVED
    yield "GPipe and 1F1B are swapped", {"GPipe": min(p, m), "1F1B": m}.get(schedule, right)
    yield "1F1B starts backward passes early: it does not hold a stash of every micro-batch", m if one else right
    yield "GPipe holds a stash of every micro-batch before the first backward pass", right if one or many else min(p, m)
    fewer = "there may be fewer passes than the warm-up has: min(…, chunks · micro_batches)"
    for of_schedule in (one, many, one or many):
        yield fewer, _unlimited(schedule, p, m, v) if of_schedule else right
    warm_up = "the warm-up alone: the first pair's forward pass makes one more stash before its backward pass ends one"
    for of_schedule in (one or many, many, one):
        yield warm_up, min(_unlimited(schedule, p, m, v) - 1, v * m) if of_schedule else right
    short = "the warm-up of interleaved 1F1B also has (chunks − 1) · ranks forward passes"
    yield short, min(2 * (p - 1) + 1, v * m) if many else right
    as_1f1b = "interleaved 1F1B holds more stashes than 1F1B, each of a smaller stage: its warm-up is longer"
    yield as_1f1b, min(p, m) if many else right
    few = "chunks · ranks stashes are ranks − 1 too few: the warm-up has 2 (ranks − 1) + (chunks − 1) · ranks passes"
    yield few, min(v * p, v * m) if many else right
    yield (
        "a stash belongs to one pass of one stage: interleaved, there are chunks · micro_batches of them",
        min(right, m) if many else right,
    )
    yield "this is the last rank's number; rank 0 holds the most", m if schedule == "GPipe" else 1
    all_of_them = "interleaved 1F1B starts backward passes early: it does not hold a stash of every pass"
    yield all_of_them, v * m if many else right
    yield "a stash of one of v stages counts as one stash, not as 1 / v", right / v
