"""Order interleaved passes with one mistake each, as answers to exercise 6 of lab 10 do."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest
from math import inf

Order = list[tuple[str, int, int]]


def in_groups(k, ranks, micro_batches, chunks):
    """Return (chunk, micro-batch) of the k-th forward pass."""
    group, place = divmod(k, ranks * chunks)
    chunk, i = divmod(place, ranks)
    return chunk, group * ranks + i


def _groups_of_chunks(k, ranks, micro_batches, chunks):
    return in_groups(k, chunks, micro_batches, chunks)


def _one_group(k, ranks, micro_batches, chunks):
    return divmod(k, micro_batches)


def _chunk_by_chunk(k, ranks, micro_batches, chunks):
    return divmod(k, chunks)[::-1]


def _from_0_again(k, ranks, micro_batches, chunks):
    chunk, micro = in_groups(k, ranks, micro_batches, chunks)
    return chunk, micro % ranks


def _group_number(k, ranks, micro_batches, chunks):
    chunk, micro = in_groups(k, ranks, micro_batches, chunks)
    group, i = divmod(micro, ranks)
    return chunk, group + i


def last_first(chunk, micro, ranks, micro_batches, chunks):
    """Return the chunk and the micro-batch of a backward pass from those of the forward pass with the same number."""
    return chunks - 1 - chunk, micro


def _descending(chunk, micro, ranks, micro_batches, chunks):
    group, i = divmod(micro, ranks)
    return chunks - 1 - chunk, group * ranks + ranks - 1 - i


def interleaved(
    rank,
    ranks,
    micro_batches,
    chunks,
    *,
    at=in_groups,
    back=last_first,
    warm_up=lambda rank, ranks, chunks: 2 * (ranks - rank - 1) + (chunks - 1) * ranks,
    capped=True,
    pair="FB",
    first=0,
    rest=True,
    entry=lambda kind, chunk, micro, rank, ranks: (kind, chunk, micro),
) -> Order:
    """Return a rank's right order; other settings than the defaults make mistakes.

    at: (chunk, micro-batch) of the k-th forward pass. back: changes them for a backward pass. warm_up: the number of
    forward passes before the first pair. capped: there are no more of them than forward passes. pair: the order within
    a pair. first: the smallest number of a backward pass after the last pair. rest: these backward passes are there.
    entry: an element of the list.
    """
    sizes, total = (ranks, micro_batches, chunks), micro_batches * chunks
    before = warm_up(rank, ranks, chunks)
    before = min(before, total) if capped else before

    def made(kind, k):
        chunk, micro = at(k, *sizes)
        chunk, micro = (chunk, micro) if kind == "F" else back(chunk, micro, *sizes)
        return entry(kind, chunk, micro, rank, ranks)

    order = [made("F", k) for k in range(before)]
    for k in range(total - before):
        numbers = {"F": before + k, "B": k}
        order += [made(kind, numbers[kind]) for kind in pair]
    return order + [made("B", k) for k in range(max(total - before, first), total)] * rest


def on_all_ranks(order):
    """Return a function that lists the orders of all ranks."""
    return lambda ranks, *more: [order(rank, ranks, *more) for rank in range(ranks)]


def _gpipe(rank, ranks, micro_batches, chunks):
    return interleaved(rank, ranks, micro_batches, chunks, warm_up=lambda *_: micro_batches * chunks)


def _each_chunk_alone(rank, ranks, micro_batches, chunks):
    """Return 1F1B of the first chunk, then of the second, …"""
    order: Order = []
    for chunk in range(chunks):
        before = min(ranks - rank - 1, micro_batches)
        order += [("F", chunk, i) for i in range(before)]
        for f, b in zip_longest(range(before, micro_batches), range(micro_batches)):
            order += [("F", chunk, f)] * (f is not None) + [("B", chunk, b)]
    return order


FEWER = "the warm-up has more forward passes than there are: take the smaller number"
SAME = "the warm-up is the same on every rank; it has the term 2 (ranks − rank − 1)"
SETTINGS = (
    ("micro-batches pass in groups of `ranks`, but these are in one group of all micro-batches", {"at": _one_group}),
    ("micro-batches pass in groups of `ranks`, but these are in groups of `chunks`", {"at": _groups_of_chunks}),
    (
        "each micro-batch passes through all chunks before the next one begins; a whole group passes through a chunk",
        {"at": _chunk_by_chunk},
    ),
    ("the micro-batches of each group begin at 0 again: add group · ranks", {"at": _from_0_again}),
    ("the groups overlap: group g begins at micro-batch g · ranks, not at g", {"at": _group_number}),
    (
        "backward passes visit the chunks from the first to the last: chunk c becomes chunks − 1 − c",
        {"back": lambda chunk, micro, *sizes: (chunk, micro)},
    ),
    ("the backward passes of a group take its last micro-batch first; micro-batches ascend", {"back": _descending}),
    *(
        (said, {"warm_up": warm_up})
        for said, warm_up in (
            ("the warm-up is that of 1F1B, ranks − rank − 1", lambda r, p, v: p - r - 1),
            ("the warm-up lacks the factor 2 of ranks − rank − 1", lambda r, p, v: p - r - 1 + (v - 1) * p),
            ("the warm-up lacks the term (chunks − 1) ranks", lambda r, p, v: 2 * (p - r - 1)),
            ("the warm-up uses chunks instead of chunks − 1", lambda r, p, v: 2 * (p - r - 1) + v * p),
            ("the warm-up is one forward pass too long", lambda r, p, v: 2 * (p - r - 1) + (v - 1) * p + 1),
            ("the warm-up uses ranks − rank instead of ranks − rank − 1", lambda r, p, v: 2 * (p - r) + (v - 1) * p),
            ("the warm-up grows with the rank; the last rank has the shortest", lambda r, p, v: 2 * r + (v - 1) * p),
            (SAME, lambda r, p, v: (v - 1) * p),
            (SAME, lambda r, p, v: 2 * (p - 1) + (v - 1) * p),
        )
    ),
    *((FEWER, {"capped": False, "first": first}) for first in (0, -inf)),
    ("a pair begins with its backward pass; the forward pass comes first", {"pair": "BF"}),
    ("the backward passes after the last forward pass are missing", {"rest": False}),
    (
        "the second entry is the stage, chunk · ranks + rank; return the chunk",
        {"entry": lambda kind, chunk, micro, rank, ranks: (kind, chunk * ranks + rank, micro)},
    ),
    (
        "the chunk and the micro-batch are swapped: (kind, chunk, micro-batch)",
        {"entry": lambda kind, chunk, micro, rank, ranks: (kind, micro, chunk)},
    ),
)  # fmt: skip
MISTAKES = [
    *((sentence, partial(interleaved, **settings)) for sentence, settings in SETTINGS),
    ("all forward passes come before all backward passes, as in GPipe", _gpipe),
    ("1F1B runs on each chunk alone, and the first chunk is finished before the second begins", _each_chunk_alone),
]
ERRORS = ((r"^IndexError: .* out of range", FEWER),)
