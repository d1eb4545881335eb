"""Answers to lab 06."""

from tests.unseen.answers import Answer

HALVING = '''
import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds


def recursive_halving(comm, data, op):
    rank, size = comm.rank, comm.size
    bounds = chunk_bounds(len(data), size)
    low, high = 0, size
    while high - low > 1:
        half = (high - low) // 2
        middle = low + half
        if rank < middle:
            partner, keep, give = rank + half, (low, middle), (middle, high)
        else:
            partner, keep, give = rank - half, (middle, high), (low, middle)
        mine = data[bounds[keep[0]][0] : bounds[keep[1] - 1][1]]
        theirs = data[bounds[give[0]][0] : bounds[give[1] - 1][1]]
        part = np.empty_like(mine)
        comm.Sendrecv(theirs, dest=partner, recvbuf=part, source=partner)
        op(mine, part, out=mine)
        low, high = keep
'''

NEIGHBOURS = "(comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size"
EVEN = "        comm.Send(send, dest=right)\n        comm.Recv(recv, source=left)\n"
EXCHANGE = "comm.Sendrecv(data[start:stop], dest=right, recvbuf=part, source=left)"
GATHER = "comm.Sendrecv(mine, dest=right, recvbuf=next_one, source=left)"
BLOCKS = "comm.Sendrecv(blocks[dest], dest=dest, recvbuf=arriving[source], source=source)"
ROWS = "np.column_stack([1 / seconds, nbytes / seconds])"

