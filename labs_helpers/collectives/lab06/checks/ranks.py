"""Runs an answer on practice ranks and on real ones; whatever goes wrong comes back as a Wrong."""

import sys

from labs_helpers.collectives.lab06.checks.deadlocks import describe_deadlock
from labs_helpers.collectives.practice import Deadlock, Practice, PracticeTimeout, RankFailed, practice
from labs_helpers.compile.source import names_used, reachable
from labs_helpers.course.verdict import Wrong, cause_of, describe_error

PRACTICE_LIMIT_S = 5
REAL_LIMIT_S = 20
ROUND = "ranks go round with % comm.size; rank ^ step pairs up powers of two only"
REQUESTS = "MPI.Request's functions take real requests alone; right on both: for request in requests: request.Wait()"
OTHER_MESSAGE = (
    "the buffer was made for another message: for a chunk of another length (they may differ by one element), or for "
    "one of another step, because a rank has left a message out; an empty chunk is a message too"
)
CAUSES = (  # of a rank's error, as in the engine's tables
    (r"^Truncated", OTHER_MESSAGE),
    (r"^SendBufferOverwritten", "the same vector is sent and written; receive into a buffer of its own"),
    (r"^BufferError", "a transposed or strided view; a message is one run of memory"),
    (r"^IndexError|^ValueError: (dest|source) is ", ROUND),
    (r"Cannot convert PracticeRequest", REQUESTS),
)


def called(student, comm, *own) -> None:
    """How a check calls the answer, unless it says otherwise."""
    student(comm, *own)


def on_practice_ranks(case: str, student, own: list[tuple], call=called) -> Practice:
    """`call(student, comm, *own[rank])` on as many practice ranks as there are arguments, which it works on.

    Raises Wrong for a deadlock, an error of a rank, a loop that does not end, a message that nobody received, a
    request that nobody waited for.
    """
    try:
        run = practice(lambda comm: call(student, comm, *own[comm.rank]), len(own), timeout=PRACTICE_LIMIT_S)
    except Deadlock as deadlock:
        raise describe_deadlock(case, deadlock) from None
    except RankFailed as failed:
        wrong = describe_error(student, failed.error)
        cause = cause_of(wrong.found, CAUSES) or wrong.causes
        raise Wrong(case, f"rank {failed.rank} raised {wrong.found}", cause=cause) from None
    except PracticeTimeout as error:
        raise Wrong(case, str(error)) from None
    if run.unreceived:
        lost = run.unreceived[0]
        journey = f"from rank {lost.source} to rank {lost.dest}, {lost.nbytes} bytes"
        raise Wrong(case, f"a message {journey}, was sent and never received")
    if run.never_waited:
        first, *others = run.never_waited
        more = f" (and {len(others)} more)" if others else ""
        until = "until its Wait returns, MPI may still read or write the buffer"
        raise Wrong(case, f"{first} is never waited for{more}: {until}. Keep what it returns, and call its Wait().")
    return run


def on_real_ranks(case: str, student, own: list[tuple], call=called) -> list[tuple]:
    """The same on real ranks, each a process. Returns the arguments as each rank left them. Raises Wrong."""
    import cloudpickle

    from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, run_on_ranks

    cloudpickle.register_pickle_by_value(sys.modules[__package__])  # else each rank imports the checks, and torch
    try:
        return run_on_ranks(_on_rank, len(own), student, own, call, timeout=REAL_LIMIT_S)
    except (RanksFailed, RanksTimeout) as error:
        same = "real ranks wait where practice ranks did not. Do all make the same calls whatever order they come in?"
        raise Wrong(case, str(error), cause=same if isinstance(error, RanksTimeout) else "") from None
    except Exception as error:
        if "pickle" not in f"{type(error).__name__} {error}":
            raise
        raise Wrong(
            case,
            f"{type(error).__name__}: {error}\nThe function is sent to other processes with all that it refers to, and "
            f"{_not_picklable(student)} cannot be sent: keep no communicator, request or lock in a global variable.",
        ) from None


def _on_rank(comm, student, own, call) -> tuple:
    call(student, comm, *own[comm.rank])
    return own[comm.rank]


def _not_picklable(student) -> str:
    """The names that `student` refers to and cannot take to another process."""
    import cloudpickle

    names = []
    for part in reachable(student).values():
        for name, value in names_used(part).items():
            try:
                cloudpickle.dumps(value)
            except Exception:  # whatever it is: this one does not travel
                names.append(f"`{name}`")
    return ", ".join(dict.fromkeys(names)) or "something"


def counted(count: int, what: str) -> str:
    """'1 message', '2 messages'."""
    return f"{count} {what}{'s' * (count != 1)}"


def sent_by_each(run: Practice) -> str:
    """Such as: each rank sends 2 messages, 64 bytes."""
    nbytes = " to ".join(map(str, sorted({min(run.bytes_sent), max(run.bytes_sent)})))
    return f"each rank sends {counted(run.messages_sent[0], 'message')}, {nbytes} bytes"
