"""Test lab 08's stretch: its best groups are optimal, and wrong groups are rejected with a message."""

import itertools
import random

import pytest

from labs_helpers.data_parallel.charts import recorded
from labs_helpers.data_parallel.lab08 import stretch
from labs_helpers.draw import figures


def test_no_grouping_ends_before_the_best():
    draw = random.Random(0)
    for alpha, beta in ((0.5, 0.01), (0.01, 0.2), (3.0, 0.0)):
        nbytes = [draw.randint(1, 40) for _ in range(7)]
        ready = sorted(draw.random() * 5 for _ in nbytes)
        every = [
            [list(range(a, b)) for a, b in itertools.pairwise((0, *cuts, 7))]
            for k in range(7)
            for cuts in itertools.combinations(range(1, 7), k)
        ]
        ends = [stretch.exposed_after(groups, nbytes, ready, alpha, beta) for groups in every]
        best = stretch.best_groups(nbytes, ready, alpha, beta)
        assert stretch.exposed_after(best, nbytes, ready, alpha, beta) == pytest.approx(min(ends))


@pytest.mark.parametrize("groups", [[[0, 1]], [[1], [0], [2]], [[0], [], [1, 2]], [[0, 1], [1, 2]]])
def test_every_gradient_once_and_in_order(groups):
    with pytest.raises(ValueError, match="0 to 2 once"):
        stretch.exposed_after(groups, [4, 4, 4], [1.0, 2.0, 3.0], 0.1, 0.1)


def test_yours_stands_beside_ours():
    rows = recorded.best("bucket", "cpu")
    fig = stretch.draw_own_buckets(rows, lambda nbytes, ready, alpha, beta: [list(range(len(nbytes)))])
    assert "yours 121" in fig.get_suptitle() and len(figures.png(fig)) < 60_000
    assert "yours" not in stretch.draw_own_buckets(rows, lambda *_: None).get_suptitle()
