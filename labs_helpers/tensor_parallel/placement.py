"""Which ranks of a dp × tp mesh are on which node: the tensor-parallel groups inside the nodes, or across them."""

from __future__ import annotations

import os
from typing import Any

from labs_helpers.communication import Communication, Mesh
from labs_helpers.communication.mesh import ranks_at

PLACEMENTS = ("inside", "across")
LONG_NAMES = {"dp": "data", "tp": "tensor"}


def axes(dp: int, tp: int, placement: str) -> dict[str, int]:
    """Return the sizes of the mesh. Nodes hold neighbouring ranks, so its fastest axis stays inside a node as far as
    it can: tp for "inside", dp for "across". ValueError for another placement.
    """
    if placement not in PLACEMENTS:
        raise ValueError(f"placement is {placement!r}, not one of {', '.join(PLACEMENTS)}")
    return {"dp": dp, "tp": tp} if placement == "inside" else {"tp": tp, "dp": dp}


def nodes_of_groups(dp: int, tp: int, placement: str, ranks_per_node: int) -> dict[str, int]:
    """Return by axis how many nodes its first group is on."""
    sizes = axes(dp, tp, placement)
    first = {name: ranks_at(sizes, {other: 0 for other in sizes if other != name}) for name in sizes}
    return {name: len({rank // ranks_per_node for rank in ranks}) for name, ranks in first.items()}


def place(comm: Any, world: Communication, dp: int, tp: int, placement: str, ranks_per_node: int) -> Mesh:
    """The mesh of comm's ranks in a placement. Called by every rank of comm; `world` is the same ranks.

    RuntimeError unless the host names say that every group is on as many nodes as `nodes_of_groups` has it.
    """
    mesh = Mesh(world, axes(dp, tp, placement))
    host_of = comm.allgather(os.uname().nodename)
    for name, nodes in nodes_of_groups(dp, tp, placement, ranks_per_node).items():
        hosts = sorted({host_of[rank] for rank in mesh.ranks[name]})
        if len(hosts) != nodes:
            raise RuntimeError(
                f"{dp} × {tp} {placement}: the {LONG_NAMES[name]}-parallel group of rank {comm.Get_rank()} is to be on "
                f"{nodes} of the nodes, but is on {', '.join(hosts)}"
            )
    return mesh
