"""Compare a mesh's places and groups with NumPy's reshape, and test its groups on practice ranks and real ranks."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.communication.mesh import Mesh, places, ranks_at
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.communication.timed import TimedCommunication
from labs_helpers.practice.groups import practice_groups
from tests.tensor_parallel import ranks as on_ranks

SIZES = st.fixed_dictionaries({name: st.integers(1, 3) for name in ("pp", "dp", "tp")})  # in every order


def grid(sizes):
    """The ranks in an array with a dimension per axis."""
    return np.arange(math.prod(sizes.values())).reshape(*sizes.values())


def lines(sizes, name):
    """The ranks of each group along an axis."""
    return np.moveaxis(grid(sizes), list(sizes).index(name), -1).reshape(-1, sizes[name]).tolist()


@given(SIZES)
def test_places_and_groups_are_those_of_numpy_s_reshape(sizes):
    for rank, place in enumerate(places(sizes)):
        assert grid(sizes)[tuple(place[name] for name in sizes)] == rank
        mesh = Mesh(SilentCommunication(rank, math.prod(sizes.values())), sizes)
        assert mesh.place == place and mesh.sizes == sizes and list(mesh) == list(sizes) and len(mesh) == 3
        for name, group in mesh.items():
            assert mesh.ranks[name] in lines(sizes, name) and mesh.ranks[name][group.rank] == rank
            assert (group.rank, group.size) == (place[name], sizes[name])
    at = {"pp": sizes["pp"] - 1, "tp": 0}
    assert ranks_at(sizes, at) == grid(sizes)[tuple(at.get(name, slice(None)) for name in sizes)].tolist()


def sums(world, sizes):
    """By axis, the ranks whose numbers meet in this rank's group, as bits."""
    import torch

    mesh = Mesh(world, sizes)
    found = {name: group.all_reduce(torch.tensor([2.0**world.rank])).item() for name, group in mesh.items()}
    right = {name: sum(2.0**rank for rank in ranks) for name, ranks in mesh.ranks.items()}
    order = {name: group.all_gather(torch.tensor([world.rank])).tolist() for name, group in mesh.items()}
    calls = {name: sum(group.calls.values()) for name, group in mesh.items()}
    mesh.free()
    return found == right, order == mesh.ranks, calls


@given(SIZES)
def test_groups_of_practice_ranks(sizes):
    ran = practice_groups(lambda comm: sums(PracticeCommunication(comm), sizes), math.prod(sizes.values()))
    calls = {name: 2 * (size > 1) for name, size in sizes.items()}
    assert ran.results == [(True, True, calls)] * len(ran.results)


def on_real_ranks(way, comm):
    return sums(on_ranks.world(comm, way), {"pp": 2, "dp": 2, "tp": 1})


def on_some_ranks_of_torch(comm):
    """What a mesh of the first two ranks says to each of them."""
    import torch.distributed as dist

    from labs_helpers.communication import connect

    on_ranks.world(comm, "torch")
    group = dist.new_group([0, 1])
    if comm.rank < 2:
        try:
            Mesh(connect("torch", group), {"dp": 2})
        except ValueError as error:
            return {"said": str(error)}


CASES = {way: functools.partial(on_real_ranks, way) for way in on_ranks.WAYS} | {"some": on_some_ranks_of_torch}


@pytest.mark.parametrize("way", on_ranks.WAYS)
def test_groups_of_real_ranks(results, way):
    assert [of_rank[way] for of_rank in results] == [(True, True, {"pp": 2, "dp": 2, "tp": 0})] * 4


def test_torch_has_no_mesh_of_some_ranks(results):
    for of_rank in results[:2]:
        assert of_rank["some"]["said"] == "a mesh has all 4 ranks of torch.distributed, not 2"


def test_for_an_axis_of_one_rank_no_group_is_made():
    class Recorded(SilentCommunication):
        def _split(self, axes):
            made.append(axes)
            return super()._split(axes)

    made = []
    Mesh(Recorded(2, 4), {"dp": 2, "pp": 1, "tp": 2})
    Mesh(Recorded(0, 1), {"dp": 1, "tp": 1})
    assert made == [{"dp": [0, 2], "tp": [2, 3]}]


def test_a_stopwatch_goes_along_every_axis():
    mesh = Mesh(TimedCommunication(SilentCommunication(1, 4)), {"dp": 1, "tp": 4})
    assert [(group.seconds, group.rank, group.size) for group in mesh.values()] == [(0, 0, 1), (0, 1, 4)]


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"dp": 2, "tp": 3}, "dp × tp is 2 × 3 = 6, but there are 4 ranks"),
        ({"dp": 4, "tp": 0}, "tp is 0, not an integer of 1 or more"),
        ({"dp": 4, "tp": True}, "tp is True, not an integer of 1 or more"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        Mesh(SilentCommunication(0, 4), sizes)


def test_an_unknown_axis_is_told_those_that_there_are():
    mesh = Mesh(SilentCommunication(0, 4), {"dp": 2, "tp": 2})
    with pytest.raises(KeyError, match="this mesh has no axis 'pp'; its axes are dp, tp"):
        mesh["pp"]
    assert "pp" not in mesh
