"""The collectives of this course, with mpi4py's signatures and a choice of algorithm.

Buffers are C-contiguous NumPy arrays of numbers or of bool, with any count from 0 up. comm is an MPI communicator or
one of practice ranks (practice.py), with any number of ranks. `op` is MPI.SUM, MIN, MAX, PROD, another predefined one,
an operation created by MPI.Op.Create, or None for MPI.SUM; MPI's table says which dtypes it reduces (operations.py).
All messages carry the tag messages.TAG, so keep it free on comm.

Errors are TypeError and ValueError and name the argument. With validate=True the ranks first compare their calls
(agreement.py). If these differ, or if a rank refuses its arguments, every rank raises. With validate=False such a
difference may hang; a rank's own arguments are checked either way. All ranks have to pass the same `validate`.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from labs_helpers.collectives import buffers, remembered
from labs_helpers.collectives.agreement import agree, number_of, refusal, tell
from labs_helpers.collectives.algorithms import (
    binomial,
    hierarchical,
    naive,
    native,
    pairwise,
    rabenseifner,
    recursive_doubling,
    recursive_halving,
    ring,
)
from labs_helpers.collectives.choose import choose
from labs_helpers.collectives.nodes import find_kept, is_mpi_type, nodes_of
from labs_helpers.collectives.operations import find_ufunc, is_commutative, operation_name
from labs_helpers.collectives.shared_memory import allreduce as shared_allreduce
from labs_helpers.collectives.shared_memory import alltoall as shared_alltoall
from labs_helpers.collectives.shared_memory.board import Differs
from labs_helpers.collectives.shared_memory.segment import Segment

Comm = Any  # an MPI communicator, or one of practice ranks
Op = Any  # an MPI operation, or None
Array = np.ndarray[Any, Any]


def _run_automatic(function: str, comm: Comm, source: Array, target: Array, *op: Op) -> None:
    IMPLEMENTATIONS[function][_automatic(function, comm, source, *op)](comm, source, target, *op)


def _automatic(function: str, comm: Comm, source: Array, *op: Op) -> str:
    nodes = nodes_of(comm).number_of_nodes if is_mpi_type(type(comm)) else None
    return _choose(function, comm.Get_size(), source.nbytes, nodes, not op or is_commutative(*op))


@functools.lru_cache(maxsize=1024)
def _choose(function: str, ranks: int, nbytes: int, nodes: int | None, commutative: bool) -> str:
    known = {name for name in IMPLEMENTATIONS[function] if nodes or name not in MPI_ONLY} - {"auto"}
    return choose(function, ranks, nbytes, nodes, known if commutative else known - REORDERS)


IMPLEMENTATIONS: dict[str, dict[str, Callable[..., None]]] = {
    "allreduce": {
        "naive": naive.allreduce,
        "ring": ring.allreduce,
        "recursive_doubling": recursive_doubling.allreduce,
        "rabenseifner": rabenseifner.allreduce,
        "shared_memory": shared_allreduce.allreduce,
        "hierarchical": hierarchical.allreduce,
        "native": native.allreduce,
    },
    "reduce_scatter": {
        "ring": ring.reduce_scatter,
        "recursive_halving": recursive_halving.reduce_scatter,
        "native": native.reduce_scatter,
    },
    "allgather": {"ring": ring.allgather, "native": native.allgather},
    "broadcast": {"binomial": binomial.broadcast, "native": native.broadcast},
    "alltoall": {
        "pairwise": pairwise.alltoall,
        "shared_memory": shared_alltoall.alltoall,
        "native": native.alltoall,
    },
}
for _function, _known in IMPLEMENTATIONS.items():
    _known["auto"] = functools.partial(_run_automatic, _function)
ALGORITHMS = {function: tuple(known) for function, known in IMPLEMENTATIONS.items()}
REORDERS = {"ring", "recursive_halving"}  # a ∘ b may become b ∘ a
MPI_ONLY = {"shared_memory", "hierarchical", "native"}


def allreduce(
    comm: Comm, send: Any, recv: Array, op: Op = None, algorithm: str = "auto", validate: bool = True
) -> None:
    """Compute recv ← send of rank 0 ∘ send of rank 1 ∘ …, on every rank.

    send: (n,) or any shape, unchanged; MPI.IN_PLACE: recv holds this rank's input. recv: as send.
    """
    try:
        if remembered.repeat(comm, send, recv, op, algorithm, validate):
            return
        check = buffers.allreduce_buffers
        number = None
        if validate:
            run, (source, target) = _check_own("allreduce", comm, check, (send, recv), op, algorithm)
            described = _description("allreduce", source, send, op, algorithm)
            number = number_of(described)
        else:
            run, (source, target) = _prepare("allreduce", comm, check, (send, recv), op, algorithm, validate)
        segment = _segment_for(comm, source, op, algorithm)
        if segment is not None:
            shared_allreduce.reduce_all(segment, source, target, op, number)
        else:
            if validate:
                agree(comm, described)
            run(comm, source, target, op)
    except Differs:
        source, _ = buffers.allreduce_buffers(comm, op, send, recv)
        tell(comm, _description("allreduce", source, send, op, algorithm))
    segment = _segment_for(comm, source, op, algorithm)  # it exists by now, if the algorithm creates one
    remembered.keep(comm, send, recv, op, algorithm, number, segment, run)


def _segment_for(comm: Comm, source: Array, op: Op, algorithm: str) -> Segment | None:
    """Return the segment on which an all-reduce's own first barrier compares the ranks' calls; None if they compare
    before. Each rank derives it from its own call, so ranks in the same call find the same one."""
    segment = find_kept(comm, "segment")
    if segment is not None and algorithm == "auto":
        algorithm = _automatic("allreduce", comm, source, op)
    return segment if algorithm == "shared_memory" else None


def reduce_scatter(
    comm: Comm, send: Array, recv: Array, op: Op = None, algorithm: str = "ring", validate: bool = True
) -> None:
    """Compute recv ← this rank's chunk of the reduction of all ranks' send.

    send: n elements, unchanged. recv: as many as chunk `rank` of `chunk_bounds(n, size)` has.
    """
    check = buffers.reduce_scatter_buffers
    run, (source, target) = _prepare("reduce_scatter", comm, check, (send, recv), op, algorithm, validate)
    run(comm, source, target, op)


def allgather(comm: Comm, send: Array, recv: Array, algorithm: str = "ring", validate: bool = True) -> None:
    """Compute recv ← send of rank 0, then of rank 1 … send: n elements on every rank. recv: size · n elements."""
    check = buffers.allgather_buffers
    run, (source, target) = _prepare("allgather", comm, check, (send, recv), None, algorithm, validate)
    run(comm, source, target)


def broadcast(comm: Comm, buffer: Array, root: int = 0, algorithm: str = "binomial", validate: bool = True) -> None:
    """Compute buffer ← buffer of rank `root`, on every rank. buffer: n elements."""

    def check(comm: Comm, op: Op, buffer: Array) -> tuple[Array, int]:
        if not isinstance(root, int | np.integer) or isinstance(root, bool):
            raise TypeError(f"root must be a rank, not {root!r}")
        if not 0 <= root < comm.Get_size():
            raise ValueError(f"root is {root}, but comm has ranks 0 to {comm.Get_size() - 1}")
        return buffers.flat("buffer", buffer, written=True), root

    run, (data, _) = _prepare("broadcast", comm, check, (buffer,), None, algorithm, validate, root)
    run(comm, data, int(root))


def alltoall(comm: Comm, send: Array, recv: Array, algorithm: str = "pairwise", validate: bool = True) -> None:
    """Compute block s of recv ← block `rank` of rank s's send. send, recv: size · m elements, blocks of m."""
    check = buffers.alltoall_buffers
    run, (source, target) = _prepare("alltoall", comm, check, (send, recv), None, algorithm, validate)
    run(comm, source, target)


