"""Find out which ranks share a node, and keep objects with a communicator until it is freed.

A node is a group of ranks that can share memory. `pretend_nodes` declares smaller ones, so that you can try
communication between nodes on one machine.
"""

import atexit
import itertools
from dataclasses import dataclass

from labs_helpers.launch.flavour import find_mpi

_kept = {}  # (kind, a communicator's handle) → (number, the kept object)
_keys = {}  # kind → MPI's key of the attribute whose deletion signals that a communicator is freed
_numbers = itertools.count()


@dataclass(frozen=True)
class Nodes:
    """The layout. `node`: communicator of this rank's node. `leaders`: of the first rank of every node, None
    elsewhere. `number_of_nodes`; `in_order`: True if each node holds consecutive ranks."""

    node: object
    leaders: object
    number_of_nodes: int
    in_order: bool

    def free(self) -> None:
        self.node.Free()
        if self.leaders is not None:
            self.leaders.Free()


def nodes_of(comm) -> Nodes:
    """Return the layout of an MPI communicator; the first call is collective."""
    return kept_with(comm, "nodes", lambda comm: _make(comm, comm.Split_type(find_mpi().COMM_TYPE_SHARED)))


def pretend_nodes(comm, ranks_per_node: int) -> Nodes:
    """Let `ranks_per_node` consecutive ranks count as a node from now on (collective, on ranks of one node).

    Raises ValueError if comm's layout was already used, or if ranks_per_node is below 1.
    """
    if ranks_per_node < 1:
        raise ValueError(f"ranks_per_node must be at least 1, but is {ranks_per_node}")
    made = []

    def make(comm):
        made.append(_make(comm, comm.Split(comm.Get_rank() // ranks_per_node)))
        return made[0]

    nodes = kept_with(comm, "nodes", make)
    if not made:
        raise ValueError("comm's nodes are known already: call pretend_nodes first, or on comm.Dup()")
    return nodes


def is_mpi(comm) -> bool:
    """Return True if comm is MPI's own communicator, rather than a practice or counting one."""
    return is_mpi_type(type(comm))


def is_mpi_type(kind: type) -> bool:
    MPI = find_mpi()
    return MPI is not None and issubclass(kind, MPI.Comm)


def kept_with(comm, kind: str, make):
    """Return the object of this kind that comm keeps; `make(comm)` creates it first. Its `free()` is called with
    comm's.

    Duplicates of comm do not inherit it. Raises TypeError if comm is not MPI's.
    """
    try:
        return _kept[kind, comm.handle][1]
    except (KeyError, AttributeError):
        return _keep(comm, kind, make)


def find_kept(comm, kind: str):
    """Return the object of this kind that comm keeps, or None."""
    try:
        return _kept[kind, comm.handle][1]
    except (KeyError, AttributeError):
        return None


def _keep(comm, kind: str, make):
    if not is_mpi(comm):
        raise TypeError(f"comm must be an MPI communicator here, not a {type(comm).__name__}")
    if not _keys:
        atexit.register(_free_all)
    if kind not in _keys:
        _keys[kind] = find_mpi().Comm.Create_keyval(delete_fn=_let_go)
    number = comm.bcast((find_mpi().COMM_WORLD.Get_rank(), next(_numbers)))
    value = make(comm)
    _kept[kind, comm.handle] = number, value  # reading an attribute from MPI takes a tenth of the shortest all-reduce
    comm.Set_attr(_keys[kind], kind)
    return value


def _let_go(comm, _, kind: str) -> None:
    _free((kind, comm.handle))


def _free(key: tuple) -> None:
    if key in _kept:
        _kept.pop(key)[1].free()


def _free_all() -> None:
    """Free everything before MPI ends. MPI would free the windows of unfreed communicators in the order in which
    each rank created them. Freeing is collective, and threads may have created them in another order on another
    rank."""
    if not find_mpi().Is_finalized():
        for key in sorted(_kept, key=lambda key: _kept[key][0]):
            _free(key)


def _make(comm, node) -> Nodes:
    MPI = find_mpi()
    leads = node.Get_rank() == 0
    leaders = comm.Split(0 if leads else MPI.UNDEFINED)
    leader_of = comm.allgather(node.bcast(comm.Get_rank()))
    changes = sum(a != b for a, b in zip(leader_of, leader_of[1:], strict=False))
    number = len(set(leader_of))
    return Nodes(node, leaders if leads else None, number, in_order=changes == number - 1)
