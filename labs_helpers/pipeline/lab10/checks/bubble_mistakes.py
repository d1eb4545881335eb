"""Bubbles and stashes with one mistake each, as answers to exercise 5 of lab 10 give them."""

from __future__ import annotations

from collections.abc import Iterator

INTERLEAVED = "interleaved"


def right_bubble(schedule: str, p: int, m: int, v: int = 1) -> float:
    return (p - 1) / (v * m + p - 1)


def right_stashes(schedule: str, p: int, m: int, v: int = 1) -> int:
    return min({"GPipe": m, "1F1B": p, INTERLEAVED: 2 * (p - 1) + (v - 1) * p + 1}[schedule], v * m)


def bubbles(schedule: str, p: int, m: int, v: int = 1) -> Iterator[tuple[str, float]]:
    """Yield pairs of a sentence and the bubble that it gives."""
    right, one = right_bubble(schedule, p, m, v), schedule == "1F1B"
    over = "(p − 1) / (v m) is the bubble over the useful time; its share of the step is (p − 1) / (v m + p − 1)"
    yield over, (p - 1) / (v * m)
    shrinks = "1F1B does not shrink the bubble: it waits as long as GPipe, and holds fewer stashes"
    yield shrinks, 0.0 if one else right
    yield shrinks, right / 2 if one else right
    yield shrinks, (p - 1) / (2 * m + p - 1) if one else right
    yield "chunks do not count: with v of them a rank waits for passes that are v times as short", right_bubble("", p, m)
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
    yield "there are never more stashes than micro-batches: min(…, micro_batches)", p if one else right
    warm_up = "the warm-up alone: the first pair's forward pass makes one more stash before its backward pass ends one"
    yield warm_up, min(right_stashes(schedule, p, 10**9, v) - 1, v * m) if one or many else right
    yield warm_up, min(right_stashes(schedule, p, 10**9, v) - 1, v * m) if many else right
    yield warm_up, min(right_stashes(schedule, p, 10**9, v) - 1, v * m) if one else right
    as_1f1b = "interleaved 1F1B holds more stashes than 1F1B, each of a smaller stage: its warm-up is longer"
    yield as_1f1b, min(p, m) if many else right
    yield as_1f1b, min(v * p, v * m) if many else right
    yield "interleaved 1F1B holds stashes of v m passes at most, not of m", min(right, m) if many else right
    yield "this is the last rank's number; rank 0 holds the most", m if schedule == "GPipe" else 1
    all_of_them = "interleaved 1F1B starts backward passes early: it does not hold a stash of every pass"
    yield all_of_them, v * m if many else right
    yield "the stashes are counted in bytes of whole stages; count passes of single stages", right / v
