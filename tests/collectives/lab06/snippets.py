"""Parts of lab 06's references that planted bugs replace, and their replacements."""

IN_TURNS = """    if comm.size == 1:
        recv[:] = send
    elif comm.rank % 2 == 0:
        comm.Send(send, dest=right)
        comm.Recv(recv, source=left)
    else:
        comm.Recv(recv, source=left)
        comm.Send(send, dest=right)
"""
# Even ranks send and odd ranks receive, then all together the other way round: with an odd number two even ranks meet.
IN_PHASES = """    if comm.size == 1:
        recv[:] = send
    elif comm.rank % 2 == 0:
        comm.Send(send, dest=right)
        comm.Barrier()
        comm.Recv(recv, source=left)
    else:
        comm.Recv(recv, source=left)
        comm.Barrier()
        comm.Send(send, dest=right)
"""
RING_STEP = "        comm.Sendrecv(data[start:stop], dest=right, recvbuf=part, source=left)\n"
EXCHANGE = "        comm.Sendrecv(blocks[dest], dest=dest, recvbuf=arriving[source], source=source)\n"
GATHER = "        comm.Sendrecv(mine, dest=right, recvbuf=next_one, source=left)\n"
HALVE = "        comm.Sendrecv(data[give], dest=rank ^ distance, recvbuf=part, source=rank ^ distance)\n"
LSTSQ = """    rows = np.column_stack([1 / seconds, nbytes / seconds])
    alpha, beta = map(float, np.linalg.lstsq(rows, np.ones(len(seconds)), rcond=None)[0])
"""
ROWS = """    for row in range(comm.size):
        if row != comm.rank:
            # Chunk r of row r is read by rank r alone, so the result may lie there.
            op(shared[comm.rank, mine], shared[row, mine], out=shared[comm.rank, mine])
"""
ALL_AT_ONCE = """    requests = []
    for dest in range(size):
        if dest != rank:
            requests.append(comm.Isend(blocks[dest], dest=dest))
    for source in range(size):
        if source != rank:
            comm.Recv(arriving[source], source=source)
    for request in requests:
        request.Wait()
"""

BOTH_RINGS = "    ring_reduce_scatter(comm, recv, op)\n    ring_allgather(comm, recv)\n"
SHIFT = "    comm.Sendrecv(send, dest=right, recvbuf=recv, source=left)\n"
ISEND = "    comm.Isend(send, dest=right)\n    comm.Recv(recv, source=left)\n"
POLYFIT = "    beta, alpha = map(float, np.polyfit(nbytes, seconds, 1, w={}))\n"
NO_GUARD = (" if fewer_vectors > 0 else math.inf", "")
