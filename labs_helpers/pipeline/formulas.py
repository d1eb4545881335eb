"""Bubbles and stashes in closed form, for stages of equal cost.

p: ranks. m: micro-batches. v: chunks per rank; with v > 1 the schedule is interleaved. A bubble is the time in which a
rank waits. Two quantities are in use: bubble over useful time, (p − 1) / (v m), and bubble over the whole step,
(p − 1) / (v m + p − 1); v is 1 for GPipe and 1F1B. Narayanan et al., "Efficient large-scale language model training on
GPU clusters using Megatron-LM", 2021; Qi et al., "Zero Bubble Pipeline Parallelism", 2024.
"""

from __future__ import annotations


def schedule_length(micro_batches: int, ranks: int, chunks: int = 1) -> float:
    """Return a step's time in units of one micro-batch on one rank: m + (p − 1) / v, of which m are useful.

    It holds for GPipe, 1F1B and interleaved 1F1B. Raise ValueError for numbers below 1, and for an interleaved schedule
    with a number of micro-batches that the ranks do not divide.
    """
    if min(micro_batches, ranks, chunks) < 1:
        raise ValueError(f"micro_batches {micro_batches}, ranks {ranks} and chunks {chunks} must be at least 1 each")
    if chunks > 1 and micro_batches % ranks:
        raise ValueError(f"pp {ranks} does not divide {micro_batches} micro-batches, as {chunks} chunks require")
    return micro_batches + (ranks - 1) / chunks


def bubble_over_work(ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """Return a rank's waiting time over its working time, with the errors of `schedule_length`."""
    return schedule_length(micro_batches, ranks, chunks) / micro_batches - 1


def bubble_share(ranks: int, micro_batches: int, chunks: int = 1) -> float:
    """Return a rank's waiting time as a share of the step, with the errors of `schedule_length`."""
    return 1 - micro_batches / schedule_length(micro_batches, ranks, chunks)


def zero_bubble_wait(ranks: int, forward: float, input: float, weight: float) -> float:
    """Return a rank's waiting time in ZB-H1 from the times of its passes, with at least p micro-batches.

    It is (p − 1) (F + I − W), as in the paper, while W takes no longer than F or I.
    """
    return (ranks - 1) * max(forward, input, forward + input - weight)


def in_flight(micro_batches: int, ranks: int, chunks: int = 1, rank: int = 0) -> float:
    """Return how many micro-batches' activations a rank keeps at its peak, in units of all its layers.

    1F1B: min(m, p − rank); GPipe keeps m, and ZB-H1 min(m, p). Interleaved, the first rank keeps p (1 + (p − 1) / (p
    v)), and each next one 2 / v less (Korthikanti et al., "Reducing activation recomputation in large transformer
    models", 2022).
    """
    most = ranks - rank if chunks == 1 else (2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1) / chunks
    return min(micro_batches, most)
