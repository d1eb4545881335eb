"""Bugs planted into exercises 6 to 8 of lab 06 (cost, shared memory, halving), each with the expected words of its
check."""

from tests.collectives.lab06.snippets import HALVE, LSTSQ, NO_GUARD, POLYFIT, ROWS

BUGS = [
    # fit_cost
    (
        "fit_cost",
        "absolute errors",
        [(LSTSQ, "    beta, alpha = map(float, np.polyfit(nbytes, seconds, 1))\n")],
        "so the largest messages decide",
    ),
    (
        "fit_cost",
        "logarithms",
        [
            (
                LSTSQ,
                "    beta, alpha = np.polyfit(np.log(nbytes), np.log(seconds), 1)\n"
                "    alpha, beta = float(np.exp(alpha)), float(beta)\n",
            )
        ],
        "in logarithms",
    ),
    ("fit_cost", "bytes per second", [("return alpha, beta", "return alpha, 1 / beta")], "not bytes per second"),
    ("fit_cost", "half", [("return alpha, beta", "return alpha / 2, beta / 2")], "already those of one message"),
    (
        "fit_cost",
        "elements",
        [("np.column_stack([1 / seconds, nbytes / seconds])", "np.column_stack([1 / seconds, nbytes / 8 / seconds])")],
        "not elements",
    ),
    ("fit_cost", "swapped", [("return alpha, beta", "return beta, alpha")], "swapped"),
    (
        "fit_cost",
        "one ring",
        [
            ("more_messages = 2 * (ranks - 1)", "more_messages = (ranks - 1)"),
            ("- 2 * (ranks - 1) / ranks", "- (ranks - 1) / ranks"),
        ],
        "goes around twice",
    ),
    (
        "fit_cost",
        "whole vectors round the ring",
        [("- 2 * (ranks - 1) / ranks", "- 2 * (ranks - 1)"), (" if fewer_vectors > 0 else math.inf", "")],
        "sends a chunk",
    ),
    ("fit_cost", "natural logarithm", [("math.log2", "math.log")], "to base 2"),
    ("fit_cost", "2 ranks", [(" if fewer_vectors > 0 else math.inf", "")], "2 ranks|ZeroDivisionError"),
    (
        "fit_cost",
        "two numbers",
        [("return alpha, beta, crossover", "return alpha, beta")],
        r"expected \(alpha, beta, crossover\)",
    ),
    (
        "fit_cost",
        "roots as weights",
        [(LSTSQ, POLYFIT.format("1 / np.sqrt(seconds)"))],
        "squares of the relative errors(.|\n)*sum up to 0.0178; the least possible is 0.00718(.|\n)*squares w as well",
    ),
    (
        "fit_cost",
        "two points",
        [
            (
                LSTSQ,
                """    beta = float((seconds[-1] - seconds[0]) / (nbytes[-1] - nbytes[0]))
    alpha = float(seconds[0] - beta * nbytes[0])
""",
            )
        ],
        "sum up to (.|\n)*only through the first and the last point",
    ),
    ("fit_cost", "weights of the sizes", [(LSTSQ, POLYFIT.format("1 / nbytes"))], "sum up to (.|\n)*divided by nbytes"),
    (
        "fit_cost",
        "seconds overwritten",
        [(LSTSQ, "    seconds **= -1\n" + LSTSQ.replace("1 / seconds, nbytes /", "seconds, nbytes *"))],
        "seconds was overwritten: element 0 was 2.0008e-06 and is",
    ),
    (
        "fit_cost",
        "0 for never",
        [("else math.inf", "else 0")],
        "crossover is 0, expected inf\nLikely cause: on 2 ranks both",
    ),
    ("fit_cost", "divides by zero", [NO_GUARD], "ZeroDivisionError(.|\n)*line(.|\n)*on 2 ranks both"),
    ("fit_cost", "natural logarithm, no guard", [("math.log2", "math.log"), NO_GUARD], "Likely cause(.|\n)*to base 2"),
    (
        "fit_cost",
        "a chunk",
        [("return alpha, beta, crossover", "return alpha, beta, crossover / ranks")],
        "not of one of its chunks",
    ),
    ("fit_cost", "megabytes", [("return alpha, beta,", "return alpha, 1e6 * beta,")], "not per megabyte"),
    ("fit_cost", "a sign", [("return alpha, beta, crossover", "return alpha, beta, -crossover")], "wrong sign"),
    (
        "fit_cost",
        "the shortest time",
        [("return alpha, beta, crossover", "return seconds.min(), beta, crossover")],
        "alpha is the shortest message's time",
    ),
    # shared_memory_allreduce
    (
        "shared_memory_allreduce",
        "rows never written",
        [("    shared[comm.rank] = send\n", "")],
        "at no barrier is a rank's vector in its row",
    ),
    (
        "shared_memory_allreduce",
        "in float64",
        [(ROWS, "    shared[comm.rank, mine] = op.reduce(shared[:, mine].astype(float), axis=0)\n")],
        "an intermediate vector is float64",
    ),
    (
        "shared_memory_allreduce",
        "into all rows, and no barrier",
        [
            (ROWS, "    shared[:, mine] = op.reduce(shared[:, mine], axis=0)\n"),
            ("    comm.Barrier()  # all chunks are reduced\n", ""),
        ],
        "collects chunks before they are reduced",
    ),
    (
        "shared_memory_allreduce",
        "no barrier after writing",
        [("    comm.Barrier()  # all rows are there\n", "")],
        "before all ranks have written their rows",
    ),
    (
        "shared_memory_allreduce",
        "no barrier after reducing",
        [("    comm.Barrier()  # all chunks are reduced\n", "")],
        "collects chunks before they are reduced",
    ),
    (
        "shared_memory_allreduce",
        "no barrier at the end",
        [("    comm.Barrier()  # all have read, so the next call may write\n", "")],
        "barrier is missing at the end",
    ),
    (
        "shared_memory_allreduce",
        "a barrier of one",
        [("    comm.Barrier()  # all chunks", "    if comm.rank == 0:\n        comm.Barrier()  # all chunks")],
        "a deadlock",
    ),
    (
        "shared_memory_allreduce",
        "everybody reduces everything",
        [(ROWS, "    reduced = op.reduce(shared, axis=0)\n    comm.Barrier()\n    shared[comm.rank] = reduced\n")],
        "every rank reduces the whole vector",
    ),
    (
        "shared_memory_allreduce",
        "MAX as SUM",
        [(ROWS, "    shared[comm.rank, mine] = shared[:, mine].sum(0)\n")],
        "a sum, whatever op is",
    ),
    (
        "shared_memory_allreduce",
        "a row left out",
        [("range(comm.size):\n        if", "range(1, comm.size):\n        if")],
        "no other row was reduced into it",
    ),
    (
        "shared_memory_allreduce",
        "its own row twice",
        [("        if row != comm.rank:\n", "        if True:\n")],
        "leaves out a row, or takes one twice",
    ),
    (
        "shared_memory_allreduce",
        "collects its own row",
        [("shared[rank, start:stop]", "shared[comm.rank, start:stop]")],
        "collects from its own row",
    ),
    (
        "shared_memory_allreduce",
        "the last uneven chunk lost",
        [
            (
                "chunk_bounds(len(send), comm.size)",
                "[(i * (len(send) // comm.size), (i + 1) * (len(send) // comm.size)) for i in range(comm.size)]",
            )
        ],
        "n // size lose the last",
    ),
    (
        "shared_memory_allreduce",
        "reduces into send",
        [
            (
                "op(shared[comm.rank, mine], shared[row, mine], out=shared[comm.rank, mine])",
                "op(send[mine], shared[row, mine], out=send[mine])",
            ),
            (
                "    comm.Barrier()  # all chunks",
                "    shared[comm.rank, mine] = send[mine]\n    comm.Barrier()  # all chunks",
            ),
        ],
        "send was overwritten",
    ),
    (
        "shared_memory_allreduce",
        "whole rows overwritten",
        [(ROWS, "    shared[comm.rank] = op.reduce(shared, axis=0)\n")],
        "its whole row, which the others still read",
    ),
    (
        "shared_memory_allreduce",
        "collects row 0",
        [("shared[rank, start:stop]", "shared[0, start:stop]")],
        "chunk 1 lies finished in row 1 of shared, and was not",
    ),
    (
        "shared_memory_allreduce",
        "into row 0",
        [(ROWS, "    shared[0, mine] = op.reduce(shared[:, mine], axis=0)\n")],
        "chunk 1 lies finished in row 0 of shared, and is collected from another",
    ),
    # recursive_halving
    (
        "recursive_halving",
        "the nearest partner first",
        [
            ("first, distance = 0, comm.size // 2", "first, distance, span = 0, 1, comm.size // 2"),
            ("    while distance:", "    while distance < comm.size:"),
            ("bounds[first + distance - 1]", "bounds[first + span - 1]"),
            ("bounds[first + distance]", "bounds[first + span]"),
            ("bounds[first + 2 * distance - 1]", "bounds[first + 2 * span - 1]"),
            ("first += rank & distance", "first += span if rank & distance else 0"),
            ("distance //= 2", "distance, span = 2 * distance, span // 2"),
        ],
        "in the wrong order",
    ),
    (
        "recursive_halving",
        "the partner's half",
        [
            (
                "(upper, lower) if rank & distance else (lower, upper)",
                "(lower, upper) if rank & distance else (upper, lower)",
            ),
            ("first += rank & distance", "first += distance - (rank & distance)"),
        ],
        "half that its partner should have",
    ),
    (
        "recursive_halving",
        "halved in elements",
        [
            (
                "    first, distance",
                "    n = len(data) // comm.size\n    bounds = [(i * n, (i + 1) * n) for i in "
                "range(comm.size)]\n    first, distance",
            )
        ],
        "take uneven chunks from chunk_bounds",
    ),
    (
        "recursive_halving",
        "the last step missing",
        [("while distance:", "while distance > 1:")],
        "rank 0 sends 0 messages, log2.2. = 1 are asked for\\nLikely cause: a step is missing",
    ),
    (
        "recursive_halving",
        "nothing is reduced",
        [("op(data[keep], part, out=data[keep])", "pass")],
        "data did not change",
    ),
    (
        "recursive_halving",
        "MAX as SUM",
        [("op(data[keep], part, out=data[keep])", "data[keep] += part")],
        "a sum, whatever op is",
    ),
    (
        "recursive_halving",
        "Send, then Recv",
        [
            (
                HALVE,
                "        comm.Send(data[give], dest=rank ^ distance)\n"
                "        comm.Recv(part, source=rank ^ distance)\n",
            )
        ],
        "all ranks send first",
    ),
    (
        "recursive_halving",
        "the whole range travels",
        [
            (
                HALVE,
                "        both = slice(lower.start, upper.stop)\n        arrived = np.empty_like(data[both])\n"
                "        comm.Sendrecv(data[both], dest=rank ^ distance, recvbuf=arrived, source=rank ^ distance)\n"
                "        part = arrived[keep.start - both.start:keep.stop - both.start]\n",
            )
        ],
        "rank 0 sends 8 elements, the whole vector; half of the vector(.|\n)*: 4",
    ),
    (
        "recursive_halving",
        "receives where it reduces",
        [("part = np.empty_like(data[keep])", "part = data[keep]")],
        "into a separate buffer",
    ),
    (
        "recursive_halving",
        "round a ring",
        [
            (
                "    first, distance = 0, comm.size // 2",
                """    size = comm.size
    for step in range(size - 1):
        start, stop = bounds[(rank - step - 1) % size]
        own = data[slice(*bounds[(rank - step - 2) % size])]
        part = np.empty_like(own)
        comm.Sendrecv(data[start:stop], dest=(rank + 1) % size, recvbuf=part, source=(rank - 1) % size)
        op(own, part, out=own)
    first, distance = 0, 0""",
            )
        ],
        "rank 0 sends 3 messages, log2.4. = 2 are asked for\\nLikely cause: this is a ring",
    ),
    (
        "recursive_halving",
        "never waited for",
        [
            (
                HALVE,
                "        comm.Isend(data[give], dest=rank ^ distance)\n"
                "        comm.Recv(part, source=rank ^ distance)\n",
            )
        ],
        "is never waited for",
    ),
    (
        "recursive_halving",
        "round instead of across",
        [("rank ^ distance", "(rank + distance) % comm.size")],
        "^4 ranks(.|\n)*rank 0 waits to send to 1 and for a message from 1 .which sends to 2.(.|\n)*do not match",
    ),
    (
        "recursive_halving",
        "the last of more steps missing",
        [("while distance:", "while distance > comm.size // 8:")],
        "^8 ranks(.|\n)*sends 2 messages, log2.8. = 3 are asked for\\nLikely cause: a step is missing",
    ),
    (
        "recursive_halving",
        "the kept half is sent",
        [("comm.Sendrecv(data[give]", "comm.Sendrecv(data[keep]")],
        "the kept half is sent",
    ),
    (
        "recursive_halving",
        "received into the kept half",
        [("recvbuf=part", "recvbuf=data[keep]"), ("op(data[keep], part, out=data[keep])", "pass")],
        "arriving data replaces the kept half: receive it into",
    ),
    (
        "recursive_halving",
        "received into the kept half, and reduced",
        [("recvbuf=part", "recvbuf=data[keep]"), ("op(data[keep], part,", "op(data[keep], data[keep],")],
        "replaces the kept half, and is reduced with itself",
    ),
    (
        "recursive_halving",
        "the neighbor in each step",
        [("rank ^ distance", "rank ^ 1")],
        "^4 ranks(.|\n)*rank 0 sends to rank 1, then 1; the first partner is size / 2 away(.|\n)*rank 2, then 1",
    ),
    # classes of mistakes that are found by recomputation
    (
        "fit_cost",
        "multiplied rows",
        [("[1 / seconds, nbytes / seconds]", "[seconds, nbytes * seconds]")],
        "not multiplied by it",
    ),
    (
        "fit_cost",
        "doubling twice",
        [("math.log2(ranks)", "2 * math.log2(ranks)")],
        "goes around twice(.|\n)*or: .*steps once",
    ),
    (
        "fit_cost",
        "the ring's messages once",
        [("2 * (ranks - 1) - math", "(ranks - 1) - math")],
        "its messages are counted once",
    ),
    (
        "shared_memory_allreduce",
        "only its own chunk written",
        [("shared[comm.rank] = send", "shared[comm.rank, mine] = send[mine]")],
        "at no barrier is a rank's vector in its row",
    ),
    (
        "shared_memory_allreduce",
        "into row 0, no barrier at the end",
        [
            ("    comm.Barrier()  # all have read, so the next call may write\n", ""),
            (
                "shared[comm.rank, mine], shared[row, mine], out=shared[comm.rank, mine]",
                "shared[0, mine], shared[row, mine], out=shared[0, mine]",
            ),
            ("shared[rank, start:stop]", "shared[0, start:stop]"),
            ("if row != comm.rank:", "if row:"),
        ],
        "a barrier is missing at the end of the call",
    ),
    ("recursive_halving", "the range stays", [("        first += rank & distance\n", "")], "here it stays"),
    (
        "recursive_halving",
        "compared",
        [("if rank & distance else", "if rank >= distance else")],
        "test rank & distance, without",
    ),
]
