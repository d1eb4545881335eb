"""Run a student's function on practice ranks and on real ones; whatever goes wrong comes back as a Wrong."""

from __future__ import annotations

from labs_helpers.bench.source import plain, reachable
from labs_helpers.collectives.practice import (
    Deadlock,
    Practice,
    PracticeTimeout,
    RankFailed,
    SendBufferOverwritten,
    Truncated,
    practice,
)
from labs_helpers.course.wrong import Wrong, wrong_from

PRACTICE_LIMIT_S = 5
REAL_LIMIT_S = 20
ROUND = "ranks go round with % comm.size; rank ^ step pairs up powers of two only."


def called(student, comm, *own) -> None:
    """How a check calls the student's function, unless it says otherwise."""
    student(comm, *own)


def on_practice_ranks(case: str, student, arguments: list[tuple], call=called) -> Practice:
    """`call(student, comm, *arguments[rank])` on as many practice ranks as there are arguments, which it works on.

    Raises Wrong for a deadlock, an error of a rank, a loop that does not end, a message that nobody received.
    """
    def on_rank(comm):
        return call(student, comm, *arguments[comm.rank])

    size = len(arguments)
    try:
        run = practice(on_rank, size, timeout=PRACTICE_LIMIT_S)
    except Deadlock as error:
        text = str(error).removeprefix("deadlock: ")
        raise Wrong(case, f"a deadlock: {text}\nLikely cause: {_why_stuck(text, size)}") from None
    except RankFailed as error:
        raise Wrong(case, f"rank {error.rank} raised {_told(student, error.error)}") from None
    except PracticeTimeout as error:
        raise Wrong(case, str(error)) from None
    if run.unreceived:
        lost = run.unreceived[0]
        raise Wrong(case, f"a message from rank {lost.source} to rank {lost.dest}, {lost.nbytes} bytes, was sent and "
                    "never received")
    return run


def on_real_ranks(case: str, student, arguments: list[tuple], call=called) -> list[tuple]:
    """The same on real ranks, each a process. Returns the arguments as each rank left them. Raises Wrong."""
    from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, run_on_ranks

    try:
        return run_on_ranks(_on_rank, len(arguments), student, arguments, call, timeout=REAL_LIMIT_S)
    except RanksTimeout as error:
        raise Wrong(case, f"{error}\nLikely cause: real ranks wait for each other although practice ranks did not. Do "
                    "all ranks make the same calls whatever order they come in?") from None
    except RanksFailed as error:
        raise Wrong(case, str(error)) from None


def _on_rank(comm, student, arguments, call):
    own = arguments[comm.rank]
    call(student, comm, *own)
    return own


def _told(student, error: BaseException) -> str:
    wrong = wrong_from(error, {plain(part).__code__.co_filename for part in reachable(student).values()})
    causes = {
        Truncated: "the buffer has the length of another chunk than the one that arrives; chunks may differ by one "
                   "element.",
        SendBufferOverwritten: "the same vector is sent and written; receive into a buffer of its own.",
        BufferError: "a transposed or strided view; a message is one run of memory.",
        IndexError: ROUND,
    }
    cause = next((text for kind, text in causes.items() if isinstance(error, kind)), None)
    if "but the ranks are 0 to" in str(error):
        cause = ROUND
    said = wrong.message.partition("\nLikely cause")[0]
    return f"{said}\nLikely cause: {cause}" if cause else wrong.message


def _why_stuck(text: str, size: int) -> str:
    first = text.splitlines()[0]
    if "has ended" in first:
        return "one rank does less than the other expects: a step, a message or a barrier is missing on its side."
    if "itself" in first:
        return "a blocking Send or Recv whose other side is the rank itself waits for ever; copy instead."
    if "barrier" in first:
        return "not all ranks come to the same barriers."
    if first.count("to send to") >= min(size, 3):
        return "everybody sends first, and nobody receives. Sendrecv does both at once; or some ranks receive first."
    if "to send to" not in first:
        return "everybody receives first, and nobody sends."
    return "a rank sends to one that waits for another message first: look at who expects whom in the lines above."
