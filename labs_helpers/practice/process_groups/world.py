"""Make torch.distributed's functions find the process groups of practice ranks while these run.

The functions ask the module's container `_world` for the default group and for the ranks of a group. While practice
ranks run, another container replaces it: it returns their groups on their threads, and the previous container's on all
others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

ProcessGroup: Any = dist.ProcessGroup


class NoGroup(RuntimeError):
    """A collective was called without group=."""


class DefaultGroup(ProcessGroup):  # type: ignore[misc]
    """All ranks, for `get_rank()` and `get_world_size()`. Its collectives report that group= is missing."""

    def _refuse(self, *args: Any, **settings: Any) -> NoReturn:
        raise NoGroup(
            "a collective without group=: it goes to the default group, all ranks of the job; pass the group that "
            "this function is given"
        )

    allreduce = allreduce_coalesced = broadcast = reduce = barrier = _refuse
    _allgather_base = all_gather_single = allgather = _refuse
    _reduce_scatter_base = reduce_scatter_single = reduce_scatter = _refuse
    gather = scatter = alltoall = alltoall_base = all_to_all_single = send = recv = _refuse


class _NoStore(tuple[str, None]):
    """(backend, store) of the default group. Only code that creates a group asks for the store, and that needs
    processes."""

    def __iter__(self) -> NoReturn:
        raise NotImplementedError("practice ranks have the groups that they are given: there is no new_group()")


class _Worlds:
    """The practice rank's own container on its thread, and `before` elsewhere."""

    def __init__(self, before: Any) -> None:
        vars(self).update(_before=before, _here=threading.local())

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(self._here, "world", self._before), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(getattr(self._here, "world", self._before), name, value)

    def also(self, made: Any, like: Any, ranks: Sequence[int]) -> None:
        """Add this thread's rank to the group `made` of `ranks`, which is of the same kind as `like`."""
        world = self._here.world
        world.pg_map[made] = world.pg_map[like]
        world.pg_names[made] = f"practice {len(world.pg_names)}"
        world.pg_group_ranks[made] = {rank: place for place, rank in enumerate(ranks)}
        world.pg_backend_config[made] = world.pg_backend_config[like]

    def enter(self, default: Any, groups: dict[Any, tuple[int, ...]]) -> None:
        """Make this thread a rank with these groups from now on (group → the ranks in it)."""
        everyone = {default: tuple(range(default.size())), **groups}
        self._here.world = SimpleNamespace(
            default_pg=default,
            pg_map={group: _NoStore(("gloo", None)) for group in everyone},
            pg_names={group: f"practice {i}" for i, group in enumerate(everyone)},
            pg_group_ranks={group: {rank: i for i, rank in enumerate(ranks)} for group, ranks in everyone.items()},
            pg_backend_config={group: "cpu:gloo" for group in everyone},
            group_count=len(everyone),
            tags_to_pg={},
            pg_to_tag={},
            pg_coalesce_state={},
            comms=[],
        )


def second_group(group: Any, ranks: Sequence[int]) -> Any:
    """Return a process group of `ranks` of all ranks, in that order, for a practice rank of `group` that is one of
    them."""
    made, worlds = group.beside(ranks), c10d._world
    if not isinstance(worlds, _Worlds):
        raise RuntimeError("second_group: no practice ranks are running")
    worlds.also(made, group, ranks)
    return made


@contextmanager
def practice_worlds() -> Iterator[_Worlds]:
    """Make torch.distributed know, inside the block, the groups of threads that have called `enter`."""
    before = c10d._world
    c10d._world = worlds = _Worlds(before)  # type: ignore[assignment]
    try:
        yield worlds
    finally:
        c10d._world = before
