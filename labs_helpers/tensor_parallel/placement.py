"""Place the ranks of a dp × tp mesh on nodes, with tensor-parallel groups inside the nodes or across them."""

from __future__ import annotations

import os
from typing import Any

from labs_helpers.communication import Communication, Mesh
from labs_helpers.communication.mesh import ranks_at

PLACEMENTS = ("inside", "across")
LONG_NAMES = {"dp": "data", "tp": "tensor"}


def axes(dp: int, tp: int, placement: str) -> dict[str, int]:
    """Return the sizes of the mesh, slowest axis first.

    Nodes hold neighboring ranks, so the fastest axis stays inside a node as far as it can: tp for "inside", dp for
    "across". Raises ValueError for another placement.
    """
    if placement not in PLACEMENTS:
        raise ValueError(f"placement is {placement!r}, not one of {', '.join(PLACEMENTS)}")
    return {"dp": dp, "tp": tp} if placement == "inside" else {"tp": tp, "dp": dp}


def nodes_of_groups(dp: int, tp: int, placement: str, ranks_per_node: int) -> dict[str, int]:
    """Return, by axis, the number of nodes that its first group occupies."""
    sizes = axes(dp, tp, placement)
    first = {name: ranks_at(sizes, {other: 0 for other in sizes if other != name}) for name in sizes}
    return {name: len({rank // ranks_per_node for rank in ranks}) for name, ranks in first.items()}


def place(comm: Any, world: Communication, dp: int, tp: int, placement: str, ranks_per_node: int) -> Mesh:
    """Return the mesh of comm's ranks in a placement; every rank of comm calls this. `world` holds the same ranks.

    Raises RuntimeError if the host names show a group on a number of nodes other than that of `nodes_of_groups`.
    """
    mesh = Mesh(world, axes(dp, tp, placement))
    host_of = comm.allgather(os.uname().nodename)
    for name, nodes in nodes_of_groups(dp, tp, placement, ranks_per_node).items():
        hosts = sorted({host_of[rank] for rank in mesh.ranks[name]})
        if len(hosts) != nodes:
            raise RuntimeError(
                f"{dp} × {tp} {placement}: the {LONG_NAMES[name]}-parallel group of rank {comm.Get_rank()} should be "
                f"on {nodes} nodes, but is on {', '.join(hosts)}"
            )
    return mesh
