"""One training step in many layouts: `Variant` describes a layout, `Step` runs one rank's part of the step."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from labs_helpers.communication import Communication, connect
from labs_helpers.communication.gradient_average import GradientAverage
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.communication.timed import TimedCommunication
from labs_helpers.tensor_parallel.data import split_data
from labs_helpers.tensor_parallel.parallel_transformer import ParallelTransformer
from labs_helpers.tensor_parallel.placement import place
from labs_helpers.tensor_parallel.sharded_gradients import sum_partial_gradients
from labs_helpers.transformer import Transformer, TransformerConfig
from labs_helpers.transformer.training_step import fixed_batch

PHASES = ("forward", "backward", "average")


@dataclass(frozen=True)
class Variant:
    """A layout of dp × tp ranks, the placement of its groups (see placement.py), and the sharding of the model."""

    dp: int
    tp: int
    placement: str = "inside"
    scheme: str = "megatron"
    sequence_parallel: bool = False
    overlap: bool = False  # send gradients during the backward pass, in four buckets

    def __str__(self) -> str:
        words = [f"{self.dp} × {self.tp}"]
        words += [self.placement] * (self.dp > 1 and self.tp > 1)
        words += [self.scheme] * (self.scheme != "megatron")
        words += ["sequence-parallel"] * self.sequence_parallel + ["overlapped"] * self.overlap
        return " ".join(words)


class Task:
    """The model and the batch that every variant trains.

    The batch has `batch` sequences of `length` tokens for all ranks of comm together; every rank holds all of it. Every
    rank of comm creates the task.
    """

    def __init__(self, comm: Any, config: TransformerConfig, batch: int, length: int) -> None:
        self.comm, self.config = comm, config
        tokens = fixed_batch(config, batch, length, seed=0) if comm.Get_rank() == 0 else None
        self.x, self.y = comm.bcast(tokens)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.full = Transformer(config).state_dict()


class Step:
    """A variant's model with this rank's part of the batch; `run()` computes forward, backward and gradient average.

    way: "mpi" to time collectives, "own" to count them, "silent" for compute alone. Raises the errors of `place` and
    ParallelTransformer. Every rank of the task creates the step.
    """

    def __init__(self, task: Task, variant: Variant, ranks_per_node: int, way: str = "mpi") -> None:
        self.task, self.variant = task, variant
        world = _connect(way, task.comm)
        self.mesh = place(task.comm, world, variant.dp, variant.tp, variant.placement, ranks_per_node)
        self.groups = {name: TimedCommunication(group) for name, group in self.mesh.items()}
        self.tp, self.dp = self.groups["tp"], self.groups["dp"]
        self.model = ParallelTransformer.from_full(
            task.config,
            task.full,
            self.tp,
            scheme=variant.scheme,
            sequence_parallel=variant.sequence_parallel,
        )
        everything = sum(p.nbytes for p in self.model.parameters())
        bucket_bytes = everything // 4 if variant.overlap else everything
        self.average = GradientAverage(self.model.parameters(), self.dp, bucket_bytes, variant.overlap)
        x, y = split_data(task.x.numpy(), task.y.numpy(), 1, variant.dp, self.mesh.place["dp"])
        self.tokens, self.targets = torch.from_numpy(x), torch.from_numpy(y)

    def run(self) -> tuple[Tensor, list[float]]:
        """Run a step; return (the loss of this rank's sequences, the times of its start and of each phase's end)."""
        moments = [perf_counter()]
        self.model.zero_grad(set_to_none=False)  # gradients stay in their buckets
        loss = self.model.loss(self.tokens, self.targets)
        moments.append(perf_counter())
        loss.backward()
        moments.append(perf_counter())
        self.average.finish()
        if self.variant.sequence_parallel:
            sum_partial_gradients(self.model, self.tp)
        moments.append(perf_counter())
        return loss.detach(), moments

    def mean_loss(self) -> float:
        """Run a step and return the mean loss of the whole batch."""
        return float(self.dp.all_reduce(self.run()[0]).item() / self.dp.size)

    def timed(self) -> dict[str, float]:
        """Return the seconds of a step, of its phases, and inside the collectives of each group; a barrier starts it.

        Where ranks share a core, the time inside collectives is longer than their own: a waiting rank lets another
        compute.
        """
        self.reset()
        self.task.comm.Barrier()
        _, moments = self.run()
        phases = [end - start for start, end in zip(moments, moments[1:], strict=False)]
        seconds = dict(zip(PHASES, phases, strict=True)) | {"step": moments[-1] - moments[0]}
        return seconds | {name: group.seconds for name, group in self.groups.items()}

    def reset(self) -> None:
        """Set all counters and timers to zero."""
        for group in self.groups.values():
            group.reset()

    def free(self) -> None:
        """Free the groups; every rank of comm calls this, in the same order."""
        self.average.remove()
        self.mesh.free()


def _connect(way: str, comm: Any) -> Communication:
    return SilentCommunication(comm.Get_rank(), comm.Get_size()) if way == "silent" else connect(way, comm)
