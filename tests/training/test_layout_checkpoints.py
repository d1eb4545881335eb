"""Test that a training goes on in any layout from the state of any other, on practice ranks."""

import itertools
import sys

import numpy as np
import pytest

from labs_helpers.communication import Mesh
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.practice.groups import practice_groups
from labs_helpers.training.model_part import ModelPart
from labs_helpers.training.pipelining import make_schedule
from labs_helpers.training.whole_state import PARTS
from tests.training.layouts import STEPS, in_one_process, on_practice_ranks, plain, settings

SAME = {"batch": 24, "layers": 4}
LAYOUTS = {
    "alone": settings(**SAME),
    "2 × 1 × 1, ZeRO": settings(2, zero=1, **SAME),
    "1 × 1 × 2": settings(1, 1, 2, **SAME),
    "1 × 3 × 1, ZB-H1": settings(1, 3, schedule="ZB-H1", micro_batches=4, **SAME),
    "2 × 2 × 1, interleaved, ZeRO": settings(2, 2, schedule="interleaved", chunks=2, zero=1, **SAME),
    "1 × 2 × 2, sequence-parallel": settings(1, 2, 2, sequence_parallel=True, **SAME),
    "3 × 2 × 1, ZeRO": settings(3, 2, zero=1, **SAME),  # with shards that end with zeros
}
QUICK = [("3 × 2 × 1, ZeRO", "1 × 2 × 2, sequence-parallel"), ("2 × 2 × 1, interleaved, ZeRO", "1 × 3 × 1, ZB-H1")]
LOADED = ("2 × 2 × 1, interleaved, ZeRO", "1 × 2 × 2, sequence-parallel")
SAVED = 1  # steps before the layout changes
soak = pytest.mark.soak


def goes_on(first, then):
    """Train SAVED steps in one layout and the others in another, and compare with one process."""
    expected, saved = in_one_process(plain(LAYOUTS["alone"])), on_practice_ranks(LAYOUTS[first], SAVED)[0]
    found = on_practice_ranks(LAYOUTS[then], STEPS - SAVED, (SAVED, saved.state))[0]
    assert np.abs(np.subtract(saved.losses + found.losses, expected.losses)).max() < 1e-9
    for name, value in expected.state.items():
        assert np.linalg.norm(found.state[name] - value) <= 1e-9 * np.linalg.norm(value), name


@pytest.mark.parametrize("first, then", QUICK)
def test_a_training_goes_on_in_another_layout(first, then):
    goes_on(first, then)


@soak
@pytest.mark.parametrize("first, then", [pair for pair in itertools.permutations(LAYOUTS, 2) if pair not in QUICK])
def test_a_training_goes_on_in_every_other_layout(first, then):
    goes_on(first, then)


@pytest.mark.parametrize("name", [each if each in LOADED else pytest.param(each, marks=soak) for each in LAYOUTS])
def test_a_state_is_loaded_without_a_change(name):
    """Every parameter and moment comes back with the same bits, also the tied weight, of which one copy is kept."""
    saved = on_practice_ranks(LAYOUTS[name])[0].state
    again = on_practice_ranks(LAYOUTS[name], 0, (STEPS, saved))[0].state
    assert list(saved) == list(again) and {key.partition("/")[0] for key in saved} == set(PARTS)
    assert all(np.array_equal(saved[key], again[key]) for key in saved)


def test_a_rank_of_zero_keeps_the_moments_of_its_shard_alone():
    from labs_helpers.training.zero1 import ShardedUpdate

    def kept(comm, wanted):
        mesh = Mesh(PracticeCommunication(comm), wanted.axes)
        part = ModelPart(wanted, mesh, "cpu", make_schedule("1F1B", 1, 1, 1))
        update = ShardedUpdate(part, 1e-3, bucket_bytes=sys.maxsize)
        for shards in update.shards:
            shards.shard.grad = shards.shard.detach().clone()
        update.apply()
        return [state["exp_avg"].numel() for state in update.optimizer.state.values()]

    wanted = settings(4, zero=1)
    total = sum(value.size for name, value in in_one_process(plain(wanted)).state.items() if name.startswith("model/"))
    assert [sum(sizes) for sizes in practice_groups(kept, 4, wanted).results] == [total / 4] * 4
