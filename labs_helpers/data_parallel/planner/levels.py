"""The same traffic over nodes: collectives in two levels, and shards that stay within a node.

There are n nodes of g ranks. Inside a node links are fast; its cable to the others is shared by its g ranks.
"""

from __future__ import annotations

from collections.abc import Iterable

from labs_helpers.data_parallel.planner.accounting import DEFAULT
from labs_helpers.data_parallel.planner.model_size import Model
from labs_helpers.data_parallel.planner.volume import step_volume
from labs_helpers.tensor_parallel.traffic import Sent


def two_level(rows: Iterable[Sent], ranks_per_node: int) -> list[Sent]:
    """Each collective of the group "dp" as one inside the nodes ("node") and one between them ("nodes").

    All-reduce: reduce-scatter inside, all-reduce of 1 / g of the bytes between, all-gather inside. The others: inside
    as before, between with 1 / g of the bytes. Each rank talks to its counterparts in the other nodes, all g at once,
    so that a node's cable carries 2 (n − 1) / n of an all-reduce, where one ring through all ranks sends
    2 (N − 1) / N. Rows of other groups stay as they are. ValueError: ranks_per_node below 1.
    """
    if ranks_per_node < 1:
        raise ValueError(f"ranks_per_node is {ranks_per_node}; it has to be 1 or more")
    found = []
    for row in rows:
        if row.group != "dp":
            found.append(row)
            continue
        inside = {"all_reduce": ("reduce_scatter", "all_gather")}.get(row.operation, (row.operation,))
        if ranks_per_node > 1:
            found += [row._replace(group="node", operation=name) for name in inside]
        found.append(row._replace(group="nodes", payload=row.payload // ranks_per_node))
    return found


def hybrid_volume(model: Model, ranks_per_node: int, layout: str = DEFAULT, accumulate: int = 1) -> list[Sent]:
    """ZeRO-3 inside each node, replicas between (FSDP's HYBRID_SHARD, MiCS): gathers and reduce-scatters stay in the
    group "node", and what a rank's shard of the gradients is then is all-reduced over "nodes"."""
    found = []
    for row in step_volume(model, "ZeRO-3", layout, accumulate=accumulate):
        found.append(row._replace(group="node"))
        if row.operation == "reduce_scatter":
            found.append(row._replace(group="nodes", operation="all_reduce", payload=row.payload // ranks_per_node))
    return found
