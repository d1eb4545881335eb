"""Compare the settings of DeepSpeed, DistributedDataParallel, and `fully_shard` (FSDP2), which use different names.

DeepSpeed's names are keys of the "zero_optimization" section of its JSON configuration; those in OUTSIDE belong to the
configuration itself. DeepSpeed gives sizes in elements, DDP in MiB. Checked against deepspeed/runtime/zero/config.py,
whose defaults are listed, DeepSpeed's page "Configuration JSON", and the docstrings of PyTorch 2.13.
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
    """One setting. If one of the three libraries has no name for it, `does` describes that library's behavior."""

    what: str
    deepspeed: tuple[str, ...]
    ddp: tuple[str, ...]
    fsdp2: tuple[str, ...]
    does: str


SETTINGS = (
    Setting("partitioned states", ("stage",), (), ("reshard_after_forward",),
            "Stage 0 is DDP. Stage 1 partitions the optimizer states, stage 2 also the gradients, and stage 3 also "
            "the parameters. fully_shard is stage 3; with reshard_after_forward=False, parameters stay gathered "
            "until the backward pass (SHARD_GRAD_OP). ZeroRedundancyOptimizer adds stage 1 to DDP, with an "
            "all-reduce."),
    Setting("size of a reduction", ("reduce_bucket_size",), ("bucket_cap_mb",), (),
            "5e8 elements; 25 MiB. fully_shard uses one bucket per module that you call it on."),
    Setting("size of a gather", ("allgather_bucket_size",), (), (),
            "5e8 elements of updated parameters in stages 1 and 2. fully_shard gathers one module, "
            "ZeroRedundancyOptimizer one tensor, or with parameters_as_bucket_view everything that a rank holds."),
    Setting("overlap of reduction and backward", ("overlap_comm",), (), (),
            "Off by default in stages 1 and 2, on in stage 3. DDP and fully_shard always overlap."),
    Setting("all-reduce or reduce-scatter", ("reduce_scatter",), (), (),
            "True: each rank receives its part of the summed gradients. False: each rank receives all of it, with "
            "twice the bytes. DDP always all-reduces, and fully_shard always reduce-scatters."),
    Setting("gradient memory in buckets", ("contiguous_gradients",), ("gradient_as_bucket_view",), (),
            "True copies gradients into one buffer as they arrive. DDP copies them by default; with its setting, "
            "gradients are views of the buckets and need no second memory. fully_shard copies a module's gradients "
            "into one buffer."),
    Setting("prefetched parameters", ("stage3_prefetch_bucket_size",), (),
            ("set_modules_to_forward_prefetch", "set_modules_to_backward_prefetch"),
            "5e7 elements. fully_shard prefetches the next module by default; these functions select the modules."),
    Setting("parameters that stay gathered", ("stage3_max_live_parameters", "stage3_max_reuse_distance"), (),
            ("reshard_after_forward", "set_reshard_after_forward"),
            "1e9 elements each: more memory, fewer gathers. fully_shard decides per module: yes, no, or resharded "
            "over fewer ranks. By default its outermost module stays gathered."),
    Setting("small parameters that stay whole", ("stage3_param_persistence_threshold",), (), (),
            "Parameters below 1e5 elements are not partitioned, which saves messages. fully_shard partitions all of "
            "them; it does not reduce its ignored_params either."),
    Setting("secondary shards", ("zero_hpz_partition_size",), (), ("reshard_after_forward",),
            "ZeRO++'s hpZ: the ranks of a node, for example, keep a second set of shards, so that the backward pass "
            "gathers within the node. fully_shard: pass an integer instead of True."),
    Setting("shards within a node, replicas across nodes", ("mics_shard_size",), (), ("mesh",),
            "MiCS, in versions that include it: fewer ranks to gather from, more memory for states. fully_shard: a "
            "mesh of two dimensions, replicate × shard (HYBRID_SHARD in FSDP1)."),
    Setting("precision", ("bf16.enabled", "fp16.enabled"), (), ("mp_policy", "param_dtype"),
            "16-bit parameters and gradients, with a float32 copy in the optimizer. fully_shard keeps shards in the "
            "model's dtype, such as float32, and gathers them in param_dtype. With DDP, use autocast."),
    Setting("dtype of gradient sums", ("communication_data_type",), ("register_comm_hook",), ("reduce_dtype",),
            "By default the dtype of the gradients. DDP: bf16_compress_hook, fp16_compress_hook, or your own hook."),
    Setting("compressed messages", ("zero_quantized_weights", "zero_quantized_gradients"), ("register_comm_hook",), (),
            "ZeRO++'s qwZ and qgZ send int8 weights and quantized gradients. DDP: powerSGD_hook or your own hook."),
    Setting("gradient accumulation", ("gradient_accumulation_steps",), ("no_sync",),
            ("set_requires_gradient_sync", "set_reshard_after_backward"),
            "Stages that keep whole gradients send them only in the last pass: stages 0 and 1, DDP, and fully_shard "
            "without gradient sync. Stages 2 and 3 reduce in every pass."),
    Setting("optimizer states on the CPU", ("offload_optimizer.device",), (), ("offload_policy",),
            "'cpu' or 'nvme'; the update runs on the CPU. fully_shard: CPUOffloadPolicy() moves parameters, "
            "gradients, and states together."),
    Setting("parameters on the CPU", ("offload_param.device",), (), ("offload_policy",),
            "Only in stage 3. fully_shard: as above, CPUOffloadPolicy(pin_memory=True)."),
    Setting("chunk size of the update", ("sub_group_size",), (), (),
            "1e9 elements: the part of an offloaded model that is fetched and updated at a time."),
    Setting("unused parameters", ("ignore_unused_parameters",),
            ("find_unused_parameters", "static_graph"), (),
            "Stage 2 continues (True) or raises an error. DDP waits for every gradient, unless it searches for "
            "unused ones in every step or knows that all steps are the same."),
    Setting("clipping", ("gradient_clipping",), (), (),
            "The norm of all gradients. PyTorch: clip_grad_norm_, which also handles the shards of fully_shard."),
    Setting("whole parameters in a checkpoint", ("stage3_gather_16bit_weights_on_model_save",), (), (),
            "Off: each rank saves its shards. fully_shard: get_model_state_dict with "
            "StateDictOptions(full_state_dict=True)."),
)  # fmt: skip


def table() -> pandas.DataFrame:
    """Return one row per setting, with '–' where a library has no name for it."""
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
    """Return the settings called `name` in any of the three libraries. Raise ValueError if there is none."""
    found = [one for one in SETTINGS if name in (*one.deepspeed, *one.ddp, *one.fsdp2)]
    if not found:
        raise ValueError(
            f"DeepSpeed, DistributedDataParallel, and fully_shard have no setting called {name!r} in this table"
        )
    return found
