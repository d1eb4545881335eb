"""What is to be measured, and on which ranks: what all kinds of this study share."""

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

# Bytes as on lab 01's "tiny", with gradients of 14 MB: enough for several buckets.
MODELS = SIZES | {"mini": TransformerConfig(256, layers=4, width=256, heads=8, hidden=768, context=256, tied=False)}
SHAPE = ("vocabulary", "layers", "width", "heads", "hidden")  # what records have of a TransformerConfig
LONG = timedelta(hours=1)  # that ranks wait which take no part

Record = dict[str, Any]


def _silent(text: str) -> None: ...


@dataclass(frozen=True)
class Options:
    """size: one of MODELS. batch: sequences of `length` tokens per rank and backward pass. rounds: timed steps of each
    candidate. bucket_mb: of what has buckets, in MB (2²⁰ bytes); None: an eighth of the gradients, at most 100.
    steps: of each loss curve. link: the ranks' connection, as records call it; None: '2 nodes'. asked: the rate that
    was asked for, of pretended nodes. ValueError names what does not fit."""

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
    """`options` on the ranks of `group`, a process group that this rank is in (None: all). say: prints on rank 0."""

    options: Options
    device: torch.device
    say: Callable[[str], None] = _silent
    group: Any = None
    hosts: tuple[str, ...] = field(default=())  # by rank

    @classmethod
    def here(cls, options: Options, say: Callable[[str], None] = _silent) -> Task:
        """On all ranks of torch.distributed, which every rank calls; a GPU per rank with NCCL, else CPUs."""
        on_gpus = dist.get_backend() == "nccl"
        device = torch.device("cuda", torch.cuda.current_device()) if on_gpus else torch.device("cpu")
        said = say if dist.get_rank() == 0 else _silent
        return cls(options, device, said, hosts=tuple(gathered(os.uname().nodename)))

    def __call__(self, group: Any = None, **changed: Any) -> Task:
        """The same with another group, or with changed options."""
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
        """What every record says."""
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
    """Every rank's value, on every rank of the group."""
    return TorchRanks(group).gather(value)


def group_sizes() -> list[int]:
    """1, 2, 4 … and all ranks."""
    world = dist.get_world_size()
    return sorted({2**i for i in range(world.bit_length()) if 2**i <= world} | {world})


@contextmanager
def first_ranks(count: int) -> Iterator[Any]:
    """A process group of the first `count` ranks; None on the others, which wait at the end without using a core or a
    GPU. Every rank calls it."""
    group = dist.new_group(list(range(count)))
    waiting = dist.new_group(backend="gloo", timeout=LONG)
    try:
        yield group if dist.get_rank() < count else None
        dist.barrier(waiting)
    finally:
        if dist.get_rank() < count:
            dist.destroy_process_group(group)
        dist.destroy_process_group(waiting)
