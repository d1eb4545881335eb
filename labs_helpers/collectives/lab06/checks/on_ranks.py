"""How lab 06 runs answers on ranks, and what its error messages mean."""

import dis
from functools import partial

from labs_helpers.compile.source import plain
from labs_helpers.course import verdict
from labs_helpers.course.verdict import on_practice_ranks
from labs_helpers.practice import Practice, practice

ROUND = "ranks go round with % comm.size; rank ^ step pairs up powers of two only"
MINUS_ONE = (
    "ranks go round with % comm.size: (comm.rank - 1) % comm.size is the last rank for rank 0. −1 itself is no rank; "
    "Open MPI happens to take it for any, MPICH for none"
)
OTHER_MESSAGE = (
    "the buffer was made for another message: for a chunk of another length (they may differ by one element), or for "
    "one of another step, because a rank has left a message out; an empty chunk is a message too"
)


def has_a_row_per_rank(found: str, student, size: int) -> bool:
    """Whether an index is beyond the last rank's row."""
    return found.startswith("IndexError") and f"axis 0 with size {size}\n" in found


ERRORS = (  # pairs (pattern, cause), and one of a function
    (
        r"^AttributeError: practice ranks know .*, not '[a-z]",
        "in lower case mpi4py pickles any object; arrays travel in capitals: Send, Recv, Sendrecv",
    ),
    (
        r"^AttributeError: practice ranks know .*, not '[A-Z]",
        "this collective of MPI's own is what the exercise builds; use the calls that are listed",
    ),
    (has_a_row_per_rank, ROUND),
    (r"^Truncated", OTHER_MESSAGE),
    (r"^ValueError: (dest|source) is -1,", MINUS_ONE),
    (r"^ValueError: (dest|source) is ", ROUND),
    (r"^IndexError: list index", "the number of a chunk or of a rank goes round with % comm.size"),
    (
        r"^ValueError: (operands could not be broadcast|could not broadcast|non-broadcastable)",
        "two vectors of different lengths meet: chunks may differ by one element, and a buffer for what arrives has to "
        "be as long as what it is reduced into",
    ),
)


def called(student, comm, *own) -> object:
    """How a check calls the answer, unless it says otherwise."""
    return student(comm, *own)


def left(student, comm, *own) -> tuple:
    """The arguments as the answer left them, which real ranks send back."""
    student(comm, *own)
    return own


on_ranks = partial(on_practice_ranks, ranks=practice, messages=ERRORS, copies=False)
on_real_ranks = partial(verdict.on_real_ranks, practised=practice)


def unused(student, run: Practice, name: str = "recv") -> str:
    """Where the result is, if not in the argument `name`: the cause of one that was never written; or ''."""
    if any(result is not None for result in run.results):
        return f"the result is returned; it has to be in {name}: {name}[:] = …"
    code = plain(student).__code__
    if any(step.opname == "STORE_FAST" and step.argval == name for step in dis.get_instructions(code)):
        return f"`{name} = …` gives the name to another vector, and the caller's stays as it was: {name}[:] = …"
    return ""


def counted(count: int, what: str) -> str:
    """'1 message', '2 messages'."""
    return f"{count} {what}{'s' * (count != 1)}"


def sent_by_each(run: Practice) -> str:
    """Such as: each rank sends 2 messages, 64 bytes."""
    nbytes = " to ".join(map(str, sorted({min(run.bytes_sent), max(run.bytes_sent)})))
    return f"each rank sends {counted(run.messages_sent[0], 'message')}, {nbytes} bytes"
