"""Read PyTorch's flight recorder: the latest collectives that a rank has begun, with their sizes and places.

It keeps the last TORCH_FR_BUFFER_SIZE collectives of a process, 2,000 by default, with NCCL as with gloo; 0 switches it
off.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labs_helpers.launch.stuck import is_installed, name_ranks

# PyTorch 2.11 keeps those of NCCL apart from the others.
DUMPS = ("_dump_fr_trace", "_dump_nccl_trace")


@dataclass(frozen=True)
class Collective:
    """number: counts the collectives of its process group, from 1. name: such as 'gloo:all_reduce'. sizes: the shapes
    of its tensors. place: the innermost call outside PyTorch, in words."""

    group: str
    number: int
    name: str
    sizes: tuple[tuple[int, ...], ...]
    place: str = ""

    def __str__(self) -> str:
        elements = sum(math.prod(size) for size in self.sizes)
        return f"{self.name} number {self.number}, {elements:,} elements{f', in {self.place}' if self.place else ''}"


def recorded() -> list[Collective]:
    """Return the collectives that this rank has begun, in order; messages between two ranks are left out."""
    from torch._C import _distributed_c10d

    every = [pickle.loads(dump()) for name in DUMPS if (dump := getattr(_distributed_c10d, name, None))]
    entries = [entry for each in every for entry in each.get("entries", ()) if not entry["is_p2p"]]
    found = [
        Collective(
            entry["process_group"][0], entry["collective_seq_id"], entry["profiling_name"],
            tuple(map(tuple, entry["input_sizes"])), _place(entry.get("frames", ())),
        )
        for entry in sorted(entries, key=lambda entry: entry["time_created_ns"])
    ]  # fmt: skip
    return list(dict.fromkeys(found))  # a version may return the same entries in both dumps


def _place(frames: Sequence[Mapping[str, Any]]) -> str:
    """Return the user's innermost call: outside installed packages and this course's communication."""
    for frame in frames:
        if not is_installed(frame["filename"]) and "communication" not in Path(frame["filename"]).parts:
            return f"{frame['name']}, line {frame['line']} of {Path(frame['filename']).name}"
    return ""


def as_text(collectives: Sequence[Collective]) -> str:
    """Return the collectives as JSON; `from_text` reads it."""
    return json.dumps([asdict(one) for one in collectives])


def from_text(text: str) -> list[Collective]:
    return [Collective(**{**one, "sizes": tuple(map(tuple, one["sizes"]))}) for one in json.loads(text)]


def compare(by_rank: Mapping[int, Sequence[Collective]]) -> list[str]:
    """Return what does not fit together, a sentence each: the first collective of a group that ranks disagree on, and
    the ranks that have begun fewer than the others. by_rank: the collectives of ranks that share all their groups."""
    said = []
    for group in sorted({one.group for of_rank in by_rank.values() for one in of_rank}):
        begun = {rank: {one.number: one for one in of_rank if one.group == group} for rank, of_rank in by_rank.items()}
        last = {rank: max(of_rank, default=0) for rank, of_rank in begun.items()}
        for number in range(1, min(last.values()) + 1):
            found = {rank: of_rank[number] for rank, of_rank in begun.items() if number in of_rank}
            if len({(one.name, one.sizes) for one in found.values()}) > 1:
                said.append("; ".join(f"rank {rank} began {one}" for rank, one in sorted(found.items())))
                break
        most = max(last.values())
        if behind := [rank for rank in last if last[rank] < most]:
            ahead = next(rank for rank in last if last[rank] == most)
            said.append(f"{name_ranks(behind)} never began {begun[ahead][most]}")
    return said
