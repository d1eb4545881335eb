"""Practice ranks whose communicators support MPI's collectives and Split, under mpi4py's names.

    ran = practice_groups(lambda comm: comm.Split(color=comm.rank // 2).allgather(comm.rank), 4)
    ran.results          # [[0, 1], [0, 1], [2, 3], [2, 3]]
    ran.calls            # the collectives called, with their ranks and sizes in bytes

As in `practice`, a run is the same every time, and a deadlock is reported as soon as it occurs. So is a collective that
the ranks of a communicator call differently, which in MPI may hang, crash or return wrong numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from labs_helpers.practice.collective import Collective, Mismatch, World
from labs_helpers.practice.comm_world import practice_world
from labs_helpers.practice.group_communicator import GroupComm
from labs_helpers.practice.mailbox import COLLECTIVE
from labs_helpers.practice.ranks import check_size, of_rank
from labs_helpers.practice.reductions import IN_PLACE
from labs_helpers.practice.scheduler import Scheduler

__all__ = ["IN_PLACE", "Collective", "GroupComm", "GroupRun", "Mismatch", "practice_groups"]


@dataclass
class GroupRun:
    """The outcome of a run: one result per rank, and the collectives in the order of their completion, without
    splits and barriers. never_waited: 'rank 0: Iallreduce of ranks 0, 1' for each request that nobody waited for."""

    results: list[Any]
    calls: list[Collective]
    never_waited: list[str] = field(default_factory=list)

    def of(self, rank: int) -> list[Collective]:
        """Return the collectives that a rank took part in."""
        return [call for call in self.calls if rank in call.ranks]


def practice_groups(function: Callable, size: int, *args, timeout: float = 10.0) -> GroupRun:
    """Run function(comm, *args) on `size` ranks; args, errors and time limit are those of `practice`. On each rank
    MPI.COMM_WORLD is the communicator that the function gets."""
    size = check_size(size, args)
    scheduler, world, ranks = Scheduler(size, None), World(), tuple(range(size))

    def on_rank(rank: int) -> Any:
        comm = GroupComm(scheduler, world, (), ranks, rank)
        enter(comm)
        return function(comm, *(of_rank(arg, rank) for arg in args))

    with practice_world() as enter:
        results = scheduler.run([partial(on_rank, rank) for rank in ranks], timeout).results
    pending = (one for one in scheduler.requests if not one.finished)
    never_waited = [f"rank {one.rank}: {one}" if one.kind == COLLECTIVE else str(one) for one in pending]
    return GroupRun(results, world.calls, never_waited)
