"""The hidden inputs of lab 06, on practice ranks.

Each run yields, rank by rank, the arguments as the answer left them, and whether the ranks sent more than the algorithm
needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06.watched_op import WatchedOp
from labs_helpers.course.own_memory import OnEachRank
from labs_helpers.grading.hidden import hidden, kept
from labs_helpers.grading.hidden.ranks import LIMIT_S, names_of
from labs_helpers.practice import Practice, practice

OPERATIONS = (np.add, np.maximum, np.minimum, np.multiply)


@hidden("06/1")
def ring_shift(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for size in (2, 1, 4, *draw.integers(3, 10, 2)):
        sends = _vectors(draw, int(size), int(draw.integers(4, 20)), easy=size == 2)
        own, same = [(send, np.zeros_like(send)) for send in sends], kept(sends)
        yield _messages_left(function, own, lambda ran: max(_sent(ran, count=True)) <= 1)
        yield [recv for _, recv in own], same()


@hidden("06/2")
def naive_allreduce(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    def economical(ran: Practice, n: int, chunk: int) -> bool:
        return sum(_sent(ran)) <= 2 * (ran.size - 1) * n and sum(_sent(ran, count=True)) <= 2 * (ran.size - 1)

    yield from _all_reduced(function, draw, economical)


@hidden("06/3")
def ring_reduce_scatter(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    def economical(ran: Practice, n: int, chunk: int) -> bool:
        return max(_sent(ran)) <= (ran.size - 1) * chunk and _to_neighbours(ran)

    yield from _scattered(function, draw, (1, 2, *draw.integers(3, 9, 3)), economical)


@hidden("06/4")
def ring_allreduce(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    def economical(ran: Practice, n: int, chunk: int) -> bool:
        return max(_sent(ran)) <= 2 * (ran.size - 1) * chunk and _to_neighbours(ran)

    yield from _all_reduced(function, draw, economical)


@hidden("06/5")
def pairwise_alltoall(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for size in (2, 1, *draw.integers(3, 9, 2)):
        sends = _vectors(draw, int(size), int(size * draw.integers(2, 6)), easy=size == 2)
        own, same = [(send, np.zeros_like(send)) for send in sends], kept(sends)
        blocks = sends[0].nbytes // size * (size - 1)
        yield _messages_left(function, own, lambda ran, most=blocks: max(_sent(ran)) <= most)
        yield [recv for _, recv in own], same()


@hidden("06/6")
def fit_cost(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for ranks in (8, 2, *(2 ** draw.integers(2, 8, 2))):
        alpha, beta = 10.0 ** draw.uniform(-6.5, -5.0), 10.0 ** draw.uniform(-10.5, -9.0)
        nbytes = 8.0 * 2 ** np.sort(draw.choice(21, 12, replace=False))
        seconds = (alpha + beta * nbytes) * draw.uniform(0.95, 1.05, len(nbytes))
        before = nbytes.copy(), seconds.copy()
        found = function(nbytes, seconds, int(ranks))
        yield [np.float32(part) for part in found]  # in float32, where every way to the least squares is the same
        yield np.array_equal(nbytes, before[0]) and np.array_equal(seconds, before[1])


@hidden("06/7")
def shared_memory_allreduce(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for size in (1, 2, *draw.integers(3, 9, 2)):
        n = int(draw.integers(1, 30))
        sends = [vector.reshape(len(OPERATIONS), n) for vector in _vectors(draw, int(size), len(OPERATIONS) * n)]
        reduced: list[list[int]] = [[] for _ in sends]  # elements, each time
        calls = [
            (OPERATIONS[number], [(send[number], np.zeros_like(send[number])) for send in sends])
            for number in draw.permutation(len(OPERATIONS))
        ]
        same, shared = kept(sends), np.full((size, n), 12345, sends[0].dtype)

        def several(
            comm: Any, answer: Callable[..., Any], calls: Any = calls, shared: Any = shared, reduced: Any = reduced
        ) -> None:
            for op, own in calls:
                answer(comm, shared, *own[comm.rank], WatchedOp(op, reduced[comm.rank].append))

        yield _run(function, int(size), several)
        most = [len(calls) * size * (stop - start) for start, stop in chunk_bounds(n, int(size))]
        yield all(sum(own) <= its for own, its in zip(reduced, most, strict=True))  # each its chunk, and all with op
        yield sum(map(sum, reduced)) >= len(calls) * (size - 1) * n
        yield [[recv for _, recv in own] for _, own in calls], same()


@hidden("06/8")
def recursive_halving(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    def economical(ran: Practice, n: int, chunk: int) -> bool:
        return max(_sent(ran)) <= n and 2 ** max(_sent(ran, count=True)) <= ran.size

    yield from _scattered(function, draw, (1, 2, 4, 8), economical)


Economical = Callable[[Practice, int, int], bool]  # of bytes: in a vector, in its largest chunk


def _all_reduced(function: Callable[..., Any], draw: np.random.Generator, economical: Economical) -> Iterator[Any]:
    for size in (1, 2, *draw.integers(3, 9, 3)):
        sends = _vectors(draw, int(size), int(draw.integers(0, 40)))
        op = OPERATIONS[draw.integers(len(OPERATIONS))]
        own, same = [(send, np.zeros_like(send), op) for send in sends], kept(sends)
        yield _messages_left(function, own, _of_sizes(economical, sends))
        yield [recv for _, recv, _ in own], same()


def _scattered(
    function: Callable[..., Any], draw: np.random.Generator, sizes: Sequence[int], economical: Economical
) -> Iterator[Any]:
    for size in sizes:
        n = int(draw.integers(0, 40))
        op = OPERATIONS[draw.integers(len(OPERATIONS))]
        own = [(data, op) for data in _vectors(draw, int(size), n)]
        yield _messages_left(function, own, _of_sizes(economical, [data for data, _ in own]))
        yield [data[start:stop] for (data, _), (start, stop) in zip(own, chunk_bounds(n, int(size)), strict=True)]


def _vectors(draw: np.random.Generator, size: int, n: int, easy: bool = False) -> list[np.ndarray]:
    """Return one vector per rank, of one dtype: large integers that float64 cannot hold, or fractions near 1, whose
    products it cannot hold either. easy: values that float32 holds."""
    if easy:
        return list(draw.integers(-1000, 1000, (size, n)).astype(np.float64))
    if draw.integers(2):
        return list(2**60 + draw.integers(-(10**6), 10**6, (size, n)))
    return list(draw.uniform(0.5, 1.5, (size, n)) * draw.choice((-1, 1), (size, n)))


def _messages_left(
    function: Callable[..., Any], own: Sequence[tuple[Any, ...]], economical: Callable[[Practice], bool]
) -> list[int]:
    ran = _ran(function, len(own), lambda comm, answer: answer(comm, *own[comm.rank]))
    return [*_left(ran), economical(ran)]


def _of_sizes(economical: Economical, vectors: Sequence[np.ndarray]) -> Callable[[Practice], bool]:
    n, item = len(vectors[0]), vectors[0].itemsize
    return lambda ran: economical(ran, n * item, -(-n // len(vectors)) * item)


def _sent(ran: Practice, count: bool = False) -> list[int]:
    """Return the bytes that each rank sent to others; count: messages instead."""
    others = [m for m in ran.messages + ran.unreceived if m.source != m.dest]
    return [sum(1 if count else m.nbytes for m in others if m.source == rank) for rank in range(ran.size)]


def _to_neighbours(ran: Practice) -> bool:
    return all((m.dest - m.source) % ran.size in (0, 1, ran.size - 1) for m in ran.messages)


def _run(function: Callable[..., Any], size: int, on_rank: Callable[..., Any]) -> list[int]:
    return _left(_ran(function, size, on_rank))


def _left(ran: Practice) -> list[int]:
    """Return how many messages nobody received, and how many requests nobody waited for."""
    return [len(ran.unreceived), len(ran.never_waited)]


def _ran(function: Callable[..., Any], size: int, on_rank: Callable[..., Any]) -> Practice:
    """Run on_rank(comm, answer) on `size` ranks."""
    names = names_of(function)
    own_of = OnEachRank(function)
    return practice(lambda comm: on_rank(comm, own_of), size, timeout=LIMIT_S, constants=names)
