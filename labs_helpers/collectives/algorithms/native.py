"""The MPI library's own collectives, for comparison. mpi4py must know the dtype."""

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import operation_name
from labs_helpers.launch.flavour import find_mpi


def allreduce(comm, source, target, op) -> None:
    MPI = find_mpi()
    comm.Allreduce(MPI.IN_PLACE if source is target else source, target, _operation(op))


def reduce_scatter(comm, source, target, op) -> None:
    counts = [stop - start for start, stop in chunk_bounds(source.size, comm.Get_size())]
    comm.Reduce_scatter(source, target, counts, _operation(op))


def allgather(comm, source, target) -> None:
    comm.Allgather(source, target)


def broadcast(comm, data, root: int) -> None:
    comm.Bcast(data, root)


def alltoall(comm, source, target) -> None:
    comm.Alltoall(source, target)


def _operation(op):
    """Return MPI's operation, also for a NumPy function or None."""
    MPI = find_mpi()
    return op if isinstance(op, MPI.Op) else getattr(MPI, operation_name(op))
