"""Activations cut along their features over the ranks of several models, whose values tell where they come from."""

from __future__ import annotations

import numpy as np

SHAPE = (3, 5, 4)  # batch, length and features of one rank's slice: all different, so that no axis passes for another
Array = np.ndarray


def models(count: int, mp_size: int, shape: tuple[int, int, int], dtype) -> list[Array]:
    """Each model's (batch, length, mp_size · features), all numbers different and exact; shape: of one slice."""
    batch, length, part = shape
    numbers = np.random.default_rng(0).permutation(count * batch * length * part * mp_size)
    numbers = 2 * numbers + 1  # odd: no half, double or sum of two is one of them
    if np.dtype(dtype) == np.int64:
        numbers = 2**60 + 1024 * numbers + 1  # float64 loses the 1, float32 all of it
    return list(numbers.astype(dtype).reshape(count, batch, length, part * mp_size))


def slices(wholes: list[Array], mp_size: int) -> list[Array]:
    """Each rank's slice of its model's, a contiguous copy; the ranks of a model are neighbours."""
    return [part.copy() for whole in wholes for part in np.split(whole, mp_size, axis=2)]


def in_models(student, comm, x, mp_size):
    """`student` on each rank of comm, whose neighbours share a model."""
    return student(x, comm.Split(color=comm.rank // mp_size, key=comm.rank), mp_size)


def laid_out(array: Array, order: str) -> Array:
    """The same numbers in memory: "C"; "F"; "length first"; or a "slice" of a larger array, with gaps between rows."""
    if order == "slice":
        return np.concatenate([array, array], axis=2)[:, :, : array.shape[2]]
    if order == "length first":
        return array.transpose(1, 0, 2).copy().transpose(1, 0, 2)
    return np.array(array, order=order)


def by_model(arrays: list[Array], mp_size: int) -> list[list[Array]]:
    """Each model's ranks' arrays, out of those of all ranks."""
    return [arrays[first : first + mp_size] for first in range(0, len(arrays), mp_size)]


def grid(ranks: int, mp_size: int) -> list[tuple[int, ...]]:
    """The ranks of each model."""
    return [tuple(range(first, first + mp_size)) for first in range(0, ranks, mp_size)]


def by_rank(arrays: list[Array]) -> dict[str, Array]:
    """Each rank's array by a name of that rank."""
    return {f"rank {rank}": array for rank, array in enumerate(arrays)}
