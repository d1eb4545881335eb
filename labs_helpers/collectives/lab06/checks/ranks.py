"""Runs an answer on practice ranks and on real ones; whatever goes wrong comes back as a Wrong."""

import dis

from labs_helpers.collectives.lab06.checks.deadlocks import describe_deadlock
from labs_helpers.compile.source import plain
from labs_helpers.course.own_memory import OnEachRank, names_in
from labs_helpers.course.verdict import Wrong, cause_of, describe_error, real_ranks
from labs_helpers.practice import Deadlock, Practice, PracticeTimeout, RankFailed, practice

PRACTICE_LIMIT_S = 5
REAL_LIMIT_S = 20
ROUND = "ranks go round with % comm.size; rank ^ step pairs up powers of two only"
MINUS_ONE = (
    "ranks go round with % comm.size: (comm.rank - 1) % comm.size is the last rank for rank 0. −1 itself is no rank; "
    "Open MPI happens to take it for any, MPICH for none"
)
OTHER_MESSAGE = (
    "the buffer was made for another message: for a chunk of another length (they may differ by one element), or for "
    "one of another step, because a rank has left a message out; an empty chunk is a message too"
)
CAUSES = (  # of a rank's error, as in the engine's tables
    (r"^Truncated", OTHER_MESSAGE),
    (r"^SendBufferOverwritten", "the same vector is sent and written; receive into a buffer of its own"),
    (r"^BufferError", "a transposed or strided view; a message is one run of memory"),
    (r"^ValueError: (dest|source) is -1,", MINUS_ONE),
    (r"^ValueError: (dest|source) is ", ROUND),
    (r"^IndexError: list index", "the number of a chunk or of a rank goes round with % comm.size"),
    (
        r"^ValueError: (operands could not be broadcast|could not broadcast|non-broadcastable)",
        "two vectors of different lengths meet: chunks may differ by one element, and a buffer for what arrives has to "
        "be as long as what it is reduced into",
    ),
    (
        r"^TypeError: rank \d+ sent (?!float64)\w+, rank \d+ receives it as float64",
        "np.empty(n) and np.zeros(n) are float64 whatever the vector holds; np.empty_like(…), or dtype=",
    ),
)


def called(student, comm, *own) -> object:
    """How a check calls the answer, unless it says otherwise."""
    return student(comm, *own)


def on_practice_ranks(case: str, student, own: list[tuple], call=called) -> Practice:
    """`call(student, comm, *own[rank])` on as many practice ranks as there are arguments, which it works on.

    Raises Wrong for a deadlock, an error of a rank, a loop that does not end, a message that nobody received, a
    request that nobody waited for.
    """
    names = names_in(student)
    if "COMM_WORLD" in names:
        found = "MPI.COMM_WORLD is used: all the ranks that there are; the function is to work among those of comm"
        raise Wrong(case, found, cause="COMM_WORLD in place of comm, which is handed over")
    if "Request" in names:
        from mpi4py import MPI  # noqa: F401  # the answer does: it is to find MPI.Request as practice ranks have it
    own_of = OnEachRank(student)
    try:
        run = practice(
            lambda comm: call(own_of, comm, *own[comm.rank]),
            len(own),
            timeout=PRACTICE_LIMIT_S,
            constants=names,
        )
    except Deadlock as deadlock:
        raise describe_deadlock(case, deadlock) from None
    except RankFailed as failed:
        wrong = describe_error(student, failed.error)
        cause = cause_of(wrong.found, CAUSES)  # the engine's own are about kernels
        if f"axis 0 with size {len(own)}\n" in wrong.found and wrong.found.startswith("IndexError"):  # a row a rank
            cause = ROUND
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


def unused(student, run: Practice, name: str = "recv") -> str:
    """Where the result is, if not in the argument `name`: the cause of one that was never written; or ''."""
    if any(result is not None for result in run.results):
        return f"the result is returned; it has to be in {name}: {name}[:] = …"
    code = plain(student).__code__
    if any(step.opname == "STORE_FAST" and step.argval == name for step in dis.get_instructions(code)):
        return f"`{name} = …` gives the name to another vector, and the caller's stays as it was: {name}[:] = …"
    return ""


def on_real_ranks(case: str, student, own: list[tuple], call=called) -> list[tuple]:
    """The same on real ranks, each a process. Returns the arguments as each rank left them. Raises Wrong."""
    return real_ranks.on_real_ranks(case, student, [(call, *args) for args in own], _left, timeout=REAL_LIMIT_S)


def _left(student, comm, call, *own) -> tuple:
    call(student, comm, *own)
    return own


def counted(count: int, what: str) -> str:
    """'1 message', '2 messages'."""
    return f"{count} {what}{'s' * (count != 1)}"


def sent_by_each(run: Practice) -> str:
    """Such as: each rank sends 2 messages, 64 bytes."""
    nbytes = " to ".join(map(str, sorted({min(run.bytes_sent), max(run.bytes_sent)})))
    return f"each rank sends {counted(run.messages_sent[0], 'message')}, {nbytes} bytes"
