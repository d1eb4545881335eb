"""Split the training data over the model-parallel groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from labs_helpers.tensor_parallel.grid import check_divides, check_sizes, indices

Array = np.ndarray[Any, Any]


def split_data(x_train: Array, y_train: Array, mp_size: int, dp_size: int, rank: int) -> tuple[Array, Array]:
    """Return views of this rank's part of (x_train, y_train), with the samples in their order.

    x_train: (n, …), y_train: (n, …). All ranks of one model-parallel group get the same n / dp_size samples; the group
    with dp_idx 0 gets the first ones, and so on. Raises ValueError if x and y differ in length, dp_size does not divide
    n, or the rank is outside the grid.
    """
    check_sizes(mp_size * dp_size, mp_size, dp_size)
    if not 0 <= rank < mp_size * dp_size:
        raise ValueError(f"rank is {rank}, but mp_size × dp_size has ranks 0 to {mp_size * dp_size - 1}")
    if len(x_train) != len(y_train):
        raise ValueError(f"x_train has {len(x_train)} samples, y_train {len(y_train)}")
    check_divides("the number of samples", len(x_train), "dp_size", dp_size)
    _, dp_idx = indices(rank, mp_size)
    part = len(x_train) // dp_size
    mine = slice(dp_idx * part, (dp_idx + 1) * part)
    return x_train[mine], y_train[mine]
