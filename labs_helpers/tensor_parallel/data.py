"""Each model-parallel group trains on a part of the data of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from labs_helpers.tensor_parallel.grid import check_divides, check_sizes, indices

Array = np.ndarray[Any, Any]


def split_data(x_train: Array, y_train: Array, mp_size: int, dp_size: int, rank: int) -> tuple[Array, Array]:
    """This rank's part of (x_train, y_train): views, in the order of the whole.

    x_train: (n, …), y_train: (n, …). The ranks of one model-parallel group get the same n / dp_size samples; those of
    dp_idx 0 the first ones, and so on. ValueError: x and y of different lengths, n that dp_size does not divide, a rank
    outside the grid.
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
