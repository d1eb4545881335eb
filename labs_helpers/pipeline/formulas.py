"""Bubbles and stashes in closed form, for stages of equal cost.

p: ranks. m: micro-batches. v: chunks per rank. A bubble is the time in which a rank waits. Two quantities are in use:
bubble over useful time, (p − 1) / (v m) for GPipe and 1F1B, and bubble over the whole step,
(p − 1) / (v m + p − 1). Narayanan et al., 2021; Qi et al., 2024.
"""

from __future__ import annotations


def bubble_over_work(ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """Return a rank's waiting time over its working time, for GPipe, 1F1B and (chunks above 1) interleaved 1F1B."""
    return (ranks - 1) / (chunks * micro_batches)


def bubble_share(ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """Return a rank's waiting time as a share of the step."""
    over = bubble_over_work(ranks, micro_batches, chunks)
    return over / (1 + over)


def stashes(schedule: str, rank: int, ranks: int, micro_batches: int) -> int:
    """Return the most stashes that a rank holds at a time. schedule: "GPipe", "1F1B" or "ZB-H1"."""
    if schedule == "GPipe":
        return micro_batches
    return min(micro_batches, ranks - rank if schedule == "1F1B" else ranks)


def zero_bubble_wait(ranks: int, forward: float, input: float, weight: float) -> float:
    """Return a rank's waiting time in ZB-H1, (p − 1) (F + I − W), from the times of its three passes."""
    return (ranks - 1) * (forward + input - weight)
