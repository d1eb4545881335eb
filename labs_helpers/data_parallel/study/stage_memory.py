"""Kind `stage_memory`: record each rank's memory during one step in each ZeRO stage, and the formula's prediction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from labs_helpers.communication.buckets import MEGABYTE
from labs_helpers.data_parallel.study.replicas import replica
from labs_helpers.data_parallel.study.stages import sharded
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.data_parallel.study.turns import take
from labs_helpers.data_parallel.zero.memory import PARTS
from labs_helpers.measure.device_memory import allocated
from labs_helpers.planner.accounting import states
from labs_helpers.planner.memory import Buffers, step_memory
from labs_helpers.planner.model_size import Model

STAGES = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3", "SHARD_GRAD_OP")
MASTER = "bf16 with float32 master"
PLAIN = {torch.float32: "autocast over float32", torch.bfloat16: "bf16"}  # the layout if everything has one dtype


def measure(task: Task) -> list[Record]:
    """Return one record per stage, layout and rank. Every rank calls this, and gets the same list.

    Layouts: everything in the task's dtype, and for all stages but DDP also bfloat16 with float32 master weights.
    Moments: inside each block in forward and backward, and between the phases. gradients_bytes: includes the buckets.
    """
    records = []
    for layout in (PLAIN[task.dtype], MASTER):
        for stage in STAGES if layout != MASTER else STAGES[1:]:
            before = allocated(task.device)
            step = replica(task, "bucketed") if stage == "DDP" else sharded(task, stage, master=layout == MASTER)
            take(step)  # creates the optimizer states
            mine = {"rank": dist.get_rank(task.group)} | _over_a_step(step, task.device, before)
            step.remove()
            del step
            same = task.about | {"kind": "stage_memory", "stage": stage, "layout": layout}
            same |= _by_formula(task, stage, layout)
            records += [same | of_rank for of_rank in gathered(mine, task.group)]
    return records


def _over_a_step(step: TrainingStep, device: torch.device, before: int) -> Record:
    """Run one step; return its moments, and the bytes of PARTS at each moment.

    On a GPU, device_bytes gives all allocated bytes in excess of `before`.
    """
    moments: list[str] = []
    held: list[dict[str, int]] = []
    device_bytes: list[int] = []

    def note(moment: str) -> None:
        moments.append(moment)
        held.append(step.held())
        if device.type == "cuda":
            device_bytes.append(torch.cuda.memory_allocated() - before)

    model: Any = step.model
    hooks = [_watch(block.mlp, f"block {number}", note) for number, block in enumerate(model.blocks)]
    note("before")
    for name, phase in step.phases():
        phase()
        note({"forward": "loss", "backward": "after backward", "finish": "averaged", "update": "after the step"}[name])
    for hook in hooks:
        hook.remove()
    found: Record = {f"{part}_bytes": [at[part] for at in held] for part in PARTS}
    return found | {"moments": moments, "device_bytes": device_bytes or None}


def _watch(module: nn.Module, name: str, note: Callable[[str], None]) -> Any:
    """Call `note` when a forward pass leaves `module`, and when a backward pass reaches it."""

    def passed(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        note(f"forward, {name}")
        output.register_hook(lambda gradient: note(f"backward, {name}"))

    return module.register_forward_hook(passed)


def _by_formula(task: Task, stage: str, layout: str) -> Record:
    """Return the predicted bytes of a rank's states (for SHARD_GRAD_OP, between two steps) and of gathered blocks."""
    model = Model.of(task.config)
    told = {f"formula_{part.name}": part.bytes for part in states(model.parameters, stage, task.ranks, layout)}
    buffers = Buffers(bucket_bytes=round(task.bucket_mb * MEGABYTE))
    whole = {part.name: part.bytes for part in step_memory(model, stage, task.ranks, layout, buffers=buffers)}
    return told | {"formula_gathered": whole.get("gathered", 0.0)}
