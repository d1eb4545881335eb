"""Test which groups a mesh has, and which order of its axes sends the fewest bytes between nodes."""

import pytest

from labs_helpers.communication.nodes import bytes_between_nodes, fewest_between_nodes, groups_of
from labs_helpers.pipeline.lab10.exercises import rank_groups

SENT = {"dp": 1.0, "pp": 10.0, "tp": 100.0}


@pytest.mark.parametrize("sizes", [{"dp": 2, "tp": 4}, {"dp": 3, "pp": 2, "tp": 2}, {"dp": 1, "tp": 2}, {"tp": 3}])
def test_the_groups_are_those_of_lab_10(sizes):
    assert groups_of(sizes) == rank_groups(sizes, SENT)


@pytest.mark.parametrize("sizes", [{"tp": 4, "dp": 2}, {"tp": 2, "pp": 2, "dp": 4}, {"dp": 4, "pp": 2, "tp": 2}])
@pytest.mark.parametrize("per_node", [2, 4])
def test_the_best_order_has_the_axis_that_sends_most_inside(sizes, per_node):
    best = {axis: sizes[axis] for axis in sorted(sizes, key=SENT.get)}
    between = sum(bytes_between_nodes(groups_of(best), SENT, per_node).values())
    assert fewest_between_nodes(sizes, SENT, per_node) == between > 0
    assert fewest_between_nodes(best, SENT, per_node) == between
