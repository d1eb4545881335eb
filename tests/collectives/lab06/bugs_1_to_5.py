"""Bugs planted into exercises 1 to 5 of lab 06, which send messages, each with the expected words of its check."""

from tests.collectives.lab06.snippets import (
    ALL_AT_ONCE,
    BOTH_RINGS,
    EXCHANGE,
    GATHER,
    IN_PHASES,
    IN_TURNS,
    ISEND,
    RING_STEP,
    SHIFT,
)

BUGS = [
    # ring_shift
    (
        "ring_shift",
        "all ranks send first",
        [("elif comm.rank % 2 == 0:", "elif comm.rank >= 0:")],
        "rank 0 waits to send to 1, which waits to send to 0(.|\n)*ring_shift, line(.|\n)*all ranks send first",
    ),
    (
        "ring_shift",
        "all ranks receive first",
        [("elif comm.rank % 2 == 0:", "elif comm.rank < 0:")],
        "all ranks receive first",
    ),
    ("ring_shift", "deadlocks for odd ranks", [(IN_TURNS, IN_PHASES)], "^3 ranks: a deadlock"),
    (
        "ring_shift",
        "sends to itself",
        [("    if comm.size == 1:\n        recv[:] = send\n    elif", "    if")],
        "1 rank(.|\n)*itself",
    ),
    (
        "ring_shift",
        "the wrong way",
        [
            ("(comm.rank + 1)", "(comm.rank - 1)"),
            (
                "left = (comm.rank + 1) % comm.size, (comm.rank - 1)",
                "left = (comm.rank - 1) % comm.size, (comm.rank + 1)",
            ),
        ][:1]
        + [("(comm.rank - 1) % comm.size, (comm.rank - 1)", "(comm.rank - 1) % comm.size, (comm.rank + 1)")],
        "travel the wrong way",
    ),
    (
        "ring_shift",
        "no wrap-around",
        [("right, left = (comm.rank + 1) % comm.size", "right, left = comm.rank + 1")],
        "the ranks are 0 to 1(.|\n)*% comm.size",
    ),
    ("ring_shift", "its own block", [(IN_TURNS, "    recv[:] = send\n")], "the rank's own block"),
    (
        "ring_shift",
        "a row, not a ring",
        [
            (
                IN_TURNS,
                """    if comm.rank + 1 < comm.size:
        comm.Send(send, dest=right)
    if comm.rank > 0:
        comm.Recv(recv, source=left)
""",
            )
        ],
        "nothing was received",
    ),
    (
        "ring_shift",
        "passed on until the end",
        [
            (
                IN_TURNS,
                """    recv[:] = send
    for _ in range(comm.size + 1):
        comm.Sendrecv(recv.copy(), dest=right, recvbuf=recv, source=left)
""",
            )
        ],
        "one each is enough",
    ),
    ("ring_shift", "never waited for", [(IN_TURNS, ISEND)], "Isend to 1 is never waited for .and 1 more.(.|\n)*until"),
    (
        "ring_shift",
        "never waited for, and overwritten",
        [(IN_TURNS, ISEND + "    send = send.copy()\n")],
        "Isend to 1 is never waited for",
    ),
    (
        "ring_shift",
        "never waited for what arrives",
        [
            (
                IN_TURNS,
                """    comm.Irecv(recv, source=left, tag=1)
    part = recv.copy()
    comm.Sendrecv(send, dest=right, recvbuf=part, source=left)
    recv[:] = part
""",
            )
        ],
        "Irecv from 1 is never waited for",
    ),
    (
        "ring_shift",
        "an Irecv takes the message",
        [
            (
                IN_TURNS,
                """    comm.Irecv(recv, source=left)
"""
                + SHIFT,
            )
        ],
        "into the same memory: rank 0: Irecv from 1 is not waited for yet(.|\n)*or Wait first",
    ),
    (
        "ring_shift",
        "as float32",
        [
            (
                IN_TURNS,
                """    import numpy as np
    sent, part = send.astype(np.float32), np.empty(len(recv), np.float32)
    comm.Sendrecv(sent, dest=right, recvbuf=part, source=left)
    recv[:] = part
""",
            )
        ],
        "beyond 2..53: rank 0's result, element (.|\n)* got 1\\d{18}, expected 1\\d{18}\nLikely cause: (.|\n)*float32",
    ),
    (
        "ring_shift",
        "as float64",
        [
            (
                IN_TURNS,
                """    sent, part = send.astype(float), recv.astype(float)
    comm.Sendrecv(sent, dest=right, recvbuf=part, source=left)
    recv[:] = part
""",
            )
        ],
        "beyond 2..53(.|\n)*as float64",
    ),
    (
        "ring_shift",
        "in pairs",
        [("(comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size", "comm.rank ^ 1, comm.rank ^ 1")],
        "^4 ranks(.|\n)*two ranks each exchange",
    ),
    (
        "ring_shift",
        "send and recv swapped",
        [(IN_TURNS, "    comm.Sendrecv(recv, dest=right, recvbuf=send, source=left)\n")],
        "send was overwritten, and recv did not change(.|\n)*swapped",
    ),
    (
        "ring_shift",
        "two tags",
        [(IN_TURNS, SHIFT.replace("dest=right", "dest=right, sendtag=1, recvtag=2"))],
        "waits to send to 1 .tag 1. and for a message from 1 .tag 2; one with tag 1 is there.(.|\n)*the tags of",
    ),
    (
        "ring_shift",
        "dest and source the same",
        [(IN_TURNS, SHIFT.replace("=left", "=right"))],
        "^4 ranks(.|\n)*rank 0 waits to send to 1 and for a message from 1 .which sends to 2.(.|\n)*do not match",
    ),
    (
        "ring_shift",
        "−1",
        [("(comm.rank - 1) % comm.size", "comm.rank - 1")],
        "source is -1, but(.|\n)*to Open MPI",
    ),
    (
        "ring_shift",
        "a new recv",
        [(IN_TURNS, "    recv = send.copy()\n" + SHIFT)],
        "`recv = …` gives the name to another vector",
    ),
    (
        "ring_shift",
        "returned",
        [
            (
                IN_TURNS,
                SHIFT.replace("recvbuf=recv", "recvbuf=arrived").join(
                    ["    arrived = send.copy()\n", "    return arrived\n"]
                ),
            )
        ],
        "the result is returned; store it in recv",
    ),
    (
        "ring_shift",
        "the receivers look the wrong way",
        [("comm.Recv(recv, source=left)", "comm.Recv(recv, source=right)")],
        "^4 ranks: a deadlock(.|\n)*senders and receivers do not match",
    ),
    # naive_allreduce
    ("naive_allreduce", "the root forgets itself", [("recv[:] = send", "recv[:] = 0")], "root's own part is forgotten"),
    (
        "naive_allreduce",
        "the root counts twice",
        [
            ("part = np.empty_like(send)", "part = send.copy()"),
            ("        for source", "        op(recv, part, out=recv)\n        for source"),
        ],
        "own part is added twice",
    ),
    ("naive_allreduce", "MAX as SUM", [("op(recv, part, out=recv)", "recv += part")], "a sum, whatever op is"),
    (
        "naive_allreduce",
        "starts from zeros",
        [("recv[:] = send", "recv[:] = 0; op(recv, send, out=recv)")],
        "it includes a zero",
    ),
    (
        "naive_allreduce",
        "never sent back",
        [("            comm.Send(recv, dest=dest)", "            pass"), ("        comm.Recv(recv, source=0)\n", "")],
        "not sent back",
    ),
    ("naive_allreduce", "nobody waits for it", [("        comm.Recv(recv, source=0)\n", "")], "which has ended"),
    (
        "naive_allreduce",
        "the last rank forgotten",
        [("range(1, comm.size):\n            comm.Recv", "range(1, comm.size - 1):\n            comm.Recv")],
        "deadlock: rank",
    ),
    (
        "naive_allreduce",
        "receives from itself",
        [("for source in range(1, ", "for source in range(0, ")],
        "waits for a message from 0, itself",
    ),
    (
        "naive_allreduce",
        "each vector replaces the one before",
        [("op(recv, part, out=recv)", "recv[:] = part")],
        "replaces the one before",
    ),
    (
        "naive_allreduce",
        "send overwritten",
        [
            ("recv[:] = send", "recv[:] = send; mine = send"),
            ("op(recv, part, out=recv)", "op(mine, part, out=mine)"),
            ("comm.Send(recv, dest=dest)", "comm.Send(mine, dest=dest)"),
            ("        for dest", "        recv[:] = mine\n        for dest"),
        ],
        "send was overwritten",
    ),
    (
        "naive_allreduce",
        "everybody is told twice",
        [
            ("            comm.Send(recv, dest=dest)", "            comm.Send(recv, dest=dest)\n" * 2),
            ("        comm.Recv(recv, source=0)\n", "        comm.Recv(recv, source=0)\n" * 2),
        ],
        "expected 32,000",
    ),
    (
        "naive_allreduce",
        "op's result goes nowhere",
        [("op(recv, part, out=recv)", "op(recv, part)")],
        "recv holds the root's own vector alone",
    ),
    (
        "naive_allreduce",
        "never waited for",
        [("comm.Send(recv, dest=dest)", "comm.Isend(recv, dest=dest)")],
        "rank 0: Isend to 1 is never waited for",
    ),
    ("naive_allreduce", "an empty recv", [("        recv[:] = send\n", "")], "before its own vector is in it"),
    (
        "naive_allreduce",
        "COMM_WORLD",
        [("    if comm.rank", "    from mpi4py import MPI\n    comm = MPI.COMM_WORLD\n    if comm.rank")],
        "COMM_WORLD is used instead of the argument",
    ),
    (
        "naive_allreduce",
        "the result reduced once more",
        [
            (
                "        comm.Recv(recv, source=0)\n",
                "        comm.Recv(recv, source=0)\n        op(recv, send, out=recv)\n",
            )
        ],
        "the others reduce the finished result again",
    ),
    (
        "naive_allreduce",
        "the last rank's vector left where it is",
        [("for source in range(1, comm.size):", "for source in range(1, comm.size - 1):")],
        "none of them receives: a Recv is missing",
    ),
    (
        "naive_allreduce",
        "a float64 part",
        [("np.empty_like(send)", "np.empty(len(send))")],
        "np.zeros.n. are float64, whatever",
    ),
    (
        "naive_allreduce",
        "all into one buffer",
        [
            (
                "        for source in range(1, comm.size):\n            comm.Recv(part, source=source)",
                "        for one in [comm.Irecv(part, source=s) for s in range(1, comm.size)]:\n            one.Wait()",
            )
        ],
        "a second message is received into the same memory: rank 0: Irecv from 1",
    ),
    # ring_reduce_scatter
    (
        "ring_reduce_scatter",
        "chunk index off by one",
        [("rank - step - 1", "rank - step"), ("rank - step - 2", "rank - step - 1")],
        r"chunk rank \+ 1, not with its own",
    ),
    (
        "ring_reduce_scatter",
        "off by one the other way",
        [("rank - step - 2", "rank - step - 3"), ("rank - step - 1", "rank - step - 2")],
        "chunk rank − 1, not with its own",
    ),
    (
        "ring_reduce_scatter",
        "receives what it sends",
        [("rank - step - 2", "rank - step - 1")],
        "into the chunk that was just sent",
    ),
    (
        "ring_reduce_scatter",
        "the last uneven chunk lost",
        [
            (
                "chunk_bounds(len(data), size)",
                "[(i * (len(data) // size), (i + 1) * (len(data) // size)) for i in range(size)]",
            )
        ],
        "n // size lose the last",
    ),
    (
        "ring_reduce_scatter",
        "all chunks of the first one's length",
        [("np.empty_like(own)", "np.empty_like(data[:len(data) // size])")],
        "may differ by one|message truncated",
    ),
    ("ring_reduce_scatter", "one step is missing", [("range(size - 1)", "range(size - 2)")], "one step is missing"),
    (
        "ring_reduce_scatter",
        "one step too many",
        [("range(size - 1)", "range(size)")],
        "Likely cause: one step too many",
    ),
    ("ring_reduce_scatter", "nothing is reduced", [("op(own, part, out=own)", "op(own, part)")], "data did not change"),
    ("ring_reduce_scatter", "the part replaces", [("op(own, part, out=own)", "own[:] = part")], "replaces the chunk"),
    ("ring_reduce_scatter", "MAX as SUM", [("op(own, part, out=own)", "own += part")], "a sum, whatever op is"),
    (
        "ring_reduce_scatter",
        "the wrong way around",
        [("right, left = (rank + 1) % size, (rank - 1) % size", "left, right = (rank + 1) % size, (rank - 1) % size")],
        "the wrong way around",
    ),
    (
        "ring_reduce_scatter",
        "the same chunk in each step",
        [("rank - step - 1", "rank - 1")],
        "every step sends the same chunk",
    ),
    (
        "ring_reduce_scatter",
        "the whole vector travels",
        [
            ("        part = np.empty_like(own)\n", "        part = np.empty_like(data)\n"),
            ("comm.Sendrecv(data[start:stop],", "comm.Sendrecv(data,"),
            ("op(own, part, out=own)", "op(own, part[slice(*bounds[(rank - step - 2) % size])], out=own)"),
        ],
        "sends the whole vector",
    ),
    (
        "ring_reduce_scatter",
        "Send, then Recv",
        [(RING_STEP, "        comm.Send(data[start:stop], dest=right)\n        comm.Recv(part, source=left)\n")],
        "all ranks send first",
    ),
    (
        "ring_reduce_scatter",
        "changed while it is sent",
        [
            (
                RING_STEP,
                "        request = comm.Isend(data[start:stop], dest=right)\n        data[start:stop] = 0\n"
                "        comm.Recv(part, source=left)\n        request.Wait()\n",
            )
        ],
        "send buffer overwritten",
    ),
    (
        "ring_reduce_scatter",
        "only works for powers of two",
        [("(rank + 1) % size, (rank - 1) % size", "rank ^ 1, rank ^ 1")],
        "% comm.size; rank . step only works",
    ),
    ("ring_reduce_scatter", "receives into the vector", [("recvbuf=part", "recvbuf=data[start:stop]")], "overlap"),
    (
        "ring_reduce_scatter",
        "never waited for",
        [(RING_STEP, "        comm.Isend(data[start:stop], dest=right)\n        comm.Recv(part, source=left)\n")],
        "is never waited for",
    ),
    (
        "ring_reduce_scatter",
        "as float32",
        [
            ("np.empty_like(own)", "np.empty(len(own), np.float32)"),
            ("data[start:stop],", "data[start:stop].astype(np.float32),"),
        ],
        "sent 96 bytes in all, half of 192: the elem",
    ),
    (
        "ring_reduce_scatter",
        "straight to the owner",
        [
            (
                "    for step in range(size - 1):\n        start, stop = bounds[(rank - step - 1) % size]\n"
                "        own = "
                "data[slice(*bounds[(rank - step - 2) % size])]\n",
                "    for step in range(1, size):\n        right, left = "
                "(rank + step) % size, (rank - step) % size\n        start, stop = bounds[right]\n        own = "
                "data[slice(*bounds[rank])]\n",
            )
        ],
        "rank 0 sends to rank 2; around a ring(.|\n)*ranks 4 and 1",
    ),
    (
        "ring_reduce_scatter",
        "empty chunks left out",
        [
            (
                RING_STEP,
                """        if start < stop:
            comm.Sendrecv(data[start:stop], dest=right, recvbuf=part, source=left)
""",
            )
        ],
        "^4 ranks, 2 elements(.|\n)*left a message out|^4 ranks, 2 elements(.|\n)*deadlock",
    ),
    (
        "ring_reduce_scatter",
        "in a copy",
        [
            (
                "    rank, size = comm.rank, comm.size\n",
                "    data = data.copy()\n    rank, size = comm.rank, comm.size\n",
            )
        ],
        "data did not change",
    ),
    (
        "ring_reduce_scatter",
        "op's result under the same name",
        [("op(own, part, out=own)", "own = op(own, part)")],
        "worked on a copy, or did not write op's result back",
    ),
    (
        "ring_reduce_scatter",
        "twice round",
        [("range(size - 1)", "range(2 * (size - 1))")],
        "sent 128 bytes in 4 messages, 64 are needed(.|\n)*cause: one step too many",
    ),
    (
        "ring_reduce_scatter",
        "tags of the steps",
        [("dest=right, recvbuf=part,", "dest=right, sendtag=step, recvbuf=part, recvtag=step + 1,")],
        "one with tag 0 is there(.|\n)*a different tag",
    ),
    (
        "ring_reduce_scatter",
        "its first parts alone",
        [
            ("    rank, size = comm.rank, comm.size\n", "    rank, size, begun = comm.rank, comm.size, data.copy()\n"),
            ("Sendrecv(data[start:stop]", "Sendrecv(begun[start:stop]"),
        ],
        "each step sends the rank's original data",
    ),
    (
        "ring_reduce_scatter",
        "indices beyond the last chunk",
        [("(rank - step - 1) % size", "rank + step - 1"), ("(rank - step - 2) % size", "rank + step")],
        "list index out of range(.|\n)*numbers of chunks and ranks wrap around",
    ),
    (
        "ring_reduce_scatter",
        "a float64 copy",
        [
            (
                "    rank, size = comm.rank, comm.size\n",
                "    rank, size, data, result = comm.rank, comm.size, data.astype(float), data\n",
            ),
            ("        op(own, part, out=own)\n", "        op(own, part, out=own)\n    result[:] = data\n"),
        ],
        "an intermediate vector is float64",
    ),
    # ring_allreduce
    (
        "ring_allreduce",
        "all-gather off by one",
        [("(rank - step) % size", "(rank - step + 1) % size"), ("(rank - step - 1) % size", "(rank - step) % size")],
        "the all-gather writes into them|unfinished chunks",
    ),
    (
        "ring_allreduce",
        "the same chunk in each step",
        [("(rank - step) % size", "rank")],
        "the same chunk in every step",
    ),
    ("ring_allreduce", "no all-gather", [("    ring_allgather(comm, recv)\n", "")], "only the ranks' own chunks"),
    (
        "ring_allreduce",
        "all-gather into a copy",
        [("recvbuf=next_one", "recvbuf=next_one.copy()")],
        "only the ranks' own chunks",
    ),
    (
        "ring_allreduce",
        "no reduce-scatter",
        [("    ring_reduce_scatter(comm, recv, op)\n", "")],
        "even the ranks' own",
    ),
    (
        "ring_allreduce",
        "works in send",
        [("ring_reduce_scatter(comm, recv", "ring_reduce_scatter(comm, send")],
        "send was overwritten",
    ),
    (
        "ring_allreduce",
        "recv is another name for send",
        [("    recv[:] = send\n", "    recv = send\n")],
        "send was overwritten",
    ),
    ("ring_allreduce", "recv never filled", [("    recv[:] = send\n", "")], "recv is never filled"),
    ("ring_allreduce", "one step is missing", [("range(size - 1)", "range(size - 2)")], "lacks a step|only the ranks"),
    ("ring_allreduce", "one step too many", [("range(size - 1)", "range(size)")], "Likely cause: one step too many"),
    (
        "ring_allreduce",
        "the last uneven chunk lost",
        [
            (
                "chunk_bounds(len(data), size)",
                "[(i * (len(data) // size), (i + 1) * (len(data) // size)) for i in range(size)]",
            )
        ],
        "n // size lose the last",
    ),
    (
        "ring_allreduce",
        "sums a chunk twice",
        [
            (
                GATHER,
                "        part = next_one.copy()\n        comm.Sendrecv(mine, dest=right, recvbuf=part, source=left)\n"
                "        next_one += part\n",
            )
        ],
        "it must not be reduced again",
    ),
    (
        "ring_allreduce",
        "Recv, then Send",
        [(GATHER, "        comm.Recv(next_one, source=left)\n        comm.Send(mine, dest=right)\n")],
        "all ranks receive first",
    ),
    (
        "ring_allreduce",
        "reduce-scatter twice",
        [("    ring_reduce_scatter(comm, recv, op)\n", "    ring_reduce_scatter(comm, recv, op)\n" * 2)],
        "the reduce-scatter runs twice",
    ),
    (
        "ring_allreduce",
        "the wrong order",
        [(BOTH_RINGS, "    ring_allgather(comm, recv)\n    ring_reduce_scatter(comm, recv, op)\n")],
        "the all-gather runs before the reduce-scatter",
    ),
    (
        "ring_allreduce",
        "the naive one",
        [
            (
                BOTH_RINGS,
                """    from labs_helpers.collectives.lab06.exercises import naive_allreduce
    naive_allreduce(comm, send, recv, op)
""",
            )
        ],
        r"^3 ranks(.|\n)*sent \[192, 96, 96\] bytes; round(.|\n)*here 128 bytes\nLikely cause: the naive all-reduce",
    ),
    (
        "ring_allreduce",
        "straight to everybody",
        [
            ("(rank - step) % size", "rank"),
            ("        mine", "        right, left = (rank + step + 1) % size, (rank - step - 1) % size\n        mine"),
        ],
        "rank 0 sends to rank 2; around",
    ),
    (
        "ring_allreduce",
        "never waited for",
        [(GATHER, "        comm.Isend(mine, dest=right)\n        comm.Recv(next_one, source=left)\n")],
        "is never waited for",
    ),
    (
        "ring_allreduce",
        "upward",
        [("(rank - step) % size", "(rank + step) % size"), ("(rank - step - 1) % size", "(rank + step + 1) % size")],
        "chunk numbers go up, but chunks travel to the right",
    ),
    (
        "ring_allreduce",
        "in float64",
        [
            ("    recv[:] = send\n", "    result, recv = recv, send.astype(float)\n"),
            (BOTH_RINGS, BOTH_RINGS + "    result[:] = recv\n"),
        ],
        "an intermediate vector is float64",
    ),
    # pairwise_alltoall
    (
        "pairwise_alltoall",
        "own block forgotten",
        [("    arriving[rank] = blocks[rank]\n", "")],
        "the rank's own block is missing",
    ),
    (
        "pairwise_alltoall",
        "works only for powers of two",
        [("(rank + step) % size, (rank - step) % size", "rank ^ step, rank ^ step")],
        "only works for powers of two",
    ),
    (
        "pairwise_alltoall",
        "deadlocks where both send first",
        [
            (
                EXCHANGE,
                """        if rank % 2:
            comm.Recv(arriving[source], source=source)
            comm.Send(blocks[dest], dest=dest)
        else:
            comm.Send(blocks[dest], dest=dest)
            comm.Recv(arriving[source], source=source)
""",
            )
        ],
        "4 ranks(.|\n)*deadlock",
    ),
    (
        "pairwise_alltoall",
        "its own block to everybody",
        [("comm.Sendrecv(blocks[dest]", "comm.Sendrecv(blocks[rank]")],
        "the wrong block is sent",
    ),
    ("pairwise_alltoall", "blocks in the wrong place", [("arriving[source]", "arriving[dest]")], "in the wrong place"),
    (
        "pairwise_alltoall",
        "one step is missing",
        [("range(1, size)", "range(1, size - 1)")],
        "never written, expected(.|\n)*one step is missing",
    ),
    ("pairwise_alltoall", "a message to itself", [("range(1, size)", "range(size)")], "sends itself a message"),
    ("pairwise_alltoall", "steps that do not fit", [("(rank - step) % size", "(rank + step) % size")], "deadlock"),
    (
        "pairwise_alltoall",
        "columns for rows",
        [("send.reshape(size, -1)", "send.reshape(-1, size).T")],
        "a transposed or sliced view",
    ),
    (
        "pairwise_alltoall",
        "everybody sends to 0 first",
        [
            (
                "    for step in range(1, size):\n        dest, source = "
                "(rank + step) % size, (rank - step) % size\n" + EXCHANGE,
                ALL_AT_ONCE,
            )
        ],
        "queue up there",
    ),
    (
        "pairwise_alltoall",
        "everything to everybody",
        [
            (
                EXCHANGE,
                """        everything = np.empty_like(send)
        comm.Sendrecv(send, dest=dest, recvbuf=everything, source=source)
        arriving[source] = everything.reshape(size, -1)[rank]
""",
            ),
            ("def pairwise", "import numpy as np\ndef pairwise"),
        ],
        "3 messages of 64, 64, 64 bytes; a block for each other rank makes 3 of 16(.|\n)*all blocks are sent to all",
    ),
    (
        "pairwise_alltoall",
        "never waited for",
        [
            (
                EXCHANGE,
                "        comm.Isend(blocks[dest], dest=dest)\n        comm.Recv(arriving[source], source=source)\n",
            )
        ],
        "is never waited for",
    ),
    (
        "pairwise_alltoall",
        "source is dest",
        [("source=source", "source=dest"), ("arriving[source]", "arriving[dest]")],
        "rank 0 waits to send to 1 and for a message from 1 .which sends to 2.(.|\n)*do not match",
    ),
    (
        "pairwise_alltoall",
        "columns",
        [
            (
                "send.reshape(size, -1), recv.reshape(size, -1)",
                "send.reshape(-1, size).T.copy(), np.empty((size, len(recv) // size))",
            ),
            (EXCHANGE, EXCHANGE + "    recv.reshape(-1, size)[:] = arriving.T\n"),
            ("def pairwise", "import numpy as np\ndef pairwise"),
        ],
        "element 1:\n  got rank 1's block 0, element 0, expected rank 0's block 0, element 1\n(.|\n)*columns",
    ),
    (
        "pairwise_alltoall",
        "float32",
        [
            (
                EXCHANGE,
                """        part = np.empty(len(recv) // size, np.float32)
        comm.Sendrecv(blocks[dest].astype(np.float32), dest=dest, recvbuf=part, source=source)
        arriving[source] = part
""",
            ),
            ("def pairwise", "import numpy as np\ndef pairwise"),
        ],
        "rank 0 sends 3 messages of 8, 8, 8 bytes; a block for each other rank makes 3 of 16$",
    ),
    (
        "pairwise_alltoall",
        "an empty message more",
        [
            (
                EXCHANGE,
                EXCHANGE + "    comm.Sendrecv(send[:0], dest=(rank + 1) % size, recvbuf=recv[:0], "
                "source=(rank - 1) % size)\n",
            )
        ],
        "rank 0 sends 4 messages of 16, 16, 16, 0 bytes; a block for each other rank makes 3 of 16$",
    ),
    (
        "pairwise_alltoall",
        "a part of float64",
        [
            (
                EXCHANGE,
                """        part = np.empty(len(recv) // size)
        comm.Sendrecv(blocks[dest], dest=dest, recvbuf=part, source=source)
        arriving[source] = part
""",
            ),
            ("def pairwise", "import numpy as np\ndef pairwise"),
        ],
        "np.zeros.n. are float64, whatever",
    ),
    (
        "pairwise_alltoall",
        "always to the right",
        [
            (
                EXCHANGE,
                EXCHANGE.replace("dest=dest", "dest=(rank + 1) % size").replace(
                    "source=source", "source=rank - 1 if rank else size - 1"
                ),
            )
        ],
        "every step sends to the same rank",
    ),
    (
        "pairwise_alltoall",
        "both blocks swapped",
        [(EXCHANGE, EXCHANGE.replace("blocks[dest]", "blocks[source]").replace("arriving[source]", "arriving[dest]"))],
        r"blocks.source.: block `dest` is for rank dest; the block arrives in the wrong place, number `dest`",
    ),
    # classes of mistakes that are found by recomputation
    (
        "ring_reduce_scatter",
        "chunk numbers go up",
        [("(rank - step - 1)", "(rank + step - 1)"), ("(rank - step - 2)", "(rank + step - 2)")],
        "the chunk numbers go up",
    ),
    (
        "ring_reduce_scatter",
        "into one chunk",
        [("rank - step - 2", "rank - 2")],
        "every step reduces into the same chunk",
    ),
    (
        "ring_allreduce",
        "send copied last",
        [
            ("    recv[:] = send\n    ring_reduce", "    ring_reduce"),
            ("    ring_allgather(comm, recv)\n", "    ring_allgather(comm, recv)\n    recv[:] = send\n"),
        ],
        "comes last, and overwrites the result",
    ),
    (
        "pairwise_alltoall",
        "placed by step",
        [("arriving[source]", "arriving[step]")],
        "in the wrong place, number `step`",
    ),
    (
        "pairwise_alltoall",
        "own block first",
        [("arriving[rank] = ", "arriving[0] = ")],
        "own block is stored in the wrong place",
    ),
    (
        "pairwise_alltoall",
        "into a copy",
        [("recv.reshape(size, -1)", "recv.reshape(size, -1).copy()")],
        "recv is empty",
    ),
]
