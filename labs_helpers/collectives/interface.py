"""The collectives of this course, called as in mpi4py, with an algorithm to choose.

Buffers are C-contiguous NumPy arrays of numbers or of bool, any count from 0 up; comm is an MPI communicator or one of
practice ranks (practice.py), with any number of ranks. `op` is MPI.SUM, MIN, MAX, PROD, another predefined one,
an operation made by MPI.Op.Create, or None for MPI.SUM; which dtypes it reduces is MPI's table (operations.py).
All messages carry the tag messages.TAG: keep it free on comm.

Errors are TypeError and ValueError and name the argument. With validate=True a small exchange comes first
(agreement.py): when calls differ between ranks, or a rank refuses its arguments, every rank raises. With
validate=False such a difference may hang; a rank's own arguments are looked at either way.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from labs_helpers.collectives import buffers
from labs_helpers.collectives.agreement import agree, refusal
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
from labs_helpers.collectives.nodes import is_mpi_type, nodes_of
from labs_helpers.collectives.operations import find_ufunc, is_commutative, operation_name
from labs_helpers.collectives.shared_memory import allreduce as shared_allreduce
from labs_helpers.collectives.shared_memory import alltoall as shared_alltoall

Comm = Any  # an MPI communicator, or one of practice ranks
Op = Any  # an MPI operation, or None
Array = np.ndarray[Any, Any]


def _run_automatic(function: str, comm: Comm, source: Array, target: Array, *op: Op) -> None:
    nodes = nodes_of(comm).number_of_nodes if is_mpi_type(type(comm)) else None
    algorithm = _choose(function, comm.Get_size(), source.nbytes, nodes, not op or is_commutative(*op))
    IMPLEMENTATIONS[function][algorithm](comm, source, target, *op)


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
    comm: Comm, send: Any, recv: Array, op: Op = None, algorithm: str = "ring", validate: bool = True
) -> None:
    """recv ← send of rank 0 ∘ send of rank 1 ∘ …, on every rank.

    send: (n,) or any shape, not changed; MPI.IN_PLACE: recv holds this rank's input. recv: as send.
    """
    check = buffers.allreduce_buffers
    run, (source, target) = _prepare("allreduce", comm, check, (send, recv), op, algorithm, validate)
    run(comm, source, target, op)


def reduce_scatter(
    comm: Comm, send: Array, recv: Array, op: Op = None, algorithm: str = "ring", validate: bool = True
) -> None:
    """recv ← this rank's chunk of the reduction of all ranks' send.

    send: n elements, not changed. recv: as many as chunk `rank` of `chunk_bounds(n, size)` has.
    """
    check = buffers.reduce_scatter_buffers
    run, (source, target) = _prepare("reduce_scatter", comm, check, (send, recv), op, algorithm, validate)
    run(comm, source, target, op)


def allgather(comm: Comm, send: Array, recv: Array, algorithm: str = "ring", validate: bool = True) -> None:
    """recv ← send of rank 0, then of rank 1 … send: n elements on every rank. recv: size · n elements."""
    check = buffers.allgather_buffers
    run, (source, target) = _prepare("allgather", comm, check, (send, recv), None, algorithm, validate)
    run(comm, source, target)


def broadcast(comm: Comm, buffer: Array, root: int = 0, algorithm: str = "binomial", validate: bool = True) -> None:
    """buffer ← buffer of rank `root`, on every rank. buffer: n elements."""

    def check(comm: Comm, op: Op, buffer: Array) -> tuple[Array, int]:
        if not isinstance(root, int | np.integer) or isinstance(root, bool):
            raise TypeError(f"root must be a rank, not {root!r}")
        if not 0 <= root < comm.Get_size():
            raise ValueError(f"root is {root}, but comm has ranks 0 to {comm.Get_size() - 1}")
        return buffers.flat("buffer", buffer, written=True), root

    run, (data, _) = _prepare("broadcast", comm, check, (buffer,), None, algorithm, validate, root)
    run(comm, data, int(root))


def alltoall(comm: Comm, send: Array, recv: Array, algorithm: str = "pairwise", validate: bool = True) -> None:
    """Block s of recv ← block `rank` of rank s's send. send, recv: size · m elements, blocks of m."""
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
    """(the algorithm's function, the flat buffers), once this rank's arguments are found good, and all ranks' alike
    if `validate`. Without that it has to be quick: an all-reduce of 8 bytes takes 5 µs."""
    if not getattr(comm, "Get_rank", None):
        raise TypeError(f"comm must be a communicator, not a {type(comm).__name__}")
    if not comm:
        raise ValueError("comm has been freed (it is MPI.COMM_NULL)")
    kind: Any = type(comm)  # mypy takes a class for unhashable
    if validate:
        _look_up(function, kind, "auto")  # ranks of two groups could not even agree
        _agree(function, comm, check, arrays, op, algorithm, root)
    run = _look_up(function, kind, algorithm if type(algorithm) is str else str(algorithm))
    if op is not None and find_ufunc(op) is None and not op.is_commutative:
        _check_order(function, algorithm)
    return run, check(comm, op, *arrays)


def _agree(
    function: str,
    comm: Comm,
    check: Callable[..., tuple[Array, Any]],
    arrays: tuple[Any, ...],
    op: Op,
    algorithm: str,
    root: int | None,
) -> None:
    """Raises on every rank if one finds fault with its arguments, or if they differ."""
    try:
        _, flat = _prepare(function, comm, check, arrays, op, algorithm, validate=False)
        if len(arrays) == 2 and not buffers.is_in_place(arrays[0]):
            buffers.no_overlap(*flat, in_place_is_known=function == "allreduce")
    except (TypeError, ValueError) as error:
        _refuse(comm, error)
        raise
    # The sizes of what arrives follow from those of what is sent, checked above.
    in_place = buffers.is_in_place(arrays[0])
    name = "buffer" if function == "broadcast" else "recv" if in_place else "send"
    agree(
        comm,
        {
            "function": function,
            "algorithm": algorithm,
            "op": operation_name(op),
            "root": None if root is None else int(root),
            "send": "MPI.IN_PLACE" if in_place else "an array",
            f"dtype of {name}": str(flat[0].dtype),
            f"size of {name}": flat[0].size,
        },
    )


def _refuse(comm: Comm, error: Exception) -> None:
    """Let the others know; here the error itself says more."""
    try:
        agree(comm, refusal(error))
    except ValueError as told:
        error.add_note(str(told))


@functools.cache
def _look_up(function: str, kind: type, algorithm: str) -> Callable[..., None]:
    """The algorithm's function. Raises ValueError or TypeError for what cannot be on such a comm."""
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
