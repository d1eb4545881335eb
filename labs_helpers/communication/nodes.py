"""Count the bytes that leave a node when the ranks of a mesh are placed on nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from labs_helpers.communication.mesh import places, ranks_at


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


def groups_of(sizes: Mapping[str, int]) -> dict[str, list[list[int]]]:
    """Return, by axis, all groups of ranks along it. sizes: of a mesh's axes, from the slowest to the fastest."""
    found: dict[str, list[list[int]]] = {}
    for axis in sizes:
        firsts = [place for place in places(sizes) if place[axis] == 0]
        found[axis] = [ranks_at(sizes, {name: at for name, at in one.items() if name != axis}) for one in firsts]
    return found


def fewest_between_nodes(sizes: Mapping[str, int], sent: Mapping[str, float], gpus_per_node: int) -> float:
    """Return the bytes per step that leave a node if the mesh's axes are in their best order; otherwise as
    `bytes_between_nodes`."""
    orders = [{axis: sizes[axis] for axis in order} for order in permutations(sizes)]
    return min(sum(bytes_between_nodes(groups_of(order), sent, gpus_per_node).values()) for order in orders)
