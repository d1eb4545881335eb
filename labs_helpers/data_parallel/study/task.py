"""The options and ranks of a measurement, shared by all kinds of this study."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from labs_helpers.communication.buckets import MEGABYTE
from labs_helpers.data_parallel.study.records import STUDY
from labs_helpers.data_parallel.study.setting import Setting
from labs_helpers.measure.race import TorchRanks
from labs_helpers.transformer import SIZES, TransformerConfig
from labs_helpers.transformer.counts import parameters

# Reads bytes like lab 01's "tiny", but its gradients take 14 MB, enough for several buckets.
MODELS = SIZES | {"mini": TransformerConfig(256, layers=4, width=256, heads=8, hidden=768, context=256, tied=False)}
SHAPE = ("vocabulary", "layers", "width", "heads", "hidden")  # the fields of a TransformerConfig in the records
LONG = timedelta(hours=1)  # the time limit of ranks that take no part

Record = dict[str, Any]


def _silent(text: str) -> None: ...


@dataclass(frozen=True)
class Options:
    """The options of a measurement.

    size: one of MODELS. batch: sequences of `length` tokens per rank and backward pass. rounds: timed steps per
    candidate. bucket_mb: the bucket size in MB (2²⁰ bytes); None is an eighth of the gradients, at most 100. steps: the
    length of each loss curve. link: the connection's name in the records; None counts the nodes, as in '2 nodes'.
    asked: the requested rate between pretended nodes. ValueError names the option that is invalid.
    """

    size: str = "tiny"
    batch: int = 2
    length: int = 128
    rounds: int = 10
    bucket_mb: float | None = None
    steps: int = 200
    link: str | None = None
    asked: str | None = None

    def __post_init__(self) -> None:
        if self.size not in MODELS:
            raise ValueError(f"size is {self.size!r}, not one of {', '.join(MODELS)}")
        for name in ("batch", "length", "rounds", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; at least 1 is needed")
        if self.length > MODELS[self.size].context:
            raise ValueError(f"length is {self.length}; a {self.size} model takes {MODELS[self.size].context} tokens")
        if self.bucket_mb is not None and not self.bucket_mb > 0:
            raise ValueError(f"bucket_mb is {self.bucket_mb}; it has to be positive")


@dataclass(frozen=True)
class Task:
    """`options`, and the ranks of `group` (None: all), which includes this rank. say: prints on rank 0."""

    options: Options
    device: torch.device
    say: Callable[[str], None] = _silent
    group: Any = None
    hosts: tuple[str, ...] = field(default=())  # by rank

    @classmethod
    def here(cls, options: Options, say: Callable[[str], None] = _silent) -> Task:
        """Make a task for all ranks: one GPU per rank with NCCL, otherwise CPUs. Every rank calls this."""
        on_gpus = dist.get_backend() == "nccl"
        device = torch.device("cuda", torch.cuda.current_device()) if on_gpus else torch.device("cpu")
        said = say if dist.get_rank() == 0 else _silent
        return cls(options, device, said, hosts=tuple(gathered(os.uname().nodename)))

    def __call__(self, group: Any = None, **changed: Any) -> Task:
        """Return the same task with another group, or with changed options."""
        return replace(self, options=replace(self.options, **changed), group=group or self.group)

    @property
    def config(self) -> TransformerConfig:
        return MODELS[self.options.size]

    @property
    def dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32

    @property
    def setting(self) -> Setting:
        return Setting(self.config, self.options.batch, self.options.length, self.dtype, self.device)

    @property
    def process_group(self) -> Any:
        return self.group or dist.group.WORLD

    @property
    def ranks(self) -> int:
        return dist.get_world_size(self.process_group)

    @property
    def parameters(self) -> int:
        return sum(parameters(self.config).values())

    @property
    def gradient_mb(self) -> float:
        return self.parameters * self.dtype.itemsize / MEGABYTE

    @property
    def bucket_mb(self) -> float:
        return self.options.bucket_mb or min(100.0, self.gradient_mb / 8)

    @property
    def about(self) -> Record:
        """Return the fields that every record has."""
        hosts = self.hosts[: self.ranks]
        nodes = len(set(hosts)) or 1
        link = self.options.link or f"{nodes} node{'s' * (nodes > 1)}"
        return {
            "study": STUDY.name, "link": link, "asked": self.options.asked, "nodes": nodes,
            "ranks_per_node": self.ranks // nodes, "ranks": self.ranks, "backend": dist.get_backend(),
            "dtype": str(self.dtype).removeprefix("torch."), "size": self.options.size,
            "parameters": self.parameters, "gradient_bytes": self.parameters * self.dtype.itemsize,
            "batch": self.options.batch, "length": self.options.length,
        } | {name: getattr(self.config, name) for name in SHAPE}  # fmt: skip


def gathered(value: Any, group: Any = None) -> list[Any]:
    """Gather every rank's value on every rank of the group."""
    return TorchRanks(group).gather(value)


def group_sizes() -> list[int]:
    """Return 1, 2, 4, … and the number of all ranks."""
    world = dist.get_world_size()
    return sorted({2**i for i in range(world.bit_length()) if 2**i <= world} | {world})


@contextmanager
def first_ranks(count: int) -> Iterator[Any]:
    """Yield a process group of the first `count` ranks, and None on the others. Every rank calls this.

    The other ranks wait at the end, without using a core or a GPU.
    """
    group = dist.new_group(list(range(count)))
    waiting = dist.new_group(backend="gloo", timeout=LONG)
    try:
        yield group if dist.get_rank() < count else None
        dist.barrier(waiting)
    finally:
        if dist.get_rank() < count:
            dist.destroy_process_group(group)
        dist.destroy_process_group(waiting)
