"""Right answers to lab 06 that differ from its references."""

from tests.collectives.lab06.snippets import EXCHANGE, GATHER, HALVE, IN_TURNS, LSTSQ, RING_STEP, ROWS

DIFFERENT = [
    ("ring_shift", [(IN_TURNS, "    comm.Sendrecv(send, dest=right, recvbuf=recv, source=left)\n")]),
    (
        "ring_shift",
        [
            (
                IN_TURNS,
                "    request = comm.Isend(send, dest=right)\n    comm.Recv(recv, source=left)\n    request.Wait()\n",
            )
        ],
    ),
    (
        "naive_allreduce",
        [
            (
                "        for source in range(1, comm.size):\n            comm.Recv(part, source=source)",
                "        for _ in range(1, comm.size):\n            comm.Recv(part)",
            )
        ],
    ),
    (
        "naive_allreduce",
        [("recv[:] = send", "np.copyto(recv, send)"), ("op(recv, part, out=recv)", "recv[:] = op(recv, part)")],
    ),
    (
        "ring_reduce_scatter",
        [
            (
                RING_STEP,
                "        request = comm.Irecv(part, source=left)\n"
                "        comm.Send(data[start:stop], dest=right)\n        request.Wait()\n",
            )
        ],
    ),
    # The ring goes the other way round.
    (
        "ring_reduce_scatter",
        [
            (
                "right, left = (rank + 1) % size, (rank - 1) % size",
                "left, right = (rank + 1) % size, (rank - 1) % size",
            ),
            ("rank - step - 1", "rank + step + 1"),
            ("rank - step - 2", "rank + step + 2"),
        ],
    ),
    (
        "ring_allreduce",
        [
            (
                GATHER,
                "        request = comm.Isend(mine, dest=right)\n"
                "        comm.Recv(next_one, source=left)\n        request.Wait()\n",
            )
        ],
    ),
    (
        "ring_allreduce",
        [
            (
                "right, left = (rank + 1) % size, (rank - 1) % size",
                "left, right = (rank + 1) % size, (rank - 1) % size",
            ),
            ("(rank - step) % size", "(rank + step) % size"),
            ("(rank - step - 1) % size", "(rank + step + 1) % size"),
        ],
    ),
    # Pairs: in step s ranks i and j with i + j = s exchange; a rank that meets itself rests.
    (
        "pairwise_alltoall",
        [
            (
                "    for step in range(1, size):\n        dest, source = (rank + step) % size, (rank - step) % size\n",
                "    for step in range(size):\n        dest = source = (step "
                "- rank) % size\n        if dest == rank:\n            continue\n",
            )
        ],
    ),
    ("pairwise_alltoall", [("dest, source = (rank + step)", "source, dest = (rank + step)")]),
    ("fit_cost", [(LSTSQ, "    beta, alpha = map(float, np.polyfit(nbytes, seconds, 1, w=1 / seconds))\n")]),
    ("fit_cost", [("np.column_stack([1 / seconds, nbytes / seconds])", "np.array([1 / seconds, nbytes / seconds]).T")]),
    ("shared_memory_allreduce", [(ROWS, "    shared[comm.rank, mine] = op.reduce(shared[:, mine], axis=0)\n")]),
    # The barrier at the end stands at the beginning instead.
    (
        "shared_memory_allreduce",
        [
            ("    shared[comm.rank] = send", "    comm.Barrier()\n    shared[comm.rank] = send"),
            ("    comm.Barrier()  # all have read, so the next call may write\n", ""),
        ],
    ),
    (
        "shared_memory_allreduce",
        [
            (
                ROWS,
                ROWS.replace(
                    "op(shared[comm.rank, mine], shared[row, mine], out=shared[comm.rank, mine])",
                    "shared[comm.rank, mine] = op(shared[comm.rank, mine], shared[row, mine])",
                ),
            )
        ],
    ),
    (
        "recursive_halving",
        [
            (
                HALVE,
                "        request = comm.Isend(data[give], dest=rank ^ distance)\n"
                "        comm.Recv(part, source=rank ^ distance)\n        request.Wait()\n",
            )
        ],
    ),
    ("recursive_halving", [("rank ^ distance", "(rank + distance if not rank & distance else rank - distance)")]),
    (
        "fit_cost",
        [
            (
                LSTSQ,
                """    from scipy.optimize import curve_fit
    alpha, beta = map(float, curve_fit(lambda n, a, b: 1e-6 * a + 1e-10 * b * n, nbytes, seconds, p0=(1, 1),
                                       sigma=seconds)[0] * (1e-6, 1e-10))
""",
            )
        ],
    ),
    # Many requests, which both kinds of ranks know to wait for.
    (
        "ring_shift",
        [
            (
                IN_TURNS,
                """    requests = [comm.Irecv(recv, source=left), comm.Isend(send, dest=right)]
    requests[0].Waitall(requests)
""",
            )
        ],
    ),
    # Empty messages left out, on both sides.
    (
        "recursive_halving",
        [
            (
                HALVE,
                """        requests = []
        if data[give].size:
            requests.append(comm.Isend(data[give], dest=rank ^ distance))
        if part.size:
            comm.Recv(part, source=rank ^ distance)
        for request in requests:
            request.Wait()
""",
            )
        ],
    ),
    # Other names of mpi4py's.
    (
        "ring_shift",
        [
            (
                IN_TURNS,
                """    from mpi4py import MPI
    MPI.Request.Waitall([comm.Isend(send, dest=right), comm.Irecv(recv, source=left)])
""",
            )
        ],
    ),
    (
        "ring_shift",
        [(IN_TURNS, "    recv[:] = send\n    comm.Sendrecv_replace(recv, dest=right, source=left)\n")],
    ),
    (
        "ring_shift",
        [
            (
                IN_TURNS,
                """    sent, arriving = comm.Isend(send, dest=right), comm.Irecv(recv, source=left)
    while not arriving.Test():
        pass
    sent.wait()
""",
            )
        ],
    ),
    # A buffer that is kept from call to call.
    (
        "ring_reduce_scatter",
        [
            ("def ring_reduce", "KEPT = {}\n\n\ndef ring_reduce"),
            ("np.empty_like(own)", "KEPT.setdefault((len(own), own.dtype), np.empty_like(own))"),
        ],
    ),
    # All at once, in the order of the steps and in that of the ranks; and pairs of which some are absent.
    (
        "pairwise_alltoall",
        [
            (
                EXCHANGE,
                """        requests += [comm.Irecv(arriving[source], source), comm.Isend(blocks[dest], dest)]
    for request in requests:
        request.Wait()
""",
            ),
            ("    for step", "    requests = []\n    for step"),
        ],
    ),
    (
        "pairwise_alltoall",
        [
            ("(rank + step) % size, (rank - step) % size", "rank ^ step, rank ^ step"),
            ("range(1, size)", "range(1, 1 << (size - 1).bit_length())"),
            (EXCHANGE, "        if dest < size:\n    " + EXCHANGE),
        ],
    ),
    ("fit_cost", [("return alpha, beta, crossover", "return [alpha, beta, crossover]")]),
]
