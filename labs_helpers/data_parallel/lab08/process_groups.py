"""Runs an answer on practice ranks of torch.distributed, and on real ones; whatever goes wrong is a Wrong.

    def call(student, group, rank):
        model = make_model()
        hook_after_each_gradient(model, group)     # mark(group, "gradient of layer 2")
        mark(group, "backward begins")
        model(batch[rank]).sum().backward()
        mark(group, "backward ends")
        student(model, group)
        return [p.grad.clone() for p in model.parameters()]

    run = on_process_groups("4 ranks", student, 4, call)
    run.results             # what call returned on each rank
    run.of(0)               # rank 0's collectives: name, nbytes, elements, dtype, op, asynchronous …
    run.log_of(0)           # ['backward begins', 'start all_reduce', 'backward ends', 'wait all_reduce', …]
    run.started_between(0, "backward begins", "backward ends")

- A tensor of an asynchronous collective holds NaN until its wait(); an answer that writes to it meanwhile is Wrong, and
  so is one that never waits (waited=False allows it). Sums are added in the order of the ranks, in the tensors' dtype.
- `groups=[[0, 2], [1, 3]]`: several groups at once, which finds `src=0` where group_src=0 is meant. rank is always the
  one among all.
- Each rank has the answer's global variables for itself, as a process has. `call` makes each rank's tensors: what ranks
  share, they overwrite.
- Random numbers: each rank draws its own; torch.manual_seed in `call` holds for that rank alone.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from labs_helpers.course.own_memory import OnEachRank
from labs_helpers.course.verdict import Wrong, cause_of, describe_error, one_thread, real_ranks
from labs_helpers.data_parallel.lab08.process_group_causes import CAUSES, NEVER_WAITED, ONE_RANK
from labs_helpers.practice import Deadlock, PracticeTimeout, RankFailed
from labs_helpers.practice.process_groups import ProcessRun, practice_process_groups
from labs_helpers.practice.ranks import of_rank

LIMIT_S = 5
REAL_LIMIT_S = 30


def on_process_groups(
    case: str,
    student: Any,
    size: int,
    call: Callable[..., Any],
    *args: Any,
    groups: Sequence[Sequence[int]] | None = None,
    errors: Sequence[tuple[str, str]] = (),
    waited: bool = True,
) -> ProcessRun:
    """`call(student, group, rank, *args)` on `size` practice ranks: its results, and what was communicated when.

    args: a list holds one value for each rank; anything else goes to all as it is. errors: (pattern, cause) of error
    messages that this exercise has and others have not. Raises Wrong for a deadlock, an error of a rank, collectives
    that do not match, a loop that does not end, and a collective that nobody waited for.
    """
    try:
        with one_thread(), warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "`torch.distributed", FutureWarning
            )  # of names that PyTorch 2.13 replaces
            run = practice_process_groups(
                partial(call, OnEachRank(student)), size, *args, groups=groups, timeout=LIMIT_S
            )
    except Deadlock as deadlock:
        cause = ONE_RANK if any(rank.ended for rank in deadlock.ranks) else ()
        raise Wrong(case, f"a deadlock: {deadlock}", cause=cause, advice="who waits for whom, and why?") from None
    except RankFailed as failed:
        # Not the engine's own causes, which are Triton's.
        found = describe_error(student, failed.error).found
        advice = (
            "print the shapes before that line" if re.match("[^\n]*(shape|size|dimension|out of range)", found) else ""
        )
        raised = "" if isinstance(failed.error, Wrong) else "raised "
        raise Wrong(
            case, f"rank {failed.rank} {raised}{found}", cause=cause_of(found, (*errors, *CAUSES)), advice=advice
        ) from None
    except PracticeTimeout as error:
        raise Wrong(case, str(error)) from None
    if waited and run.never_waited:
        first = run.never_waited[0]
        found = f"rank {first.rank} starts {first}, and never calls wait() on it"
        raise Wrong(case, found, cause=NEVER_WAITED)
    return run


def on_real_process_groups(
    case: str, student: Any, size: int, call: Callable[..., Any], *args: Any, timeout: float = REAL_LIMIT_S
) -> list[Any]:
    """The same on real ranks, each a process with gloo: what `call` returned on each. Raises Wrong.

    Costs a start of `size` processes that import PyTorch, 2 to 4 s for 2 ranks. One call per check, then, with all in
    it that has to be seen on real ranks.
    """

    def with_gloo(student: Any, comm: Any, *own: Any) -> Any:
        import warnings

        import torch
        import torch.distributed as dist

        from labs_helpers.tensor_parallel.torch_communication import start

        torch.set_num_threads(1)
        warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)
        start(comm, "gloo")
        try:
            return call(student, dist.group.WORLD, comm.rank, *own)
        finally:
            dist.destroy_process_group()

    with_gloo.__module__ = call.__module__  # travels by value, as what is defined beside `call` then does
    own = [tuple(of_rank(arg, rank) for arg in args) for rank in range(size)]
    return real_ranks.on_real_ranks(case, student, own, with_gloo, timeout)
