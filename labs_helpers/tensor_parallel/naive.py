"""The naive scheme: every layer split on its *output* dimension, and activations collected in between.

    x, a slice of features ─ all-gather ─▶ whole x ─ my columns of W ─▶ my slice of out ─ all-gather ─▶ whole out

Backward, the gradient of the whole output is already on every rank, so its slice costs nothing; each rank's gradient of
the whole x is what *its* columns contribute, so these are summed and each rank keeps its slice: one reduce-scatter.

It is not Megatron's row-parallel layer, whose W is split on the *input* dimension and takes x as it is (layers.py).
Arrays are (batch, length, features); results are contiguous, of the input's dtype, and share no memory with it.
mp_comm: an MPI communicator, or `own_collectives.OwnCollectives`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labs_helpers.tensor_parallel.grid import check_divides

Array = np.ndarray[Any, Any]
Comm = Any  # an MPI communicator


def naive_collect_forward_input(x: Array, mp_comm: Comm, mp_size: int) -> Array:
    """The whole input of a layer. x: (batch, length, features / mp_size) → (batch, length, features)."""
    _check("x", x)
    return _gather_features(x, mp_comm, mp_size)


def naive_collect_forward_output(out: Array, mp_comm: Comm, mp_size: int) -> Array:
    """The whole output of a layer. out: (batch, length, features / mp_size) → (batch, length, features)."""
    _check("out", out)
    return _gather_features(out, mp_comm, mp_size)


def naive_collect_backward_output(output_grad: Array, mp_group_idx: int, mp_size: int) -> Array:
    """My slice of the output's gradient, which every rank has: no communication.

    output_grad: (batch, length, features) → (batch, length, features / mp_size), a copy.
    """
    _check("output_grad", output_grad)
    check_divides("the features of output_grad", output_grad.shape[2], "mp_size", mp_size)
    if not 0 <= mp_group_idx < mp_size:
        raise ValueError(f"mp_group_idx is {mp_group_idx}, but the group has 0 to {mp_size - 1}")
    part = output_grad.shape[2] // mp_size
    return output_grad[:, :, mp_group_idx * part : (mp_group_idx + 1) * part].copy()


def naive_collect_backward_x(grad_x: Array, mp_comm: Comm, mp_size: int) -> Array:
    """My slice of the sum of all ranks' grad_x: a reduce-scatter along the features.

    grad_x: (batch, length, features), what this rank's columns contribute → (batch, length, features / mp_size).
    """
    _check("grad_x", grad_x)
    _check_group(mp_comm, mp_size)
    check_divides("the features of grad_x", grad_x.shape[2], "mp_size", mp_size)
    batch, length, features = grad_x.shape
    # MPI scatters blocks that lie one behind the other, so the rank's index comes first.
    blocks = grad_x.reshape(batch, length, mp_size, features // mp_size).transpose(2, 0, 1, 3)
    wide = np.float32 if grad_x.dtype == np.float16 else grad_x.dtype  # see `communication.mpi.HALF`
    mine = np.empty((batch, length, features // mp_size), wide)
    mp_comm.Reduce_scatter_block(np.ascontiguousarray(blocks, wide), mine)
    return mine.astype(grad_x.dtype, copy=False)


def _gather_features(x: Array, mp_comm: Comm, mp_size: int) -> Array:
    _check_group(mp_comm, mp_size)
    parts = np.empty((mp_size, *x.shape), x.dtype)
    mp_comm.Allgather(_bits(np.ascontiguousarray(x)), _bits(parts))
    return np.concatenate(list(parts), axis=2)


def _bits(array: Array) -> Array:
    """The array's bytes: where nothing is computed, MPI need not know the dtype."""
    return array.reshape(-1).view(np.uint8)


def _check(name: str, array: Array) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} is a {type(array).__name__}, not a NumPy array")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} has dtype {array.dtype}; it has to hold real numbers")
    if array.ndim != 3:
        raise ValueError(f"{name} has shape {array.shape}, not (batch, length, features)")


def _check_group(mp_comm: Comm, mp_size: int) -> None:
    if mp_comm.Get_size() != mp_size:
        raise ValueError(f"mp_size is {mp_size}, but mp_comm has {mp_comm.Get_size()} ranks")
