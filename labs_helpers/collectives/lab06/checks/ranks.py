"""Run a student's function on practice ranks and on real ones; whatever goes wrong comes back as a Wrong."""

from __future__ import annotations

import re

from labs_helpers.collectives.practice.ranks import (
    Deadlock,
    Practice,
    PracticeTimeout,
    RankFailed,
    SendBufferOverwritten,
    Truncated,
    practice,
)
from labs_helpers.compile.source import names_used, plain, reachable
from labs_helpers.course.verdict.wrong import Wrong, wrong_from

PRACTICE_LIMIT_S = 5
REAL_LIMIT_S = 20
ROUND = "ranks go round with % comm.size; rank ^ step pairs up powers of two only."


def called(student, comm, *own) -> None:
    """How a check calls the student's function, unless it says otherwise."""
    student(comm, *own)


def on_practice_ranks(case: str, student, arguments: list[tuple], call=called) -> Practice:
    """`call(student, comm, *arguments[rank])` on as many practice ranks as there are arguments, which it works on.

    Raises Wrong for a deadlock, an error of a rank, a loop that does not end, a message that nobody received, a
    request that nobody waited for.
    """

    def on_rank(comm):
        return call(student, comm, *arguments[comm.rank])

    try:
        run = practice(on_rank, len(arguments), timeout=PRACTICE_LIMIT_S)
    except Deadlock as error:
        text = str(error).removeprefix("deadlock: ")
        raise Wrong(case, f"a deadlock: {text}\n{_why_stuck(text, error.practice)}") from None
    except RankFailed as error:
        raise Wrong(case, f"rank {error.rank} raised {_told(student, error.error)}") from None
    except PracticeTimeout as error:
        raise Wrong(case, str(error)) from None
    if run.unreceived:
        lost = run.unreceived[0]
        raise Wrong(
            case,
            f"a message from rank {lost.source} to rank {lost.dest}, {lost.nbytes} bytes, was sent and never received",
        )
    if run.never_waited:
        raise Wrong(case, _not_waited_for(run.never_waited))
    return run


def on_real_ranks(case: str, student, arguments: list[tuple], call=called) -> list[tuple]:
    """The same on real ranks, each a process. Returns the arguments as each rank left them. Raises Wrong."""
    from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, run_on_ranks

    try:
        return run_on_ranks(_on_rank, len(arguments), student, arguments, call, timeout=REAL_LIMIT_S)
    except RanksTimeout as error:
        raise Wrong(
            case,
            f"{error}\nLikely cause: real ranks wait for each other although practice ranks did not. Do "
            "all ranks make the same calls whatever order they come in?",
        ) from None
    except RanksFailed as error:
        raise Wrong(case, str(error)) from None
    except Exception as error:
        if "pickle" not in f"{type(error).__name__} {error}":
            raise
        raise Wrong(case, _not_sent(student, error)) from None


def _on_rank(comm, student, arguments, call):
    own = arguments[comm.rank]
    call(student, comm, *own)
    return own


def _told(student, error: BaseException) -> str:
    wrong = wrong_from(error, {plain(part).__code__.co_filename for part in reachable(student).values()})
    said = wrong.message.partition("\nLikely cause")[0]
    if isinstance(error, Truncated):
        return (
            f"{said}\nThe buffer was made for another message: for a chunk of another length (they may differ by "
            "one element), or for one of another step, because a rank has left a message out; an empty chunk is a "
            "message too."
        )
    if "Cannot convert PracticeRequest" in str(error):
        return (
            f"{said}\nMPI.Request's functions take requests of real ranks alone. On both kinds works\n"
            "    for request in requests: request.Wait()"
        )
    causes = {
        SendBufferOverwritten: "the same vector is sent and written; receive into a buffer of its own.",
        BufferError: "a transposed or strided view; a message is one run of memory.",
        IndexError: ROUND,
    }
    cause = next((text for kind, text in causes.items() if isinstance(error, kind)), None)
    if "but the ranks are 0 to" in str(error):
        cause = ROUND
    return f"{said}\nLikely cause: {cause}" if cause else wrong.message


def _not_waited_for(requests: list[str]) -> str:
    """requests: as `Practice.never_waited`."""
    more = f" (and {len(requests) - 1} more)" if len(requests) > 1 else ""
    why = (
        "MPI may still read the buffer, so the message is not safe"
        if "Isend" in requests[0]
        else "what it receives need not be in its buffer yet"
    )
    return (
        f"{requests[0]} is never waited for{more}: until its Wait returns, {why}. Keep what it returns, and call "
        "request.Wait()."
    )


def _not_sent(student, error: Exception) -> str:
    """`error`: why `student` could not be sent to other processes, with the names that it refers to and cannot take."""
    import cloudpickle

    names = []
    for part in reachable(student).values():
        for name, value in names_used(part).items():
            try:
                cloudpickle.dumps(value)
            except Exception:  # whatever it is: this one does not travel
                names.append(f"`{name}`")
    what = ", ".join(dict.fromkeys(names)) or "something"
    return (
        f"{type(error).__name__}: {error}\nThe function is sent to other processes with all that it refers to, and "
        f"{what} cannot be sent: keep no communicator, request or lock in a global variable."
    )


def _why_stuck(text: str, run: Practice) -> str:
    """What the lines of a deadlock let one say: a cause where they leave no other."""
    first, *lines = text.splitlines()
    lines = [line.strip() for line in lines]
    if "; one with tag" in text:
        return (
            "A message is there, with another tag than the receive asks for: the tags of both sides have to be the "
            "same, and come in the same order."
        )
    if "has ended" in first:
        return (
            "One side does less than the other expects: a step, a message or a barrier is missing there, or the "
            "rank waited for is not the one that was meant."
        )
    if re.search(r"waits to send to .* and for a message from", text):
        return (
            "Who sends and who receives do not fit: when one rank's dest is another, that one's source has to be "
            "the first, in the same step. Look at the lines above."
        )
    if "itself" in first:
        return "Likely cause: a blocking Send or Recv whose other side is the rank itself waits for ever; copy instead."
    if "barrier" in first:
        return "Some ranks wait in a barrier that another cannot reach before they have gone on."
    if "Sendrecv(" not in text and not any("Irecv" in request for request in run.never_waited):
        if all(re.match(r"rank \d+ waits to send to", line) for line in lines):
            return (
                "Likely cause: everybody sends first, and nobody receives. Sendrecv does both at once; or some "
                "ranks receive first."
            )
        if not run.unreceived and all(re.match(r"rank \d+ waits for a message", line) for line in lines):
            return "Likely cause: everybody receives first, and nobody sends."
    requests = run.never_waited
    also = f" Not waited for so far: {'; '.join(requests[:4])}{'; …' * (len(requests) > 4)}." if requests else ""
    return f"Each waits for another: look at who expects whom in the lines above.{also}"