ANSWERS = [
    Answer("ring_shift", "no wrap round", [(NEIGHBOURS, "comm.rank + 1, comm.rank - 1")], r"rank numbers wrap around with % comm\.size: \(comm\.rank -"),
    Answer("ring_shift", "left and right swapped", [(NEIGHBOURS, "(comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size")], "the blocks travel the wrong way: each rank"),
    Answer("ring_shift", "all send first", [("comm.rank % 2 == 0", "comm.rank >= 0")], r"all ranks send first, and none receives:"),
    Answer("ring_shift", "all receive first", [("comm.rank % 2 == 0", "comm.rank < 0")], "all ranks receive first, and none sends"),
    Answer("ring_shift", "a single rank talks to itself", [("    if comm.size == 1:\n        recv[:] = send\n    elif", "    if")], "a rank that calls a blocking Send or Recv with itself"),
    Answer("ring_shift", "binds the name instead of copying", [("recv[:] = send", "recv = send")], "`recv = …` gives the name to another vector,"),
    Answer("ring_shift", "a single rank does nothing", [("recv[:] = send", "return")], "nothing was received: recv did not change"),
    Answer("ring_shift", "even ranks send to themselves", [(EVEN, EVEN.replace("dest=right", "dest=comm.rank"))], "with 2 ranks, no rank needs to send to itself"),
    Answer("ring_shift", "receives from the right", [("source=left", "source=right")], "senders and receivers do not match: the"),
    Answer("ring_shift", "sends recv on", [("        comm.Recv(recv, source=left)\n        comm.Send(send, dest=right)", "        comm.Recv(recv, source=left)\n        comm.Send(recv, dest=right)")]),
    Answer("ring_shift", "only rank 0 sends first", [("comm.rank % 2 == 0", "comm.rank == 0")], None),
    Answer("ring_shift", "Sendrecv", [("    elif comm.rank % 2 == 0:\n" + EVEN + "    else:\n        comm.Recv(recv, source=left)\n        comm.Send(send, dest=right)", "    else:\n        comm.Sendrecv(send, dest=right, recvbuf=recv, source=left)")], None),
    Answer("naive_allreduce", "the root's own vector left out", [("recv[:] = send", "recv[:] = 0")], "the root's own part is forgotten"),
    Answer("naive_allreduce", "the root's vector twice", [("            comm.Recv(part, source=source)\n", "            comm.Recv(part, source=source)\n            if source == 1:\n                op(recv, send, out=recv)\n")], "the root's own part is added twice"),
    Answer("naive_allreduce", "adds whatever op is", [("op(recv, part, out=recv)", "recv += part")], r"a sum, whatever op is: use op, not \+"),
    Answer("naive_allreduce", "op's result dropped", [("op(recv, part, out=recv)", "op(recv, part)")], "recv holds the root's own vector alone: arriving vectors"),
    Answer("naive_allreduce", "reduces into send", [("op(recv, part, out=recv)", "op(send, part, out=send)\n            recv[:] = send")], "something is written, reduced or received into"),
    Answer("naive_allreduce", "the last source forgotten", [("for source in range(1, comm.size)", "for source in range(1, comm.size - 1)")], "each of these ranks sends to the next"),
    Answer("naive_allreduce", "sends its own send back", [("comm.Send(recv, dest=dest)", "comm.Send(send, dest=dest)")], "the others do not get the finished result"),
    Answer("naive_allreduce", "result goes to no one", [("        for dest in range(1, comm.size):\n            comm.Send(recv, dest=dest)\n", "")], "the rank that the others wait for has returned too early"),
    Answer("naive_allreduce", "others receive first", [("        comm.Send(send, dest=0)\n        comm.Recv(recv, source=0)", "        comm.Recv(recv, source=0)\n        comm.Send(send, dest=0)")], "all ranks receive first, and none sends"),
    Answer("naive_allreduce", "part in float64", [("np.empty_like(send)", "np.empty(len(send))")], r"np\.empty\(n\) and np\.zeros\(n\) are float64"),
    Answer("naive_allreduce", "into recv directly", [("comm.Recv(part, source=source)", "comm.Recv(recv, source=source)")]),
    Answer("naive_allreduce", "zeros for the part and a new vector each time", [("            comm.Recv(part", "            part = np.zeros_like(send)\n            comm.Recv(part")], None),
    Answer("naive_allreduce", "op without out, copied back", [("op(recv, part, out=recv)", "recv[...] = op(recv, part)")], None),
    Answer("ring_reduce_scatter", "ends on the wrong chunk: sends its own first", [("(rank - step - 1)", "(rank - step)"), ("(rank - step - 2)", "(rank - step - 1)")], r"each rank ends with chunk rank \+ 1, not with"),
    Answer("ring_reduce_scatter", "size steps", [("range(size - 1)", "range(size)")], "one step too many, or a part of the vector that"),
    Answer("ring_reduce_scatter", "size − 2 steps", [("range(size - 1)", "range(size - 2)")], "one step is missing: N ranks need N − 1"),
    Answer("ring_reduce_scatter", "equal chunks", [("chunk_bounds(len(data), size)", "[(i * (len(data) // size), (i + 1) * (len(data) // size)) for i in range(size)]")], "take uneven chunks from chunk_bounds"),
    Answer("ring_reduce_scatter", "receives over its own chunk", [(EXCHANGE, EXCHANGE.replace("recvbuf=part", "recvbuf=own"))]),
    Answer("ring_reduce_scatter", "the same chunk sent in every step", [("bounds[(rank - step - 1) % size]", "bounds[(rank - 1) % size]")], "every step sends the same chunk"),
    Answer("ring_reduce_scatter", "overwrites instead of reducing", [("op(own, part, out=own)", "own[:] = part")], "arriving data replaces the chunk instead of"),
    Answer("ring_reduce_scatter", "np.add", [("op(own, part, out=own)", "np.add(own, part, out=own)")], r"a sum, whatever op is: use op, not \+"),
    Answer("ring_reduce_scatter", "result dropped", [("op(own, part, out=own)", "own = op(own, part)")], "data did not change: the function worked"),
    Answer("ring_reduce_scatter", "buffer of the chunk that is sent", [("np.empty_like(own)", "np.empty_like(data[start:stop])")], "two vectors of different lengths meet: chunks"),
    Answer("ring_reduce_scatter", "forwards what arrived, unreduced", [("op(own, part, out=own)", "op(data[start:stop], part, out=data[start:stop])")], "arriving data is reduced into the chunk that"),
    Answer("ring_reduce_scatter", "whole vector in each step", [(EXCHANGE, "whole = np.empty_like(data)\n        comm.Sendrecv(data, dest=right, recvbuf=whole, source=left)\n        part = whole[slice(*bounds[(rank - step - 2) % size])]")], "each step sends the whole vector, but one chunk"),
    Answer("ring_reduce_scatter", "steps from 1", [("range(size - 1)", "range(1, size)"), ("(rank - step - 1)", "(rank - step)"), ("(rank - step - 2)", "(rank - step - 1)")], None),
    Answer("ring_allreduce", "works in send", [("    recv[:] = send\n    ring_reduce_scatter(comm, recv, op)", "    ring_reduce_scatter(comm, send, op)\n    recv[:] = send")], "something is written, reduced or received into"),
    Answer("ring_allreduce", "no copy first", [("    recv[:] = send\n    ring_reduce", "    ring_reduce")], "recv is never filled: copy send into it"),
    Answer("ring_allreduce", "gathers send", [("ring_allgather(comm, recv)", "ring_allgather(comm, send)")], "something is written, reduced or received into"),
    Answer("ring_allreduce", "no all-gather", [("    ring_allgather(comm, recv)\n", "")], "only the ranks' own chunks are finished: the"),
    Answer("ring_allreduce", "gather sends its own chunk each time", [("bounds[(rank - step) % size]", "bounds[rank]")], "the all-gather sends, or receives, the same"),
    Answer("ring_allreduce", "gather goes on to the next chunk", [("bounds[(rank - step) % size]", "bounds[(rank + step) % size]"), ("bounds[(rank - step - 1) % size]", "bounds[(rank + step + 1) % size]")], "the all-gather's chunk numbers go up, but"),
    Answer("ring_allreduce", "gather a step short", [("range(size - 1)", "range(size - 2)")], "the all-gather lacks a step"),
    Answer("ring_allreduce", "gather into a copy", [("next_one = data[slice(*bounds[(rank - step - 1) % size])]", "next_one = data[slice(*bounds[(rank - step - 1) % size])].copy()")], "only the ranks' own chunks are finished: the"),
    Answer("ring_allreduce", "sends and receives swapped", [(GATHER, "comm.Sendrecv(next_one, dest=right, recvbuf=mine, source=left)")], "parts of two different chunks were combined"),
    Answer("ring_allreduce", "np.copyto", [("recv[:] = send", "import numpy as np\n    np.copyto(recv, send)")], None),
    Answer("pairwise_alltoall", "own block forgotten", [("    arriving[rank] = blocks[rank]\n", "")], "the rank's own block is missing; it needs no"),
    Answer("pairwise_alltoall", "sends its own block to all", [("comm.Sendrecv(blocks[dest]", "comm.Sendrecv(blocks[rank]")], r"the wrong block is sent, blocks\[rank\]: block"),
    Answer("pairwise_alltoall", "sends the source's block", [("comm.Sendrecv(blocks[dest]", "comm.Sendrecv(blocks[source]")], r"the wrong block is sent, blocks\[source\]:"),
    Answer("pairwise_alltoall", "receives into dest's place", [("recvbuf=arriving[source]", "recvbuf=arriving[dest]")], "the block arrives in the wrong place, number"),
    Answer("pairwise_alltoall", "source is dest", [("(rank - step) % size\n", "(rank + step) % size\n")], "senders and receivers do not match: the"),
    Answer("pairwise_alltoall", "a step short", [("range(1, size)", "range(1, size - 1)")], "one step is missing"),
    Answer("pairwise_alltoall", "everybody to rank 1 first", [("dest, source = (rank + step) % size, (rank - step) % size", "dest = source = step")], "the rank that the others wait for has returned too early"),
    Answer("pairwise_alltoall", "blocks of size elements", [("send.reshape(size, -1), recv.reshape(size, -1)", "send.reshape(-1, size), recv.reshape(-1, size)")]),
    Answer("pairwise_alltoall", "recv copied by reshape", [("recv.reshape(size, -1)", "recv.copy().reshape(size, -1)")], "recv is empty: receive into recv itself"),
    Answer("pairwise_alltoall", "backwards", [("(rank + step) % size, (rank - step) % size", "(rank - step) % size, (rank + step) % size")], None),
    Answer("fit_cost", "absolute errors", [(ROWS, "np.column_stack([np.ones_like(seconds), nbytes])"), ("np.ones(len(seconds))", "seconds")], "absolute errors were minimized, so the largest"),
    Answer("fit_cost", "polyfit", [("    rows = " + ROWS + "\n", ""), ("map(float, np.linalg.lstsq(rows, np.ones(len(seconds)), rcond=None)[0])", "map(float, np.polyfit(nbytes, seconds, 1)[::-1])")], "absolute errors were minimized, so the largest"),
    Answer("fit_cost", "alpha and beta swapped", [("alpha, beta = map", "beta, alpha = map")], "alpha and beta are swapped"),
    Answer("fit_cost", "ring sends whole vectors", [("2 * (ranks - 1) / ranks", "2 * (ranks - 1)")], r"recursive doubling sends log2\(8\) = 3 vectors"),
    Answer("fit_cost", "ring with ranks − 1 steps", [("2 * (ranks - 1) - math", "(ranks - 1) - math"), ("2 * (ranks - 1) / ranks", "(ranks - 1) / ranks")], r"the ring goes around twice: 2·\(ranks − 1\)"),
    Answer("fit_cost", "natural logarithm", [("math.log2", "math.log")], "the number of steps is the logarithm to base"),
    Answer("fit_cost", "never infinite", [(" if fewer_vectors > 0 else math.inf", "")], "on 2 ranks both send equally many bytes"),
    Answer("fit_cost", "None where never", [("else math.inf", "else None")], "on 2 ranks both send equally many bytes"),
    Answer("fit_cost", "the chunk's size returned", [("(beta * fewer_vectors)", "(beta * fewer_vectors) / ranks")], "the crossover is the size of the vector, not"),
    Answer("fit_cost", "bandwidth for beta", [("return alpha, beta, crossover", "return alpha, 1 / beta, crossover")], "beta is seconds per byte, not bytes per"),
    Answer("fit_cost", "two-point fit", [("map(float, np.linalg.lstsq(rows, np.ones(len(seconds)), rcond=None)[0])", "float(seconds[0]), float((seconds[-1] - seconds[0]) / (nbytes[-1] - nbytes[0]))")], "alpha is the shortest message's time"),
    Answer("fit_cost", "normal equations", [("map(float, np.linalg.lstsq(rows, np.ones(len(seconds)), rcond=None)[0])", "map(float, np.linalg.solve(rows.T @ rows, rows.T @ np.ones(len(seconds))))")], None),
    Answer("shared_memory_allreduce", "no barrier after writing", [("    comm.Barrier()  # all rows are there\n", "")], "a rank reduces before all ranks have written"),
    Answer("shared_memory_allreduce", "no barrier before collecting", [("    comm.Barrier()  # all chunks are reduced\n", "")], "a rank collects chunks before they are"),
    Answer("shared_memory_allreduce", "no last barrier", [("    comm.Barrier()  # all have read, so the next call may write\n", "")], "the next call wrote a row while other ranks"),
    Answer("shared_memory_allreduce", "own row twice", [("        if row != comm.rank:\n", "        if row >= 0:\n")], "the loop leaves out a row, or takes one"),
    Answer("shared_memory_allreduce", "result in row 0", [("op(shared[comm.rank, mine], shared[row, mine], out=shared[comm.rank, mine])", "op(shared[0, mine], shared[row, mine], out=shared[0, mine])"), ("row != comm.rank", "row != 0"), ("shared[rank, start:stop]", "shared[0, start:stop]")], None),
    Answer("shared_memory_allreduce", "collects only its own chunk", [("    for rank, (start, stop) in enumerate(bounds):\n        recv[start:stop] = shared[rank, start:stop]", "    recv[mine] = shared[comm.rank, mine]")], "it is not collected into recv"),
    Answer("shared_memory_allreduce", "collects from its own row", [("shared[rank, start:stop]", "shared[comm.rank, start:stop]")], "each rank collects from its own row; chunk r"),
    Answer("shared_memory_allreduce", "np.add", [("op(shared[comm.rank, mine], shared[row", "np.add(shared[comm.rank, mine], shared[row"), ("    bounds =", "    import numpy as np\n    bounds =")], r"a sum, whatever op is: use op, not \+"),
    Answer("shared_memory_allreduce", "everybody reduces everything", [("mine = slice(*bounds[comm.rank])", "mine = slice(None)")], "each rank overwrites its whole row"),
    Answer("shared_memory_allreduce", "barrier on rank 0 only", [("    comm.Barrier()  # all rows are there\n", "    if comm.rank == 0:\n        comm.Barrier()\n")], "the rank that the others wait for has returned too early"),
    Answer("shared_memory_allreduce", "reduces into send", [("    shared[comm.rank] = send\n", "    shared[comm.rank] = send\n    send[:] = 0\n")], "something is written, reduced or received into"),
    Answer("recursive_halving", "keeps the wrong half", [("(low, middle), (middle, high)", "(middle, high), (low, middle)"), ("rank - half, (middle, high), (low, middle)", "rank - half, (low, middle), (middle, high)")], "each rank keeps the half that its partner", HALVING),
    Answer("recursive_halving", "equal chunks", [("chunk_bounds(len(data), size)", "[(i * (len(data) // size), (i + 1) * (len(data) // size)) for i in range(size)]")], "take uneven chunks from chunk_bounds", HALVING),
    Answer("recursive_halving", "partner next door first", [("partner, keep, give = rank + half,", "partner, keep, give = rank ^ 1,"), ("partner, keep, give = rank - half,", "partner, keep, give = rank ^ 1,")], "rank 0 sends to rank 1, then 1; the first", HALVING),
    Answer("recursive_halving", "np.add", [("op(mine, part, out=mine)", "np.add(mine, part, out=mine)")], r"a sum, whatever op is: use op, not \+", HALVING),
    Answer("recursive_halving", "one step only", [("while high - low > 1:", "if high - low > 1:")], "a step is missing: the distance has to halve", HALVING),
    Answer("recursive_halving", "sends and keeps", [("op(mine, part, out=mine)", "mine[:] = part")], "arriving data replaces the kept half:", HALVING),
    Answer("recursive_halving", "by xor", [("partner, keep, give = rank + half,", "partner, keep, give = rank ^ half,")], None, HALVING),
]
