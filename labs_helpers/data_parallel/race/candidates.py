"""List the candidates of each heat, with their options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labs_helpers.data_parallel.study import ways
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.setting import Setting, priority_group
from labs_helpers.data_parallel.study.step import TrainingStep

OURS, THEIRS = "ours", "PyTorch"
Options = dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A way to train that takes part in a race.

    library: OURS, THEIRS, or ALONE, in which each rank trains separately without communication. options: keyword
    arguments of `make`. The options priority and max_ctas select its process group, see `new_overlapping_group`.
    """

    name: str
    library: str
    make: Callable[..., TrainingStep]
    options: Options = field(default_factory=dict)

    def build(self, setting: Setting) -> TrainingStep:
        options = dict(self.options)
        max_ctas = options.pop("max_ctas", None)
        if options.pop("priority", False):
            options["group"] = priority_group(max_ctas)
        return self.make(setting, **options)

    def __str__(self) -> str:
        """Return the name with the options, like 'BucketedDDP(bucket_mb=100)'."""
        said = ", ".join(f"{key}={value}" for key, value in self.options.items() if key != "name")
        return f"{self.name}({said})" if said else self.name


FLOOR = Candidate(ALONE, ALONE, ways.alone)
VIEWS = {"gradient_as_bucket_view": True}


def _ours(name: str, **options: Any) -> Candidate:
    return Candidate(name, OURS, ways.ours, {"name": name, **options})


def _ddp(**options: Any) -> Candidate:
    return Candidate("DistributedDataParallel", THEIRS, ways.distributed_data_parallel, options)


def _stage(name: str, **options: Any) -> Candidate:
    return Candidate(name, OURS, ways.zero, {"name": name, **options})


def _fully_shard(**options: Any) -> Candidate:
    return Candidate("FSDP2", THEIRS, ways.fully_sharded, options)


HEATS: dict[str, list[Candidate]] = {
    "wrappers": [
        FLOOR,
        _ours("NaiveDDP"),
        _ours("FlatDDP"),
        _ours("OverlappedDDP"),
        *(_ours("OverlappedDDP", coalesce_mb=mb) for mb in (25, 50, 100, 200)),
        _ours("OverlappedDDP", coalesce_mb=100, by_bucket=True),
        _ours("OverlappedDDP", coalesce_mb=100, priority=True, max_ctas=16),
        _ours("BucketedDDP"),
        _ours("BucketedDDP", bucket_mb=100),
        _ddp(),
        _ddp(bucket_cap_mb=100, **VIEWS),
        _ddp(bucket_cap_mb=100, static_graph=True, **VIEWS),
        _ddp(bucket_cap_mb=100, priority=True, **VIEWS),
        _ddp(bucket_cap_mb=200, static_graph=True, **VIEWS),
    ],
    "shards": [
        FLOOR,
        _ddp(bucket_cap_mb=100, **VIEWS),
        _stage("ZeRO-1"),
        _stage("ZeRO-1", reduction="all_reduce"),
        _stage("ZeRO-1", bucket_mb=100, overlap_gather=True),
        _stage("ZeRO-1", bucket_mb=100, overlap_gather=True, priority=True),
        _stage("ZeRO-2"),
        _stage("ZeRO-2", reduction="all_reduce"),
        _stage("ZeRO-2", bucket_mb=100, overlap_gather=True),
        _stage("ZeRO-3"),
        _stage("ZeRO-3", priority=True),
        _stage("ZeRO-3", reshard_after_forward=False),
        Candidate("ZeroRedundancyOptimizer", THEIRS, ways.zero_redundancy, {"bucket_cap_mb": 100, **VIEWS}),
        *(_fully_shard(**options) for options in ({}, {"prefetch": 1}, {"prefetch": 2})),
        *(_fully_shard(reshard_after_forward=False, **options) for options in ({}, {"prefetch": 2})),
    ],
    "master weights": [
        FLOOR,
        *(_stage(f"ZeRO-{stage}", **master) for stage in (1, 2, 3) for master in ({}, {"master": True})),
        *(_fully_shard(prefetch=2, **master) for master in ({}, {"master": True})),
    ],
}
