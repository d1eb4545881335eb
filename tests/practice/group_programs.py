"""Programs of groups and collectives that must give the same results on practice ranks and real ranks. Pickled by
value.

Each is a function of a communicator of 4 ranks and returns values that can be compared with ==.
"""

import numpy as np

DTYPES = ["float64", "float32", "int64", "int32", "int16", "uint8", "complex128"]


def own(comm, count, dtype, shape=()):
    """What a rank brings: other numbers on each."""
    return (np.arange(count) * (comm.rank + 2) % 11 + comm.rank).astype(dtype).reshape(shape or count)


def blocks_of_arrays(comm):
    found = []
    for dtype in [*DTYPES, "bool", "float16"]:
        for count in (0, 1, 3):
            mine = own(comm, count, dtype)
            whole = np.zeros((comm.size, count), dtype)
            comm.Allgather(mine, whole)
            gathered = np.zeros_like(whole) if comm.rank == 2 else None
            comm.Gather(mine, gathered, root=2)
            turned = np.zeros_like(whole)
            comm.Alltoall(own(comm, comm.size * count, dtype), turned)
            part = np.zeros(count, dtype)
            comm.Scatter(own(comm, comm.size * count, dtype) if comm.rank == 1 else None, part, root=1)
            sent = mine.copy()
            comm.Bcast(sent, root=3)
            found += [whole.tolist(), None if gathered is None else gathered.tolist(), turned.tolist()]
            found += [part.tolist(), sent.tolist()]
    return found


def reductions_of_arrays(comm):
    from mpi4py import MPI

    found = []
    for dtype in DTYPES:
        for op in (MPI.SUM, MPI.PROD, *((MPI.MIN, MPI.MAX) if dtype != "complex128" else ())):
            mine, total, root = own(comm, 3, dtype), np.zeros(3, dtype), np.zeros(3, dtype)
            comm.Allreduce(mine, total, op)
            comm.Reduce(mine, root, op, root=1)
            four, block, scattered = own(comm, 8, dtype), np.zeros(2, dtype), np.zeros(2, dtype)
            comm.Reduce_scatter_block(four, block, op)
            comm.Reduce_scatter(four, scattered, [2] * 4, op)
            uneven = np.zeros(2 * comm.rank, dtype)
            comm.Reduce_scatter(own(comm, 12, dtype), uneven, [0, 2, 4, 6], op)
            later = np.zeros(3, dtype)
            comm.Iallreduce(mine, later, op).Wait()
            results = (total, root, block, scattered, uneven, later)
            found += [(dtype, result.tolist()) for result in results]
    return found


def in_place(comm):
    from mpi4py import MPI

    found = []
    for nothing in (MPI.IN_PLACE, None):
        whole, total, blocks = np.zeros((4, 2)), own(comm, 3, "int64"), own(comm, 8, "int64")
        whole[comm.rank] = own(comm, 2, "float64")
        comm.Allgather(nothing, whole)
        comm.Allreduce(nothing, total, MPI.MAX)
        comm.Reduce_scatter_block(nothing, blocks)
        turned, root = own(comm, 8, "float32"), own(comm, 3, "float64")
        comm.Alltoall(nothing, turned)
        comm.Reduce(nothing if comm.rank == 2 else root, root if comm.rank == 2 else None, root=2)
        found += [x.tolist() for x in (whole, total, blocks[:2], turned, root)]
    return found


def python_objects(comm):
    from mpi4py import MPI

    rank, array = comm.rank, own(comm, 3, "float64")
    return [
        comm.allgather({"rank": rank, "x": [rank] * rank}),
        comm.gather((rank, "a" * rank), root=3),
        comm.bcast({"from": rank} if rank == 1 else None, root=1),
        comm.scatter([10 * rank + i for i in range(4)] if rank == 2 else None, root=2),
        comm.alltoall([f"{rank} to {i}" for i in range(4)]),
        comm.allreduce([rank]),
        comm.allreduce(str(rank), op=MPI.MAX),
        comm.allreduce(rank + 1, op=MPI.PROD),
        comm.allreduce(array).tolist(),
        comm.allreduce((rank,), op=lambda a, b: b + a),
        comm.reduce(rank - 2, op=MPI.MIN, root=1),
        comm.reduce(array, root=0).tolist() if rank == 0 else comm.reduce(array, root=0),
    ]


def buffers_as_lists(comm):
    mine, whole, block = own(comm, 3, "float64"), np.full(8, -1.0), np.full(4, -1.0)
    comm.Allgather([mine, 2, "d"], [whole, 2, "d"])
    comm.Reduce_scatter_block([own(comm, 8, "float64"), "d"], [block, 2, "d"])
    scalar = np.array(0.0)
    comm.Allreduce(np.array(comm.rank + 0.5), scalar)
    return whole.tolist(), block.tolist(), scalar.item()


