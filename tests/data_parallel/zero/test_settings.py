"""Test the dictionary of settings: PyTorch's names exist, and DeepSpeed's are those of its documentation."""

import inspect

import pytest
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from labs_helpers.data_parallel.zero.settings import OUTSIDE, SETTINGS, named, table

# As deepspeed/runtime/zero/config.py has them.
ZERO_OPTIMIZATION = {
    "stage", "reduce_bucket_size", "allgather_bucket_size", "overlap_comm", "reduce_scatter", "contiguous_gradients",
    "stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance",
    "stage3_param_persistence_threshold", "zero_hpz_partition_size", "mics_shard_size", "zero_quantized_weights",
    "zero_quantized_gradients", "offload_optimizer", "offload_param", "sub_group_size", "ignore_unused_parameters",
    "stage3_gather_16bit_weights_on_model_save",
}  # fmt: skip


def names(*places):
    return {name for place in places for name in (*inspect.signature(place).parameters, *dir(place))}


def test_the_names_of_pytorch_exist():
    ddp = names(DistributedDataParallel)
    fsdp2 = names(fully_shard, FSDPModule, MixedPrecisionPolicy, CPUOffloadPolicy)
    for setting in SETTINGS:
        assert set(setting.ddp) <= ddp, setting
        assert set(setting.fsdp2) <= fsdp2, setting


def test_the_names_of_deepspeed_are_its_own():
    used = {name for setting in SETTINGS for name in setting.deepspeed}
    assert set(OUTSIDE) <= used
    assert {name.split(".")[0] for name in used - set(OUTSIDE)} == ZERO_OPTIMIZATION


def test_what_is_told_of_defaults_is_pytorch_s():
    assert inspect.signature(DistributedDataParallel).parameters["gradient_as_bucket_view"].default is False
    assert "25 MiB" in (DistributedDataParallel.__doc__ or "") and "25 MiB" in named("bucket_cap_mb")[0].does


def test_a_row_has_a_name_somewhere_and_says_what_it_does():
    whats = [setting.what for setting in SETTINGS]
    assert len(set(whats)) == len(whats)
    for setting in SETTINGS:
        assert setting.deepspeed and len(setting.does) > 30
    rows = table()
    assert list(rows.columns) == ["DeepSpeed", "DistributedDataParallel", "fully_shard", "what it does"]
    assert rows.loc["size of a reduction", "DistributedDataParallel"] == "bucket_cap_mb"
    assert rows.loc["chunk size of the update", "fully_shard"] == "–"


def test_a_name_is_looked_up():
    assert {one.what for one in named("reshard_after_forward")} >= {
        "partitioned states",
        "parameters that stay gathered",
    }
    with pytest.raises(ValueError, match="no setting called 'zero_stage'"):
        named("zero_stage")
