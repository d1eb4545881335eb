"""Divide a model's layers among pipeline ranks and their chunks."""

from __future__ import annotations


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