def memory_in_another_order(comm):
    """What travels lies in memory as it lies: a column-major array brings its columns."""
    mine, whole, other = (
        np.asfortranarray(own(comm, 6, "int64", (2, 3))),
        np.zeros((4, 2, 3), int),
        np.zeros((4, 6), int),
    )
    comm.Allgather(mine, whole)
    columns = np.zeros((6, 4), int).T
    comm.Allgather(own(comm, 6, "int64"), other)
    comm.Allgather(own(comm, 6, "int64"), columns.T)
    return whole.tolist(), other.tolist(), columns.tolist()


def splits(comm):
    """Members of groups, by their rank in comm, in order."""
    from mpi4py import MPI

    rank, found = comm.rank, []
    for color, key in (
        (rank % 2, rank),
        (rank // 2, -rank),
        (0, 0),
        (0, [3, 1, 3, 1][rank]),  # ties
        (5, (rank * 7) % 4),
        (rank, 0),
        (rank > 0, 2**31 - 1 - rank),
        (np.int64(rank % 3), np.int32(-1)),
    ):
        group = comm.Split(color, key)
        found.append((group.rank, group.size, group.allgather(rank)))
    again = comm.Split(rank < 3, -rank)
    inner = again.Split(key=again.rank, color=rank % 2)
    found.append(inner.allgather((rank, again.rank)))
    copy = inner.Dup()
    found.append(copy.allgather(rank))
    copy.Free()
    some = comm.Split(0 if rank in (1, 3) else MPI.UNDEFINED, -rank)
    found.append(some.allgather(rank) if some != MPI.COMM_NULL else "none")
    found.append(bool(some))
    comm.Barrier()
    return found


def groups_work_apart(comm):
    """Rows and columns of a 2 × 2 grid, in an order that is another on each row."""
    rows, columns = comm.Split(comm.rank // 2, comm.rank), comm.Split(comm.rank % 2, comm.rank)
    row, column, x = np.zeros(2), np.zeros(2), own(comm, 2, "float64")
    first = rows.Iallreduce(x, row)
    if comm.rank < 2:
        second = columns.Iallreduce(x, column)
        first.Wait()
    else:
        first.wait()
        second = columns.Iallreduce(x, column)
    while not second.Test():
        pass
    return row.tolist(), column.tolist()


def started_in_any_order(comm):
    """Rank 0 starts the two in one order, the others in the other: right, as they are of two communicators."""
    a, b = comm.Dup(), comm.Dup()
    x, y = own(comm, 2, "int64"), own(comm, 2, "int64") + 1
    requests = [one.Iallreduce(None, z) for one, z in ([(a, x), (b, y)] if comm.rank == 0 else [(b, y), (a, x)])]
    requests[0].Waitall(requests)
    return x.tolist(), y.tolist()


def refused(comm):
    """What both refuse, on every rank: whether an error was raised."""
    from mpi4py import MPI

    n, locked = comm.size, np.zeros(2)
    locked.flags.writeable = False
    calls = {
        "send not contiguous": lambda: comm.Allgather(np.zeros((4, 4))[:, :2], np.zeros((n, 4, 2))),
        "recv not contiguous": lambda: comm.Allgather(np.zeros(2), np.zeros((n, 4))[:, ::2]),
        "a list": lambda: comm.Allgather([1.0, 2.0], np.zeros(2 * n)),
        "a number": lambda: comm.Allreduce(1.0, np.zeros(())),
        "recv of no multiple": lambda: comm.Allgather(np.zeros(2), np.zeros(2 * n + 1)),
        "recv longer": lambda: comm.Allreduce(np.zeros(2), np.zeros(3)),
        "recv read-only": lambda: comm.Allreduce(np.zeros(2), locked),
        "one array": lambda: (lambda x: comm.Allreduce(x, x))(np.zeros(2)),
        "bool": lambda: comm.Allreduce(np.ones(2, bool), np.ones(2, bool)),
        "complex maximum": lambda: comm.Allreduce(np.ones(2, complex), np.ones(2, complex), MPI.MAX),
        "blocks of no multiple": lambda: comm.Alltoall(np.zeros(n + 1), np.zeros(n + 1)),
        "too few objects": lambda: comm.alltoall([1]),
        "a root that is none": lambda: comm.bcast(1, root=9),
        "a dtype that is no number": lambda: comm.Allreduce(np.array([None]), np.array([None])),
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
            found[name] = "nothing was raised"
        except Exception:
            found[name] = "refused"
    comm.Bcast(locked if comm.rank == 0 else np.zeros(2))  # read alone by the root
    return found


PROGRAMS = (
    blocks_of_arrays,
    reductions_of_arrays,
    in_place,
    python_objects,
    buffers_as_lists,
    memory_in_another_order,
    splits,
    groups_work_apart,
    started_in_any_order,
    refused,
)


def run_all(comm):
    """{program: what it returned, or its error}, up to the first that fails on a rank."""
    import traceback

    results = {}
    for program in PROGRAMS:
        try:
            results[program.__name__] = program(comm)
        except Exception:
            results[program.__name__] = traceback.format_exc()
            break
    return results
