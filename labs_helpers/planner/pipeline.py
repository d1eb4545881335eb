"""Formulas of pipeline schedules: time with the bubble, activations in flight, and layers per rank.

m: micro-batches per step. p: pipeline ranks. v: chunks of the model per rank; with v > 1 the schedule is interleaved.
Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", 2021 (1F1B and its
interleaved form). Both GPipe and 1F1B have the bubble of v = 1.
"""

from __future__ import annotations


def schedule_length(micro_batches: int, ranks: int, chunks: int = 1) -> float:
    """Return a step's time in units of one micro-batch on one rank: m + (p − 1) / v, of which m are useful.

    The bubble is (p − 1) / (v m) of the useful time. Raise ValueError for numbers below 1, and for an interleaved
    schedule with a number of micro-batches that the ranks do not divide.
    """
    if min(micro_batches, ranks, chunks) < 1:
        raise ValueError(f"micro_batches {micro_batches}, ranks {ranks} and chunks {chunks} must be at least 1 each")
    if chunks > 1 and micro_batches % ranks:
        raise ValueError(f"pp {ranks} does not divide {micro_batches} micro-batches, as {chunks} chunks require")
    return micro_batches + (ranks - 1) / chunks


def in_flight(micro_batches: int, ranks: int, chunks: int = 1, rank: int = 0) -> float:
    """Return how many micro-batches' activations a rank keeps at its peak, in units of all its layers.

    1F1B: min(m, p − rank). Interleaved, the first rank keeps p (1 + (p − 1) / (p v)), and each next one 2 / v less
    (Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022).
    """
    most = ranks - rank if chunks == 1 else (2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1) / chunks
    return min(micro_batches, most)


def cut(layers: int, ranks: int, chunks: int = 1) -> list[int]:
    """Return the number of layers on each rank, for p · v chunks of equal cost.

    If p · v divides the layers, each chunk gets the same number. If it divides layers + 2, embedding and head take the
    place of one layer each, as in Llama 3: the first and the last rank have one layer less. Raise ValueError otherwise.
    """
    parts = ranks * chunks
    if layers % parts == 0:
        return [layers // ranks] * ranks
    if ranks > 1 and (layers + 2) % parts == 0:
        each = (layers + 2) // ranks
        return [each - 1, *[each] * (ranks - 2), each - 1]
    name = f"pp {ranks}" + (f" × {chunks} chunks" if chunks > 1 else "")
    raise ValueError(f"{name} divides neither {layers} layers nor {layers + 2} with embedding and head")
