"""Practice ranks for torch.distributed: a function of a process group runs on threads of this process.

    def step(group, rank):
        x = torch.full((3,), float(rank))
        work = dist.all_reduce(x, group=group, async_op=True)
        ...                                       # x is NaN here, every time
        work.wait()
        return x

    run = practice_process_groups(step, 4)
    run.results, run.calls, run.log

As with the other practice ranks, a run is the same every time, a deadlock is reported as soon as it exists, and a
collective that ranks call differently ends with an error that says who called what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed.c10d_logger
import torch.distributed.distributed_c10d

from labs_helpers.practice.collective import Rendezvous
from labs_helpers.practice.place import OWN_FILES
from labs_helpers.practice.process_groups.process_group import PracticeGroup
from labs_helpers.practice.process_groups.record import ProcessRun
from labs_helpers.practice.process_groups.world import DefaultGroup, practice_worlds
from labs_helpers.practice.ranks import check_size, of_rank
from labs_helpers.practice.scheduler import Scheduler

# A deadlock's message names the line that called a collective, not the line in torch that calls the group.
OWN_FILES.update(str(m.__file__) for m in (torch.distributed.distributed_c10d, torch.distributed.c10d_logger))
# PyTorch 2.13 wraps deprecated names, such as all_gather_into_tensor, in a function of another package.
_layer: Any = torch.distributed.all_gather_into_tensor
while _layer is not None:
    OWN_FILES.add(_layer.__code__.co_filename)
    _layer = getattr(_layer, "__wrapped__", None)


def practice_process_groups(
    function: Callable[..., Any],
    size: int,
    *args: Any,
    groups: Sequence[Sequence[int]] | None = None,
    timeout: float = 10.0,
) -> ProcessRun:
    """Run function(group, rank, *args) on `size` ranks. group: of all ranks, or the one of `groups` that contains this
    rank; rank: among all ranks. args: a list holds one value per rank; anything else goes to all ranks unchanged.

    Sums are added in rank order, in the tensors' dtype. Each rank draws random numbers as if it were alone, from the
    state at the beginning of the run. torch.distributed's functions require `group=` and raise NoGroup without it;
    get_rank() and get_world_size() refer to all ranks.

    Raises Deadlock, RankFailed (a rank raised; its error is the cause) or PracticeTimeout, each with the run so far as
    `.run`; TypeError or ValueError (size, or a list of another length).
    """
    size = check_size(size, args)
    members = [tuple(range(size))] if groups is None else [tuple(one) for one in groups]
    if sorted(rank for one in members for rank in one) != list(range(size)):
        raise ValueError(f"groups {members} do not have each of {size} ranks once")
    run, scheduler, rendezvous = ProcessRun(), Scheduler(size, None), dict[tuple[Any, ...], Rendezvous]()
    state = torch.get_rng_state()

    def on_rank(enter: Callable[..., None], rank: int) -> Any:
        torch.set_rng_state(state)
        ranks = next(one for one in members if rank in one)
        group = PracticeGroup(scheduler, run, rendezvous, ranks, ranks.index(rank))
        enter(DefaultGroup(rank, size), {group: ranks})
        return function(group, rank, *(of_rank(arg, rank) for arg in args))

    try:
        with practice_worlds() as worlds:
            run.results = scheduler.run([partial(on_rank, worlds.enter, rank) for rank in range(size)], timeout).results
    except Exception as error:
        error.run = run  # type: ignore[attr-defined]
        raise
    finally:
        torch.set_rng_state(state)
    return run