def _prepare(
    function: str,
    comm: Comm,
    check: Callable[..., tuple[Array, Any]],
    arrays: tuple[Any, ...],
    op: Op,
    algorithm: str,
    validate: bool,
    root: int | None = None,
) -> tuple[Callable[..., None], tuple[Array, Any]]:
    """Check this rank's arguments and, with `validate`, that all ranks agree; return (the algorithm's function, the
    flat buffers). Without `validate` it has to be quick: an all-reduce of 8 bytes takes 5 µs."""
    if validate:
        ready = _check_own(function, comm, check, arrays, op, algorithm)
        agree(comm, _description(function, ready[1][0], arrays[0], op, algorithm, root))
        return ready
    kind = _kind(comm)
    run = _look_up(function, kind, algorithm if type(algorithm) is str else str(algorithm))
    if op is not None and find_ufunc(op) is None and not op.is_commutative:
        _check_order(function, algorithm)
    return run, check(comm, op, *arrays)


def _check_own(
    function: str, comm: Comm, check: Callable[..., tuple[Array, Any]], arrays: tuple[Any, ...], op: Op, algorithm: str
) -> tuple[Callable[..., None], tuple[Array, Any]]:
    """Do the same as `_prepare`. If this rank refuses its arguments, every rank of a validated call raises."""
    _look_up(function, _kind(comm), "auto")  # ranks of two groups cannot even compare calls
    try:
        run, flat = _prepare(function, comm, check, arrays, op, algorithm, validate=False)
        if len(arrays) == 2 and not buffers.is_in_place(arrays[0]):
            buffers.no_overlap(*flat, in_place_is_known=function == "allreduce")
    except (TypeError, ValueError) as error:
        _refuse(comm, error)
        raise
    return run, flat


