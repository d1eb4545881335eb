"""The naive scheme: split every layer on its *output* dimension, and collect activations in between.

    x, a slice of features ─ all-gather ─▶ whole x ─ my columns of W ─▶ my slice of out ─ all-gather ─▶ whole out

In the backward pass every rank already holds the gradient of the whole output, so it takes its slice without
communication. Its gradient of the whole x is only the contribution of *its* columns, so a reduce-scatter sums the
contributions and leaves each rank its slice.

Megatron's row-parallel layer differs: it splits W on the *input* dimension and takes a slice of x (layers.py). Arrays
are (batch, length, features); results are contiguous, have the input's dtype, and share no memory with it. mp_comm: an
MPI communicator, or `own_collectives.OwnCollectives`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labs_helpers.tensor_parallel.grid import check_divides

Array = np.ndarray[Any, Any]
Comm = Any  # an MPI communicator


def naive_collect_forward_input(x: Array, mp_comm: Comm, mp_size: int) -> Array:
    """Collect a layer's whole input. x: (batch, length, features / mp_size) → (batch, length, features)."""
    _check("x", x)
    return _gather_features(x, mp_comm, mp_size)


def naive_collect_forward_output(out: Array, mp_comm: Comm, mp_size: int) -> Array:
    """Collect a layer's whole output. out: (batch, length, features / mp_size) → (batch, length, features)."""
    _check("out", out)
    return _gather_features(out, mp_comm, mp_size)


def naive_collect_backward_output(output_grad: Array, mp_group_idx: int, mp_size: int) -> Array:
    """Return this rank's slice of the output's gradient, which every rank holds, without communication.

    output_grad: (batch, length, features) → (batch, length, features / mp_size), a copy.
    """
    _check("output_grad", output_grad)
    check_divides("the features of output_grad", output_grad.shape[2], "mp_size", mp_size)
    if not 0 <= mp_group_idx < mp_size:
        raise ValueError(f"mp_group_idx is {mp_group_idx}, but the group has 0 to {mp_size - 1}")
    part = output_grad.shape[2] // mp_size
    return output_grad[:, :, mp_group_idx * part : (mp_group_idx + 1) * part].copy()


def naive_collect_backward_x(grad_x: Array, mp_comm: Comm, mp_size: int) -> Array:
    """Return this rank's slice of the sum of grad_x over the ranks, by a reduce-scatter along the features.

    grad_x: (batch, length, features), the contribution of this rank's columns → (batch, length, features / mp_size).
    """
    _check("grad_x", grad_x)
    _check_group(mp_comm, mp_size)
    check_divides("the features of grad_x", grad_x.shape[2], "mp_size", mp_size)
    batch, length, features = grad_x.shape
    # MPI scatters consecutive blocks of memory, so the rank has to be the first axis.
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
    """View an array as bytes, so that MPI can move any dtype."""
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
