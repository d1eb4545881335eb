"""Run a function of a communicator on practice ranks: threads of this process, in milliseconds, the same way every
time.

    ran = practice(ring_shift, 4)            # ring_shift(comm) on four ranks
    ran.results, ran.messages, ran.bytes_sent

The same function then runs on real ranks (`labs_helpers.launch.mpirun.run_on_ranks`). A send waits until its message is
received, as standard MPI may do for any size, so a program that needs it to return earlier is incorrect. A deadlock is
reported as soon as it exists. No MPI is needed or loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial

import numpy as np

from labs_helpers.practice.communicator import PracticeComm
from labs_helpers.practice.request import Requests
from labs_helpers.practice.schedule import Practice
from labs_helpers.practice.scheduler import Scheduler


def practice(
    function: Callable,
    size: int,
    *args,
    timeout: float = 10.0,
    eager_limit: int | None = None,
    constants: Container[str] | None = None,
) -> Practice:
    """Run function(comm, *args) on `size` ranks and return their results, messages and bytes.

    args: a list holds one value per rank; of an array each rank gets a copy; anything else goes to all ranks unchanged.
    timeout: seconds of processor time for the whole run. eager_limit: messages of at most this many bytes leave without
    waiting for the receiver (Open MPI in shared memory: 4,000 do, 4,096 do not); None: no message does. constants:
    which of MPI's constants, 'ANY_SOURCE' and 'PROC_NULL', a negative rank may mean. −1 is one of them in Open MPI and
    the other in MPICH, and often neither is meant; None allows both.

    Ranks run one at a time, the one with the earliest logical clock first, so a run does not depend on the machine.

    Raises Deadlock, RankFailed (a rank raised; its error is the cause) or PracticeTimeout, each with the run so far as
    `.practice`; TypeError or ValueError (size, or a list of another length).
    """
    size = check_size(size, args)
    scheduler = Scheduler(size, eager_limit)
    scheduler.constants = constants
    scheduler.know_requests(Requests)
    return scheduler.run(
        [
            partial(function, PracticeComm(scheduler, rank), *(of_rank(arg, rank) for arg in args))
            for rank in range(size)
        ],
        timeout,
    )


def check_size(size: int, args: tuple) -> int:
    """Return the size if it is a valid number of ranks and fits the lists among the arguments. Raises ValueError."""
    if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
        raise ValueError(f"size must be a number of ranks, 1 or more, not {size!r}")
    for arg in args:
        if isinstance(arg, list) and len(arg) != size:
            raise ValueError(f"a list among the arguments holds one value for each rank: {size}, not {len(arg)}")
    return int(size)


def of_rank(arg, rank: int):
    """Return `rank`'s share of an argument."""
    if isinstance(arg, list):
        return arg[rank]
    return arg.copy() if isinstance(arg, np.ndarray) else arg
