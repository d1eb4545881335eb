"""Repeat all-reduces: a call like an earlier one reuses everything that the earlier call prepared.

Each rank remembers by itself that this dtype, shape, op and algorithm go together, and how to run them. Unless
validate=False, it still compares every call with the other ranks' (agreement.py). So a rank that remembers a call may
meet one that does not, and differences are still reported. The memory belongs to the communicator's board and
disappears with it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from labs_helpers.collectives.nodes import find_kept
from labs_helpers.collectives.shared_memory.allreduce import prepare
from labs_helpers.collectives.shared_memory.board import CALLS, Differs
from labs_helpers.collectives.shared_memory.segment import Segment
from labs_helpers.launch.flavour import find_mpi

MOST = 1000  # calls that a communicator remembers
_Array = np.ndarray[Any, Any]


def repeat(comm: Any, send: Any, recv: Any, op: Any, algorithm: Any, validate: bool) -> bool:
    """Repeat an all-reduce. Return False and do nothing if there was none like it, or if the buffers need checking.
    Raises Differs, on all ranks, if not all are in the same call."""
    try:
        run, _ = CALLS[comm.handle][recv.dtype, recv.shape, type(send), id(op), algorithm, validate]
    except (KeyError, AttributeError, TypeError):
        return False
    if type(recv) is not np.ndarray or not recv.flags.carray:
        return False
    if type(send) is np.ndarray:
        if send.dtype is not recv.dtype or send.shape != recv.shape or not send.flags.c_contiguous:
            return False
        if np.may_share_memory(send, recv):  # exact for contiguous arrays
            return False
        run(send, recv)
    elif send is find_mpi().IN_PLACE:
        run(recv, recv)
    else:
        return False
    return True


def keep(
    comm: Any,
    send: Any,
    recv: _Array,
    op: Any,
    algorithm: str,
    number: int | None,
    segment: Segment | None,
    run: Callable[..., None],
) -> None:
    """Remember a successful call, unless a program created its operation, since it may free that and create another.

    number: of the call; None with validate=False. segment: where the algorithm's own first barrier compares numbers;
    None if that happens before `run(comm, source, target, op)`.
    """
    board = find_kept(comm, "board")
    if board is None or not (op is None or isinstance(op, np.ufunc) or op.is_predefined):
        return

    def compare_and_run(source: _Array, target: _Array) -> None:
        flat = target.reshape(-1)
        if number is not None and not board.agree(number):
            raise Differs
        run(comm, flat if source is target else source.reshape(-1), flat, op)

    calls = CALLS[comm.handle]
    if len(calls) >= MOST:
        calls.clear()
    prepared = compare_and_run if segment is None else prepare(segment, recv.dtype, recv.shape, op, number)
    key = recv.dtype, recv.shape, type(send), id(op), algorithm, number is not None
    calls[key] = prepared, op  # op is kept, as its id stands for it
