"""Test ZeRO over NCCL with one rank per GPU, on up to four GPUs."""

from functools import partial

import cloudpickle
import pytest
import torch

from labs_helpers.launch.mpirun import run_on_ranks
from tests.data_parallel.zero import gpu_cases
from tests.tensor_parallel import ranks as on_ranks

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

TRAINED = [
    *[(stage, {}) for stage in ("1", "1 all_reduce", "2", "2 all_reduce", "3", "3 kept")],
    *[(stage, {"overlap_gather": True}) for stage in ("1", "2")],
    *[(stage, {"offload": "optimizer"}) for stage in ("1", "2", "3")],
    ("3", {"offload": "parameters"}),
    ("3", {"device": "this rank's"}),
]
LARGE = [("1", {}), ("2", {}), ("3", {}), ("1", {"offload": "optimizer"}), ("3", {"offload": "parameters"})]


@pytest.fixture(scope="module")
def results():
    cloudpickle.register_pickle_by_value(gpu_cases)
    several = {("trained", i): partial(gpu_cases.trained, *case) for i, case in enumerate(TRAINED)}
    several |= {("large", i): partial(gpu_cases.large, *case) for i, case in enumerate(LARGE)}
    several["dropped"] = gpu_cases.dropped
    return run_on_ranks(on_ranks.run_cases, min(4, torch.cuda.device_count()), several, timeout=140)


@pytest.mark.parametrize("number", range(len(TRAINED)), ids=[str(case) for case in TRAINED])
def test_as_in_one_process(results, number):
    for of_rank in results:
        one = of_rank["trained", number]
        assert not isinstance(one, str), one
        assert max(one["weights"], one["states"], one["norms"]) < 1e-6  # the loss is computed in float32
        offload = TRAINED[number][1].get("offload")
        assert one["pinned"]
        if offload:
            assert one["on the GPU"]["optimizer"] == 0 < one["held"]["optimizer"]
        if offload == "parameters":
            assert one["on the GPU"]["parameters"] == 0 < one["held"]["parameters"]


@pytest.mark.parametrize("number", range(len(LARGE)), ids=[str(case) for case in LARGE])
def test_overlapped_bit_for_bit_and_nothing_held_beside(results, number):
    for of_rank in results:
        one = of_rank["large", number]
        assert not isinstance(one, str), one
        assert one["same"] == 0.0
        assert one["allocated"] - one["held"] < 2**20  # Adam's steps, and blocks of 512 bytes


def test_twenty_wrappers_that_were_dropped_leave_nothing(results):
    for of_rank in results:
        left = of_rank["dropped"]
        assert not isinstance(left, str), left
        assert len(left) == 20 and max(left) < 2**20, left
