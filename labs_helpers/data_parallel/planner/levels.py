"""Hybrid sharding's traffic over nodes: shards stay within a node, and replicas of them stand in the others.

There are n nodes of g ranks. Inside a node links are fast; its cable to the others is shared by its g ranks.
"""

from __future__ import annotations

from labs_helpers.data_parallel.planner.accounting import DEFAULT
from labs_helpers.data_parallel.planner.model_size import Model
from labs_helpers.data_parallel.planner.volume import step_volume
from labs_helpers.tensor_parallel.traffic import Sent


def hybrid_volume(model: Model, ranks_per_node: int, layout: str = DEFAULT, accumulate: int = 1) -> list[Sent]:
    """ZeRO-3 inside each node, replicas between (FSDP's HYBRID_SHARD, MiCS): gathers and reduce-scatters stay in the
    group "node", and what a rank's shard of the gradients is then is all-reduced over "nodes"."""
    found = []
    for row in step_volume(model, "ZeRO-3", layout, accumulate=accumulate):
        found.append(row._replace(group="node"))
        if row.operation == "reduce_scatter":
            found.append(row._replace(group="nodes", operation="all_reduce", payload=row.payload // ranks_per_node))
    return found
