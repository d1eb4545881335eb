"""Count the bytes that leave a node when the ranks of a mesh are placed on nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def leaving(groups: Sequence[Sequence[int]], gpus_per_node: int) -> int:
    """Return the number of ranks whose next neighbor in their group, which forms a ring, is on another node.

    groups: of ranks, along one axis of a mesh. Rank r is on the node r // gpus_per_node.
    """
    return sum(
        rank // gpus_per_node != group[(i + 1) % len(group)] // gpus_per_node
        for group in groups
        for i, rank in enumerate(group)
    )


def bytes_between_nodes(
    groups: Mapping[str, Sequence[Sequence[int]]], sent: Mapping[str, float], gpus_per_node: int
) -> dict[str, float]:
    """Return, by axis, the bytes per step that leave a node. sent: by axis, the bytes that each rank sends per step."""
    return {axis: sent[axis] * leaving(groups[axis], gpus_per_node) for axis in groups}
