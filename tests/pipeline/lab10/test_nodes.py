"""Test the bytes that leave a node, and the drawings of a mesh on nodes."""

import pytest

from labs_helpers.communication.nodes import bytes_between_nodes, leaving
from labs_helpers.pipeline.lab10.exercises import rank_groups
from labs_helpers.pipeline.lab10.mesh_pictures import draw_crossing, draw_mesh

SIZES = {"dp": 2, "pp": 2, "tp": 4}
SENT = {"dp": 1.0, "pp": 10.0, "tp": 100.0}


@pytest.mark.parametrize(
    ("group", "ranks"), [([0, 1, 2, 3], 0), ([0, 4], 2), ([2, 3, 4, 5], 2), ([0, 4, 8, 12], 4), ([0], 0)]
)
def test_ranks_whose_next_neighbor_is_on_another_node(group, ranks):
    assert leaving([group], 4) == ranks


def test_a_larger_node_never_sends_more():
    groups = rank_groups(SIZES, SENT)
    totals = [sum(bytes_between_nodes(groups, SENT, size).values()) for size in (1, 2, 4, 8, 16)]
    assert totals == sorted(totals, reverse=True) and totals[-1] == 0


def test_each_axis_counts_its_own_bytes():
    assert bytes_between_nodes(rank_groups(SIZES, SENT), SENT, 4) == {"dp": 16.0, "pp": 160.0, "tp": 0.0}


def test_a_mesh_has_a_row_per_node_and_a_box_per_rank():
    fig = draw_mesh(rank_groups(SIZES, SENT), 4)
    (ax,) = fig.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"node {node}" for node in range(4)]
    assert len(ax.patches) == 16


@pytest.mark.parametrize("guess", [None, 30])
def test_a_prediction_is_drawn_as_a_line(guess):
    (ax,) = draw_crossing({"dp × tp": 1e9, "tp × dp": 12e9}, guess).axes
    assert len(ax.lines) == (guess is not None) and ax.get_xlim()[1] > 12e9 * (1 if guess is None else 2.5)
