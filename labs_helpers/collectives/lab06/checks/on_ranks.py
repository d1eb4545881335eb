"""Run answers of lab 06 on ranks, and explain their error messages."""

import dis
from functools import partial

from labs_helpers.compile.source import plain
from labs_helpers.course import verdict
from labs_helpers.course.verdict import on_practice_ranks
from labs_helpers.practice import Practice, practice

ROUND = "rank numbers wrap around with % comm.size; rank ^ step only works for powers of two"
MINUS_ONE = (
    "rank numbers wrap around with % comm.size: (comm.rank - 1) % comm.size is the last rank for rank 0. −1 itself is "
    "not a rank; to Open MPI it means any rank, to MPICH none"
)
OTHER_MESSAGE = (
    "the buffer belongs to another message: to a chunk of another length (they may differ by one element), or to "
    "another step, because a rank left a message out; an empty chunk is a message too"
)


def has_a_row_per_rank(found: str, student, size: int) -> bool:
    """Return True if an index is beyond the last rank's row."""
    return found.startswith("IndexError") and f"axis 0 with size {size}\n" in found


ERRORS = (  # pairs (pattern, cause), and one of a function
    (
        r"^AttributeError: practice ranks know .*, not '[a-z]",
        "mpi4py's lower-case functions pickle any object; for arrays use the capitalized ones: Send, Recv, Sendrecv",
    ),
    (
        r"^AttributeError: practice ranks know .*, not '[A-Z]",
        "this exercise builds what MPI's own collective does; use the listed calls instead",
    ),
    (has_a_row_per_rank, ROUND),
    (r"^Truncated", OTHER_MESSAGE),
    (r"^ValueError: (dest|source) is -1,", MINUS_ONE),
    (r"^ValueError: (dest|source) is ", ROUND),
    (r"^IndexError: list index", "numbers of chunks and ranks wrap around with % comm.size"),
    (
        r"^ValueError: (operands could not be broadcast|could not broadcast|non-broadcastable)",
        "two vectors of different lengths meet: chunks may differ by one element, and a buffer for what arrives has to "
        "be as long as what it is reduced into",
    ),
)


def called(student, comm, *own) -> object:
    """Call the answer with these arguments, the default way."""
    return student(comm, *own)


def left(student, comm, *own) -> tuple:
    """Call the answer, and return the arguments as it left them, which real ranks send back."""
    student(comm, *own)
    return own


on_ranks = partial(on_practice_ranks, ranks=practice, messages=ERRORS, copies=False)
on_real_ranks = partial(verdict.on_real_ranks, practised=practice)


def unused(student, run: Practice, name: str = "recv") -> str:
    """Return the cause of an argument `name` that was never written, because the result is elsewhere; or ''."""
    if any(result is not None for result in run.results):
        return f"the result is returned; store it in {name}: {name}[:] = …"
    code = plain(student).__code__
    if any(step.opname == "STORE_FAST" and step.argval == name for step in dis.get_instructions(code)):
        return f"`{name} = …` gives the name to another vector, and the caller's stays as it was: {name}[:] = …"
    return ""


def counted(count: int, what: str) -> str:
    """Return '1 message', '2 messages'."""
    return f"{count} {what}{'s' * (count != 1)}"


def sent_by_each(run: Practice) -> str:
    """Return, for example, 'each rank sends 2 messages, 64 bytes'."""
    nbytes = " to ".join(map(str, sorted({min(run.bytes_sent), max(run.bytes_sent)})))
    return f"each rank sends {counted(run.messages_sent[0], 'message')}, {nbytes} bytes"
