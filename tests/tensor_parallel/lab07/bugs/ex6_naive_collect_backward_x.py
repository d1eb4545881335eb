"""Exercise 6 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "naive_collect_backward_x"
BLOCKS = "grad_x.reshape(batch, length, mp_size, features // mp_size).transpose(2, 0, 1, 3)"
MINE = "    mine = np.empty((batch, length, features // mp_size), grad_x.dtype)\n"
SEND = "np.ascontiguousarray(blocks)"
SCATTER = f"    mp_comm.Reduce_scatter_block({SEND}, mine)\n"
RETURN = "    return mine\n"
PARTS = "np.split(grad_x, mp_size, axis=2)"
MPI = ("import numpy as np", "import numpy as np\nfrom mpi4py import MPI")
RANK = "mp_comm.Get_rank()"
SLICE = f"[:, :, {RANK} * (features // mp_size) :][:, :, : features // mp_size]"


def instead(lines: str) -> list[tuple[str, str]]:
    """Of the collective and what it returns."""
    return [(SCATTER + RETURN, "".join(f"    {line}\n" for line in lines.splitlines()))]


BUGS: list = [
    (
        NAME,
        "grad_x as it is",
        [(SEND, "np.ascontiguousarray(grad_x)")],
        r"rank 0's result, element \[0, 1, 0\](.|\n)*got 1494, expected 1402"
        r"(.|\n)*it takes blocks of rows instead of features",
    ),
    (
        NAME,
        "reshape in place of transpose",
        [(BLOCKS, "grad_x.reshape(mp_size, batch, length, features // mp_size)")],
        "it takes blocks of rows instead of features",
    ),
    (
        NAME,
        "parts of mp_size",
        [
            (
                "mp_size, features // mp_size).transpose(2, 0, 1, 3)",
                "features // mp_size, mp_size).transpose(3, 0, 1, 2)",
            )
        ],
        "every mp_size-th feature",
    ),
    (
        NAME,
        "the batch before the rank",
        [("(2, 0, 1, 3)", "(0, 2, 1, 3)")],
        r"send has the axes \(batch, rank, length,",
    ),
    (
        NAME,
        "the features first, and recv not",
        [(BLOCKS, "np.moveaxis(grad_x, 2, 0)")],
        r"send has the axes \(feature, batch, length\), but recv is read as \(batch, length, feature\)",
    ),
    (NAME, "a transposed view", [(SEND, "blocks")], "BufferError(.|\n)*np.ascontiguousarray makes a copy"),
    (
        NAME,
        "a copy in the view's order",
        [(SEND, "np.copy(blocks)")],
        "BufferError(.|\n)*np.copy, np.array and astype may keep",
    ),
    (
        NAME,
        "elements as they lie in memory",
        [(SEND, "blocks.ravel(order='K')")],
        "it takes blocks of rows instead of features",
    ),
    (
        NAME,
        "its own gradient alone",
        instead(f"return grad_x{SLICE}.copy()"),
        "it contains only the rank's own gradient",
    ),
    (NAME, "rank 0's alone", instead(f"return mp_comm.alltoall({PARTS})[0]"), "it contains only one rank's gradient"),
    (NAME, "a mean", [("return mine", "return mine / mp_size")], "it is divided by mp_size; return the values"),
    (
        NAME,
        "the largest",
        [MPI, (f"{SEND}, mine", f"{SEND}, mine, op=MPI.MAX")],
        "it is the maximum, not the sum; leave op at",
    ),
    (
        NAME,
        "the next rank's slice",
        [(BLOCKS, f"np.roll({BLOCKS}, -1, axis=0)")],
        "it is another rank's part",
    ),
    (
        NAME,
        "the parts side by side",
        instead(f"return np.concatenate(mp_comm.alltoall({PARTS}), axis=2)"),
        "all parts have arrived, but they are not added up",
    ),
    (
        NAME,
        "an all-reduce, and its slice",
        instead(
            "total = np.empty(grad_x.shape, grad_x.dtype)\n"
            f"mp_comm.Allreduce(grad_x, total)\nreturn total{SLICE}.copy()"
        ),
        "the values are right, but ranks 0, 1 make 1 × Allreduce of 960 bytes(.|\n)*twice the bytes of a",
    ),
    (
        NAME,
        "everybody's gradient to everybody",
        instead(f"return sum(mp_comm.allgather(grad_x)){SLICE}.copy()"),
        "1 × allgather; one Reduce_scatter_block of 960 bytes(.|\n)*p times the bytes",
    ),
    (
        NAME,
        "a reduction for each rank",
        instead(
            f"send = {SEND}\nfor rank in range(mp_size):\n"
            f"    mp_comm.Reduce(send[rank], mine if rank == {RANK} else None, root=rank)\nreturn mine"
        ),
        "2 × Reduce of 480 bytes(.|\n)*through one rank",
    ),
    (NAME, "the whole sum", instead("return mp_comm.allreduce(grad_x)"), "it is the whole sum; a rank returns only"),
    (
        NAME,
        "the sum in grad_x",
        [MPI, *instead(f"mp_comm.Allreduce(MPI.IN_PLACE, grad_x)\nreturn grad_x{SLICE}.copy()")],
        "grad_x must stay unchanged: grad_x.0, 0, 0. was 447 and is 720 now(.|\n)*MPI.IN_PLACE",
    ),
    (
        NAME,
        "a recv for all",
        [(MINE, "    mine = np.empty_like(grad_x)\n")],
        "send has 120 elements, 2 ranks × 120 of recv are 240(.|\n)*mp_size times recv",
    ),
    (
        NAME,
        "float64 whatever grad_x is",
        [(", grad_x.dtype)", ")")],
        "recv is float64(.|\n)*whatever you send",
    ),
    (
        NAME,
        "float32 on the way",
        [
            (", grad_x.dtype)", ", np.float32)"),
            (SEND, "np.ascontiguousarray(blocks, np.float32)"),
            ("return mine", "return mine.astype(grad_x.dtype)"),
        ],
        r"int64 beyond 2\*\*53(.|\n)*the values were converted to float32, which",
    ),
    (
        NAME,
        "all in float32",
        [(", grad_x.dtype)", ", np.float32)"), (SEND, "np.ascontiguousarray(blocks, np.float32)")],
        "some call specifies float32; use",
    ),
    (
        NAME,
        "a transposed result",
        [("return mine", "return mine.transpose(0, 2, 1)")],
        r"shape \(3, 4, 5\), expected shape \(3, 5, 4\)(.|\n)*the result's axes are \(batch, feature, length\)",
    ),
    (
        NAME,
        "what the collective returns",
        [(SCATTER + RETURN, SCATTER.replace("    mp", "    return mp"))],
        "returned None(.|\n)*the result is not returned",
    ),
    (
        NAME,
        "all ranks of the grid",
        [MPI, ("mp_comm.Red", "MPI.COMM_WORLD.Red")],
        "4 ranks × 60 of recv are 240(.|\n)*COMM_WORLD contains the ranks of all models;",
    ),
]
DIFFERENT: list = [
    (NAME, [(SEND, "blocks.copy()")]),
    (NAME, [(BLOCKS, "np.moveaxis(grad_x.reshape(batch, length, mp_size, -1), 2, 0)"), (SEND, "blocks.ravel()")]),
    (NAME, [(BLOCKS, PARTS), (SEND, "np.array(blocks, order='C')")]),
    (NAME, [MPI, (SCATTER, f"    mp_comm.Reduce_scatter({SEND}, mine, [mine.size] * mp_size, op=MPI.SUM)\n")]),
    (NAME, instead(f"return sum(mp_comm.alltoall({PARTS}))")),
    (
        NAME,
        instead(f"send = {SEND}\nparts = np.empty_like(send)\nmp_comm.Alltoall(send, parts)\nreturn parts.sum(axis=0)"),
    ),
    (
        NAME,
        instead(
            "first = np.ascontiguousarray(np.moveaxis(grad_x, 2, 0))\n"
            "mine = np.empty((features // mp_size, batch, length), grad_x.dtype)\n"
            "mp_comm.Reduce_scatter_block(first, mine)\nreturn np.moveaxis(mine, 0, 2).copy()"
        ),
    ),
]
