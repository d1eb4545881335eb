"""A grid of mp_size × dp_size ranks. The model-parallel index varies fastest, so neighboring ranks share a model.

With mp_size 2 and dp_size 3, ranks 0 and 1 hold the first copy of the model, 2 and 3 the second, 4 and 5 the third:

               mp 0  mp 1
        dp 0     0     1    ← a model-parallel group: one model split in two, the same data
        dp 1     2     3
        dp 2     4     5
                 ↑ a data-parallel group: the same part of the model, different data
"""

from __future__ import annotations

from typing import Any, NamedTuple

from labs_helpers.communication.mesh import check_sizes as check_mesh

Comm = Any  # an MPI communicator

OUTPUT_SPLIT = ("fc_q", "fc_k", "fc_v")
INPUT_SPLIT = ("fc_o",)


class Grid(NamedTuple):
    """One rank's indices in the grid and its two communicators."""

    mp_idx: int  # the part of the model that it holds, 0 … mp_size − 1
    dp_idx: int  # the part of the data that it sees, 0 … dp_size − 1
    mp_comm: Comm  # the mp_size ranks of one model, in the order of mp_idx
    dp_comm: Comm  # the dp_size ranks with the same part of the model, in the order of dp_idx


def indices(rank: int, mp_size: int) -> tuple[int, int]:
    """Return (mp_idx, dp_idx) of a rank."""
    return rank % mp_size, rank // mp_size


def check_sizes(ranks: int, mp_size: int, dp_size: int) -> None:
    """Raise ValueError unless mp_size × dp_size is the number of ranks."""
    check_mesh(ranks, {"mp_size": mp_size, "dp_size": dp_size})


def check_divides(name: str, value: int, by: str, parts: int) -> None:
    """Raise ValueError, with both names and the remainder, unless `parts` divides `value`."""
    if value % parts:
        raise ValueError(f"{name} is {value}, which {by} {parts} does not divide: {value % parts} left over")


def make_grid(comm: Comm, rank: int, mp_size: int, dp_size: int) -> Grid:
    """Build the grid; every rank of comm calls this with its own `rank`. Raises ValueError as `check_sizes` does."""
    check_sizes(comm.Get_size(), mp_size, dp_size)
    if rank != comm.Get_rank():
        raise ValueError(f"rank is {rank}, but this is rank {comm.Get_rank()} of comm")
    mp_idx, dp_idx = indices(rank, mp_size)
    # Split's first argument is the color (which group), its second the key (the order within the group).
    mp_comm = comm.Split(color=dp_idx, key=mp_idx)
    dp_comm = comm.Split(color=mp_idx, key=dp_idx)
    return Grid(mp_idx, dp_idx, mp_comm, dp_comm)


def get_info(
    comm: Comm, rank: int, mp_size: int, dp_size: int, fc_layer: str, in_dim: int, out_dim: int
) -> tuple[int, int, Comm, Comm, int, int]:
    """Return (mp_idx, dp_idx, mp_comm, dp_comm, part_in_dim, part_out_dim) for one of attention's linear layers.

    fc_layer: "fc_q", "fc_k" and "fc_v" are split on the output dimension, so a rank computes whole heads; "fc_o" is
    split on the input dimension and takes those heads. in_dim, out_dim: sizes of the whole layer; part_in_dim,
    part_out_dim: sizes of this rank's part.

    Every rank of comm calls this. Raises ValueError on every rank, before any communication, if mp_size × dp_size is
    not the number of ranks, the layer is unknown, or mp_size does not divide the split dimension.
    """
    check_sizes(comm.Get_size(), mp_size, dp_size)
    if fc_layer in OUTPUT_SPLIT:
        check_divides(f"out_dim of {fc_layer}", out_dim, "mp_size", mp_size)
        part_in_dim, part_out_dim = in_dim, out_dim // mp_size
    elif fc_layer in INPUT_SPLIT:
        check_divides(f"in_dim of {fc_layer}", in_dim, "mp_size", mp_size)
        part_in_dim, part_out_dim = in_dim // mp_size, out_dim
    else:
        raise ValueError(f"fc_layer is {fc_layer!r}, not one of {', '.join(OUTPUT_SPLIT + INPUT_SPLIT)}")
    return *make_grid(comm, rank, mp_size, dp_size), part_in_dim, part_out_dim
