"""DeepSpeed's settings beside those of DistributedDataParallel and of `fully_shard` (FSDP2): what each is called where.

DeepSpeed's names are keys of the section "zero_optimization" of its JSON configuration, and those in OUTSIDE of the
configuration itself. Its sizes are in elements, DDP's in MiB. Checked against deepspeed/runtime/zero/config.py, whose
defaults are given, DeepSpeed's page "Configuration JSON", and the docstrings of PyTorch 2.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas


OUTSIDE = (
    "bf16.enabled",
    "fp16.enabled",
    "communication_data_type",
    "gradient_accumulation_steps",
    "gradient_clipping",
)


class Setting(NamedTuple):
    """One thing that can be set. Where one of the three has no name for it, `does` says how it is there."""

    what: str
    deepspeed: tuple[str, ...]
    ddp: tuple[str, ...]
    fsdp2: tuple[str, ...]
    does: str


SETTINGS = (
    Setting("what is divided", ("stage",), (), ("reshard_after_forward",),
            "stage 0 is DDP; 1, 2 and 3 divide optimizer, gradients and parameters as well. fully_shard is stage 3; "
            "with reshard_after_forward=False parameters stay gathered until the backward pass (SHARD_GRAD_OP). Beside "
            "DDP, ZeroRedundancyOptimizer is stage 1 with an all-reduce."),
    Setting("how much is reduced at a time", ("reduce_bucket_size",), ("bucket_cap_mb",), (),
            "5e8 elements; 25 MiB. fully_shard has a bucket for each module that it is called on."),
    Setting("how much is gathered at a time", ("allgather_bucket_size",), (), (),
            "5e8 elements, of the updated parameters in stages 1 and 2. fully_shard: a module. "
            "ZeroRedundancyOptimizer: a tensor, or with parameters_as_bucket_view all that a rank has."),
    Setting("reduction during the backward pass", ("overlap_comm",), (), (),
            "off by default in stages 1 and 2, on in 3. DDP and fully_shard always overlap."),
    Setting("all-reduce or reduce-scatter", ("reduce_scatter",), (), (),
            "True: each rank gets its part of the gradients' sum. False: all of it, twice the bytes. DDP always "
            "all-reduces, fully_shard always reduce-scatters."),
    Setting("gradients in the buckets", ("contiguous_gradients",), ("gradient_as_bucket_view",), (),
            "True copies gradients into one buffer as they appear. DDP copies by default; with its setting they are "
            "views into the buckets, and need no second memory. fully_shard copies a module's into one buffer."),
    Setting("parameters gathered ahead", ("stage3_prefetch_bucket_size",), (),
            ("set_modules_to_forward_prefetch", "set_modules_to_backward_prefetch"),
            "5e7 elements. fully_shard gathers the next module ahead by itself; with these, those that they name."),
    Setting("parameters kept gathered", ("stage3_max_live_parameters", "stage3_max_reuse_distance"), (),
            ("reshard_after_forward", "set_reshard_after_forward"),
            "1e9 elements each: more memory, fewer gathers. fully_shard decides by module: yes, no, or resharded over "
            "fewer ranks. By default its outermost module stays gathered."),
    Setting("small parameters kept whole", ("stage3_param_persistence_threshold",), (), (),
            "those below 1e5 elements are not divided, which saves messages. fully_shard divides all; its "
            "ignored_params are not reduced either."),
    Setting("shards of a second size", ("zero_hpz_partition_size",), (), ("reshard_after_forward",),
            "ZeRO++'s hpZ: ranks, say of one node, that keep a second set of shards, so that the backward pass gathers "
            "within the node. fully_shard: an integer in place of True."),
    Setting("shards within a node, replicas between", ("mics_shard_size",), (), ("mesh",),
            "MiCS, in versions that have it: fewer ranks to gather from, more memory for states. fully_shard: a mesh "
            "of two dimensions, replicate × shard (HYBRID_SHARD in FSDP1)."),
    Setting("precision", ("bf16.enabled", "fp16.enabled"), (), ("mp_policy", "param_dtype"),
            "16-bit parameters and gradients with a float32 copy in the optimizer. fully_shard keeps the shards as the "
            "model is, float32 say, and gathers them in param_dtype. Under DDP it is up to autocast."),
    Setting("what gradients are summed in", ("communication_data_type",), ("register_comm_hook",), ("reduce_dtype",),
            "by default what they are. DDP: bf16_compress_hook, fp16_compress_hook or one's own."),
    Setting("compressed messages", ("zero_quantized_weights", "zero_quantized_gradients"), ("register_comm_hook",), (),
            "ZeRO++'s qwZ and qgZ: int8 weights and quantized gradients on the way. DDP: powerSGD_hook or one's own."),
    Setting("several backward passes per step", ("gradient_accumulation_steps",), ("no_sync",),
            ("set_requires_gradient_sync", "set_reshard_after_backward"),
            "gradients of all passes but the last are not sent, where whole ones are kept: stages 0 and 1, DDP, "
            "fully_shard without gradient sync. Stages 2 and 3 reduce in every pass."),
    Setting("optimizer states on the CPU", ("offload_optimizer.device",), (), ("offload_policy",),
            "'cpu' or 'nvme'; the update runs on the CPU. fully_shard: CPUOffloadPolicy(), for parameters, gradients "
            "and states together."),
    Setting("parameters on the CPU", ("offload_param.device",), (), ("offload_policy",),
            "of stage 3 alone; fully_shard: as above, CPUOffloadPolicy(pin_memory=True)."),
    Setting("size of a piece of the update", ("sub_group_size",), (), (),
            "1e9 elements: how much of an offloaded model is fetched and updated at a time."),
    Setting("parameters that a step does not use", ("ignore_unused_parameters",),
            ("find_unused_parameters", "static_graph"), (),
            "stage 2: go on (True) or stop with an error. DDP waits for every gradient, unless it looks in every step "
            "or is told that all steps are the same."),
    Setting("clipping", ("gradient_clipping",), (), (),
            "the norm of all gradients. PyTorch: clip_grad_norm_, which adds up the shards of fully_shard by itself."),
    Setting("whole parameters in a checkpoint", ("stage3_gather_16bit_weights_on_model_save",), (), (),
            "off: a rank saves its shards. fully_shard: get_model_state_dict with "
            "StateDictOptions(full_state_dict=True)."),
)  # fmt: skip


def table() -> pandas.DataFrame:
    """A row for each setting, '–' where there is none."""
    import pandas

    columns = ("DeepSpeed", "DistributedDataParallel", "fully_shard")
    rows = {
        one.what: {
            name: ", ".join(names) or "–"
            for name, names in zip(columns, (one.deepspeed, one.ddp, one.fsdp2), strict=True)
        }
        | {"what it does": one.does}
        for one in SETTINGS
    }
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("setting")


def named(name: str) -> list[Setting]:
    """The settings that go by `name` in any of the three: a look-up. ValueError where there is none."""
    found = [one for one in SETTINGS if name in (*one.deepspeed, *one.ddp, *one.fsdp2)]
    if not found:
        raise ValueError(f"no setting is called {name!r} in DeepSpeed, DistributedDataParallel or fully_shard here")
    return found
