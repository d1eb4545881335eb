"""Traffic of hybrid sharding across nodes: shards within a node, and replicas of them in the other nodes.

There are n nodes with g ranks each. Links inside a node are fast; the ranks of a node share its cable to the others.
"""

from __future__ import annotations

from labs_helpers.planner.accounting import DEFAULT
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.volume import step_volume
from labs_helpers.tensor_parallel.traffic import Sent


def hybrid_volume(model: Model, ranks_per_node: int, layout: str = DEFAULT, accumulate: int = 1) -> list[Sent]:
    """Return the traffic of ZeRO-3 inside each node with replicas across nodes (FSDP's HYBRID_SHARD, MiCS).

    Gathers and reduce-scatters stay in the group "node". Each rank's shard of the gradients is then all-reduced over
    "nodes".
    """
    found = []
    for row in step_volume(model, "ZeRO-3", layout, accumulate=accumulate):
        found.append(row._replace(group="node"))
        if row.operation == "reduce_scatter":
            found.append(row._replace(group="nodes", operation="all_reduce", payload=row.payload // ranks_per_node))
    return found
