"""Which ranks of a grid are on which node: the tensor-parallel groups inside the nodes, or across them."""

from __future__ import annotations

import os
from typing import Any

from labs_helpers.tensor_parallel.grid import Grid, check_sizes, make_grid

PLACEMENTS = ("inside", "across")


def position(rank: int, dp: int, tp: int, placement: str) -> int:
    """Where a rank of the world stands in the grid, whose tp index is the faster one.

    Nodes hold neighbouring ranks. "inside": rank by rank, so that a tensor-parallel group is as much on one node as it
    can be. "across": the dp index follows the ranks, and data-parallel groups are. ValueError for another placement.
    """
    if placement not in PLACEMENTS:
        raise ValueError(f"placement is {placement!r}, not one of {', '.join(PLACEMENTS)}")
    return rank if placement == "inside" else rank % dp * tp + rank // dp


def nodes_of_groups(dp: int, tp: int, placement: str, ranks_per_node: int) -> tuple[int, int]:
    """(nodes that the first tensor-parallel group is on, nodes that the first data-parallel group is on)."""
    node_at = {position(rank, dp, tp, placement): rank // ranks_per_node for rank in range(dp * tp)}
    return len({node_at[i] for i in range(tp)}), len({node_at[i * tp] for i in range(dp)})


def place(comm: Any, dp: int, tp: int, placement: str, ranks_per_node: int) -> Grid:
    """The grid of comm's ranks in a placement. Called by every rank of comm.

    RuntimeError unless the host names say that every group is on as many nodes as `nodes_of_groups` has it.
    """
    check_sizes(comm.Get_size(), tp, dp)
    ordered = comm.Split(color=0, key=position(comm.Get_rank(), dp, tp, placement))
    grid = make_grid(ordered, ordered.Get_rank(), tp, dp)
    ordered.Free()
    expected = nodes_of_groups(dp, tp, placement, ranks_per_node)
    for name, group, nodes in zip(("tensor", "data"), (grid.mp_comm, grid.dp_comm), expected, strict=True):
        hosts = sorted(set(group.allgather(os.uname().nodename)))
        if len(hosts) != nodes:
            raise RuntimeError(
                f"{dp} × {tp} {placement}: the {name}-parallel group of rank {comm.Get_rank()} is to be on {nodes} of "
                f"the nodes, but is on {', '.join(hosts)}"
            )
    return grid
