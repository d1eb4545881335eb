"""Lab 10, exercise 8: the groups of ranks along each axis of a mesh."""

import itertools


def rank_groups(sizes, exposed):
    """Number the ranks of a mesh, and return the groups of ranks along each axis, a dict of lists.

    sizes: axis → its size, such as {"dp": 2, "pp": 4, "tp": 8}, in any order. exposed: axis → the
    bytes per step that each rank sends along this axis and that no computation hides. They differ
    from axis to axis. Do not change either dict.
    Neighboring ranks share a node, so coordinates along an axis with more exposed bytes vary
    faster: on the axis with the most, ranks 0, 1, 2, … have the coordinates 0, 1, 2, …
    A group along an axis contains the ranks that differ in the coordinate of this axis alone, in
    ascending order. Return axis → all groups along it, each a list of ranks, in any order.
    """
    # 1. Order the axes. itertools.product lists coordinates so that the last one varies fastest.
    # 2. For one axis, which ranks have all other coordinates in common?
    ### BEGIN SOLUTION
    order = sorted(sizes, key=exposed.get)
    places = list(itertools.product(*(range(sizes[axis]) for axis in order)))
    groups = {}
    for i, axis in enumerate(order):
        lines = {}
        for rank, place in enumerate(places):
            lines.setdefault((*place[:i], *place[i + 1 :]), []).append(rank)
        groups[axis] = list(lines.values())
    return groups
    ### END SOLUTION
