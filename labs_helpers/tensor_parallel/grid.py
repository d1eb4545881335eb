"""Ranks in a grid of mp_size × dp_size, the model-parallel index fastest: neighbours share a model, and most bytes.

With mp_size 2 and dp_size 3, ranks 0 and 1 hold the first copy of the model, 2 and 3 the second, 4 and 5 the third:

               mp 0  mp 1
        dp 0     0     1    ← a model-parallel group: one model, cut in two; the same data
        dp 1     2     3
        dp 2     4     5
                 ↑ a data-parallel group: the same part of the model; other data
"""

from __future__ import annotations

from typing import Any, NamedTuple

from labs_helpers.communication.mesh import check_sizes as check_mesh

Comm = Any  # an MPI communicator

OUTPUT_SPLIT = ("fc_q", "fc_k", "fc_v")
INPUT_SPLIT = ("fc_o",)


class Grid(NamedTuple):
    """Where one rank stands, and whom it talks to."""

    mp_idx: int  # which part of the model it holds: 0 … mp_size − 1
    dp_idx: int  # which part of the data it sees: 0 … dp_size − 1
    mp_comm: Comm  # the mp_size ranks of one model, in the order of mp_idx
    dp_comm: Comm  # the dp_size ranks with the same part of the model, in the order of dp_idx


def indices(rank: int, mp_size: int) -> tuple[int, int]:
    """(mp_idx, dp_idx) of a rank."""
    return rank % mp_size, rank // mp_size


def check_sizes(ranks: int, mp_size: int, dp_size: int) -> None:
    """Raises ValueError unless mp_size × dp_size is the number of ranks."""
    check_mesh(ranks, {"mp_size": mp_size, "dp_size": dp_size})


def check_divides(name: str, value: int, by: str, parts: int) -> None:
    """Raises ValueError unless `parts` divides `value`; both are named, and what is left over."""
    if value % parts:
        raise ValueError(f"{name} is {value}, which {by} {parts} does not divide: {value % parts} left over")


def make_grid(comm: Comm, rank: int, mp_size: int, dp_size: int) -> Grid:
    """This rank's place in the grid. Called by every rank of comm; `rank` is its own. ValueError as `check_sizes`."""
    check_sizes(comm.Get_size(), mp_size, dp_size)
    if rank != comm.Get_rank():
        raise ValueError(f"rank is {rank}, but this is rank {comm.Get_rank()} of comm")
    mp_idx, dp_idx = indices(rank, mp_size)
    # By keyword: Split's first argument is the color (which group), its second the key (the order in it).
    mp_comm = comm.Split(color=dp_idx, key=mp_idx)
    dp_comm = comm.Split(color=mp_idx, key=dp_idx)
    return Grid(mp_idx, dp_idx, mp_comm, dp_comm)


def get_info(
    comm: Comm, rank: int, mp_size: int, dp_size: int, fc_layer: str, in_dim: int, out_dim: int
) -> tuple[int, int, Comm, Comm, int, int]:
    """(mp_idx, dp_idx, mp_comm, dp_comm, part_in_dim, part_out_dim) of one of attention's linear layers.

    fc_layer: "fc_q", "fc_k" and "fc_v" split the output dimension (a rank computes whole heads), "fc_o" the input
    dimension (it takes those heads). in_dim, out_dim: of the whole layer; part_in_dim, part_out_dim: of this rank's.

    Called by every rank of comm. ValueError on every rank, before any communication: mp_size × dp_size is not the
    number of ranks, an unknown layer, or a dimension that mp_size does not divide.
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
