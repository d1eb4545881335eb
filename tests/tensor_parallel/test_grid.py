"""Test the grid, the layouts and the parts of the data on one rank, whose communicator records its calls."""

import dataclasses

import numpy as np
import pytest

from labs_helpers.tensor_parallel.data import split_data
from labs_helpers.tensor_parallel.grid import get_info
from labs_helpers.tensor_parallel.layouts import check_layout, layouts, why_not
from labs_helpers.transformer import SIZES
from tests import real_ranks


class Recorded:
    """A communicator that may not be used yet: a refusal comes before any communication."""

    def __init__(self, rank, size):
        self.Get_rank, self.Get_size, self.splits = lambda: rank, lambda: size, []

    def Split(self, *, color, key):
        self.splits.append((color, key))
        return f"{color}/{key}"


@pytest.mark.parametrize("mp_size, dp_size", [(1, 1), (4, 1), (1, 4), (2, 3), (3, 2)])
def test_neighbours_share_a_model(mp_size, dp_size):
    places = []
    for rank in range(mp_size * dp_size):
        comm = Recorded(rank, mp_size * dp_size)
        mp_idx, dp_idx, mp_comm, dp_comm, _, _ = get_info(comm, rank, mp_size, dp_size, "fc_q", 12, 24)
        assert (mp_comm, dp_comm) == (f"{dp_idx}/{mp_idx}", f"{mp_idx}/{dp_idx}")
        places.append((dp_idx, mp_idx))
    assert places == [(dp, mp) for dp in range(dp_size) for mp in range(mp_size)]


def test_which_dimension_is_split():
    comm = Recorded(0, 4)
    for layer in ("fc_q", "fc_k", "fc_v"):
        assert get_info(comm, 0, 4, 1, layer, 10, 24)[4:] == (10, 6)
    assert get_info(comm, 0, 4, 1, "fc_o", 24, 10)[4:] == (6, 10)


@pytest.mark.parametrize(
    "sizes, layer, dims, message",
    [
        ((2, 3), "fc_q", (8, 8), "mp_size × dp_size is 2 × 3 = 6, but there are 4 ranks"),
        ((0, 4), "fc_q", (8, 8), "mp_size is 0, not an integer"),
        ((2.0, 2), "fc_q", (8, 8), "mp_size is 2.0, not an integer"),
        ((4, 1), "fc_v", (8, 10), "out_dim of fc_v is 10, which mp_size 4 does not divide: 2 left over"),
        ((4, 1), "fc_o", (11, 8), "in_dim of fc_o is 11, which mp_size 4 does not divide: 3 left over"),
        ((2, 2), "fc_x", (8, 8), "fc_layer is 'fc_x', not one of fc_q, fc_k, fc_v, fc_o"),
    ],
)
def test_every_rank_refuses_before_it_communicates(sizes, layer, dims, message):
    for rank in range(4):
        comm = Recorded(rank, 4)
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            get_info(comm, rank, *sizes, layer, *dims)
        assert comm.splits == []


def test_another_ranks_number_is_refused():
    with pytest.raises(ValueError, match="rank is 0, but this is rank 1"):
        get_info(Recorded(1, 4), 0, 2, 2, "fc_q", 8, 8)


def test_groups_of_real_ranks():
    def groups(comm):
        found = []
        for mp_size, dp_size in ((2, 2), (4, 1), (1, 4)):
            mp_idx, dp_idx, mp_comm, dp_comm, *_ = get_info(comm, comm.rank, mp_size, dp_size, "fc_o", 8, 8)
            assert (mp_comm.rank, dp_comm.rank) == (mp_idx, dp_idx)
            found.append((mp_comm.allgather(comm.rank), dp_comm.allgather(comm.rank)))
        return found

    results = real_ranks.run(groups, 4)
    assert [r[0] for r in results] == [([0, 1], [0, 2]), ([0, 1], [1, 3]), ([2, 3], [0, 2]), ([2, 3], [1, 3])]
    assert [r[1] for r in results] == [([0, 1, 2, 3], [rank]) for rank in range(4)]
    assert [r[2] for r in results] == [([rank], [0, 1, 2, 3]) for rank in range(4)]


@pytest.mark.parametrize("mp_size, dp_size", [(1, 1), (2, 3), (3, 2), (1, 6), (6, 1)])
def test_the_ranks_of_a_model_share_their_data_and_all_of_it_is_there(mp_size, dp_size):
    x, y = np.arange(36.0).reshape(12, 3), np.arange(12)
    parts = [split_data(x, y, mp_size, dp_size, rank) for rank in range(mp_size * dp_size)]
    for rank, (mine_x, mine_y) in enumerate(parts):
        first = rank - rank % mp_size
        assert np.array_equal(mine_x, parts[first][0]) and np.array_equal(mine_y, parts[first][1])
    assert np.array_equal(np.concatenate([part[0] for part in parts[::mp_size]]), x)
    assert np.array_equal(np.concatenate([part[1] for part in parts[::mp_size]]), y)


@pytest.mark.parametrize(
    "n, others, sizes, message",
    [
        (10, 10, (2, 4, 0), "the number of samples is 10, which dp_size 4 does not divide: 2 left over"),
        (8, 7, (2, 4, 0), "x_train has 8 samples, y_train 7"),
        (8, 8, (2, 4, 8), "rank is 8, but mp_size × dp_size has ranks 0 to 7"),
        (8, 8, (2, 0, 0), "dp_size is 0"),
    ],
)
def test_data_that_does_not_divide(n, others, sizes, message):
    with pytest.raises(ValueError, match=message):
        split_data(np.zeros((n, 2)), np.zeros(others), *sizes)


def test_layouts_say_why_not():
    config = dataclasses.replace(SIZES["tiny"], kv_heads=2)
    found = {layout.tp: layout for layout in layouts(8, config)}
    assert [tp for tp, layout in found.items() if not layout.why_not] == [1, 2]
    assert [(layout.dp, layout.tp) for layout in found.values() if not layout.why_not] == [(8, 1), (4, 2)]
    assert found[4].why_not == ("tp 4 does not divide kv_heads 2",)
    assert found[8].why_not == ("tp 8 does not divide heads 4", "tp 8 does not divide kv_heads 2")
    assert found[3].why_not[0] == "tp 3 does not divide 8 ranks"
    assert why_not(config, 2, length=7) == ("tp 2 does not divide length 7",)


def test_a_layout_that_cannot_be_is_refused_with_those_that_can():
    check_layout(8, 2, 4, SIZES["tiny"])
    for dp, tp, message in [
        (1, 8, "tp 8 does not divide heads 4; .*Possible dp × tp on 8 ranks: 8 × 1, 4 × 2, 2 × 4$"),
        (3, 2, "dp × tp is 3 × 2 = 6, but there are 8 ranks. Possible"),
        (0, 2, "have to be 1 or more. Possible"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_layout(8, dp, tp, SIZES["tiny"])