def _kind(comm: Comm) -> Any:  # mypy takes a class for unhashable
    if not getattr(comm, "Get_rank", None):
        raise TypeError(f"comm must be a communicator, not a {type(comm).__name__}")
    if not comm:
        raise ValueError("comm has been freed (it is MPI.COMM_NULL)")
    return type(comm)


def _description(
    function: str, source: Array, send: Any, op: Op, algorithm: str, root: int | None = None
) -> dict[str, Any]:
    """Describe a call for comparison between ranks. The sizes of what arrives follow from those of what is sent."""
    in_place = buffers.is_in_place(send)
    name = "buffer" if function == "broadcast" else "recv" if in_place else "send"
    return {
        "function": function,
        "algorithm": algorithm,
        "op": operation_name(op),
        "root": None if root is None else int(root),
        "send": "MPI.IN_PLACE" if in_place else "an array",
        f"dtype of {name}": str(source.dtype),
        f"size of {name}": source.size,
    }


def _refuse(comm: Comm, error: Exception) -> None:
    """Tell the other ranks; on this one the error itself says more."""
    try:
        agree(comm, refusal(error))
    except ValueError as told:
        error.add_note(str(told))


@functools.cache
def _look_up(function: str, kind: type, algorithm: str) -> Callable[..., None]:
    """Return the algorithm's function. ValueError or TypeError if it cannot run on such a comm."""
    if algorithm not in ALGORITHMS[function]:
        raise ValueError(
            f"algorithm {algorithm!r} is not known to {function}; it knows {', '.join(ALGORITHMS[function])}"
        )
    if kind.__name__ == "Intercomm":
        raise TypeError("comm must have one group of ranks, but is an inter-communicator")
    if algorithm in MPI_ONLY and not is_mpi_type(kind):
        raise TypeError(f"comm must be an MPI communicator for algorithm {algorithm!r}, not a {kind.__name__}")
    return IMPLEMENTATIONS[function][algorithm]


def _check_order(function: str, algorithm: str) -> None:
    if algorithm in REORDERS or algorithm == "auto" and function == "reduce_scatter":
        raise ValueError(f"op is not commutative, and algorithm {algorithm!r} changes the order of operands")
