"""Hidden inputs of lab 06, on practice ranks. What each rank was given is yielded as it was left, rank by rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.course.own_memory import OnEachRank
from labs_helpers.grading.hidden import hidden, kept
from labs_helpers.grading.hidden.ranks import LIMIT_S, names_of
from labs_helpers.practice import practice

OPERATIONS = (np.add, np.maximum, np.minimum, np.multiply)


@hidden("06/1")
def ring_shift(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for size in (2, 1, 4, *draw.integers(3, 10, 2)):
        sends = _vectors(draw, int(size), int(draw.integers(4, 20)), easy=size == 2)
        own, same = [(send, np.zeros_like(send)) for send in sends], kept(sends)
        yield _messages_left(function, own)
        yield [recv for _, recv in own], same()


@hidden("06/2")
def naive_allreduce(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield from _all_reduced(function, draw)


@hidden("06/3")
def ring_reduce_scatter(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield from _scattered(function, draw, (1, 2, *draw.integers(3, 9, 3)))


@hidden("06/4")
def ring_allreduce(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield from _all_reduced(function, draw)


@hidden("06/5")
def pairwise_alltoall(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for size in (2, 1, *draw.integers(3, 9, 2)):
        sends = _vectors(draw, int(size), int(size * draw.integers(2, 6)), easy=size == 2)
        own, same = [(send, np.zeros_like(send)) for send in sends], kept(sends)
        yield _messages_left(function, own)
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
        calls = [
            (OPERATIONS[number], [(send[number], np.zeros_like(send[number])) for send in sends])
            for number in draw.permutation(len(OPERATIONS))
        ]
        same, shared = kept(sends), np.full((size, n), 12345, sends[0].dtype)

        def several(comm: Any, answer: Callable[..., Any], calls: Any = calls, shared: Any = shared) -> None:
            for op, own in calls:
                answer(comm, shared, *own[comm.rank], op)

        yield _run(function, int(size), several)
        yield [[recv for _, recv in own] for _, own in calls], same()


@hidden("06/8")
def recursive_halving(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    yield from _scattered(function, draw, (1, 2, 4, 8))


def _all_reduced(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for size in (1, 2, *draw.integers(3, 9, 3)):
        sends = _vectors(draw, int(size), int(draw.integers(0, 40)))
        op = OPERATIONS[draw.integers(len(OPERATIONS))]
        own, same = [(send, np.zeros_like(send), op) for send in sends], kept(sends)
        yield _messages_left(function, own)
        yield [recv for _, recv, _ in own], same()


def _scattered(function: Callable[..., Any], draw: np.random.Generator, sizes: Sequence[int]) -> Iterator[Any]:
    for size in sizes:
        n = int(draw.integers(0, 40))
        op = OPERATIONS[draw.integers(len(OPERATIONS))]
        own = [(data, op) for data in _vectors(draw, int(size), n)]
        yield _messages_left(function, own)
        yield [data[start:stop] for (data, _), (start, stop) in zip(own, chunk_bounds(n, int(size)), strict=True)]


def _vectors(draw: np.random.Generator, size: int, n: int, easy: bool = False) -> list[np.ndarray]:
    """A vector for each rank, of one dtype: large whole numbers that no float64 holds, or fractions near 1, whose
    products are too. easy: what a float32 holds."""
    if easy:
        return list(draw.integers(-1000, 1000, (size, n)).astype(np.float64))
    if draw.integers(2):
        return list(2**60 + draw.integers(-(10**6), 10**6, (size, n)))
    return list(draw.uniform(0.5, 1.5, (size, n)) * draw.choice((-1, 1), (size, n)))


def _messages_left(function: Callable[..., Any], own: Sequence[tuple[Any, ...]]) -> list[int]:
    return _run(function, len(own), lambda comm, answer: answer(comm, *own[comm.rank]))


def _run(function: Callable[..., Any], size: int, on_rank: Callable[..., Any]) -> list[int]:
    """on_rank(comm, answer) on `size` ranks; how many messages nobody received, and requests nobody waited for."""
    names = names_of(function)
    own_of = OnEachRank(function)
    ran = practice(lambda comm: on_rank(comm, own_of), size, timeout=LIMIT_S, constants=names)
    return [len(ran.unreceived), len(ran.never_waited)]
