"""Exercise 4 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "naive_collect_forward_input"
PARTS = "    parts = np.empty((mp_size, *x.shape), x.dtype)\n"
GATHER = "    mp_comm.Allgather(np.ascontiguousarray(x), parts)\n"
SEND = "np.ascontiguousarray(x)"
RETURN = "    return np.concatenate(list(parts), axis=2)\n"
JOIN = "np.concatenate(list(parts), axis=2)"
ANSWER = PARTS + GATHER + RETURN
PADDED = """\
    batch, length, part = x.shape
    mine = np.zeros((batch, length, part * mp_size), x.dtype)
    mine[:, :, mp_comm.Get_rank() * part : (mp_comm.Get_rank() + 1) * part] = x
"""


def returns(expression: str) -> list[tuple[str, str]]:
    return [(RETURN, f"    return {expression}\n")]


BUGS: list = [
    (
        NAME,
        "received straight into the result",
        [
            (
                ANSWER,
                f"    recv = np.empty((*x.shape[:2], x.shape[2] * mp_size), x.dtype)\n"
                f"    mp_comm.Allgather({SEND}, recv)\n    return recv\n",
            )
        ],
        r"element \[0, 0, 4\](.|\n)*got 307, x\[0, 1, 0\] of rank 0(.|\n)*reshape moves no numbers; the parts follow",
    ),
    (NAME, "joined along the batch", [("axis=2", "axis=0")], r"shape \(6, 5, 4\)(.|\n)*axis 0, the batch"),
    (NAME, "joined along the length", [("axis=2", "axis=1")], r"shape \(3, 10, 4\)(.|\n)*axis 1, the length"),
    (NAME, "the parts as they come", returns("parts"), "it is recv unchanged, with the rank as its"),
    (
        NAME,
        "the ranks' features alternate",
        returns("np.stack(list(parts), axis=-1).reshape(*x.shape[:2], -1)"),
        "the ranks' features alternate",
    ),
    (
        NAME,
        "the axes are not joined",
        returns("np.moveaxis(parts, 0, 2)"),
        "the rank is still a separate axis; merge it",
    ),
    (
        NAME,
        "batch and rank swapped alone",
        returns("parts.swapaxes(0, 1).reshape(*x.shape[:2], -1)"),
        r"its numbers are in the axis order \(batch,",
    ),
    (
        NAME,
        "recv begins with the batch",
        [("(mp_size, *x.shape)", "(x.shape[0], mp_size, *x.shape[1:])"), ("list(parts)", "list(parts.swapaxes(0, 1))")],
        r"recv is read with the axes \(batch, rank, length, feature\); Allgather fills it as \(rank, batch, length",
    ),
    (
        NAME,
        "its own part first",
        returns("np.concatenate([x] + [parts[i] for i in range(mp_size) if i != mp_comm.Get_rank()], axis=2)"),
        "each rank puts its own features first; on",
    ),
    (NAME, "the last rank first", [("list(parts)", "list(parts[::-1])")], "the ranks are in reverse order"),
    (NAME, "its own x everywhere", [("list(parts)", "[x] * mp_size")], "it repeats the rank's own x mp_size times"),
    (NAME, "x comes back", returns("x"), "it is x itself; the computed result is not"),
    (NAME, "nothing is returned", [("    return np", "    np")], "returned None(.|\n)*the result is not returned"),
    (
        NAME,
        "what Allgather returns",
        [(ANSWER, "    return np.concatenate(mp_comm.Allgather(x), axis=2)\n")],
        "missing 1 required positional argument(.|\n)*write into their second argument",
    ),
    (
        NAME,
        "a recv for one",
        [("(mp_size, *x.shape)", "x.shape")],
        "recv has 60 elements(.|\n)*mp_size times as large as send",
    ),
    (NAME, "always two ranks", [("(mp_size, *", "(2, *")], "3 ranks(.|\n)*mp_size times as large as send"),
    (
        NAME,
        "all ranks of the grid",
        [("import numpy as np", "import numpy as np\nfrom mpi4py import MPI"), ("mp_comm.All", "MPI.COMM_WORLD.All")],
        "recv has 120 elements, 4 ranks × 60 of send are 240(.|\n)*COMM_WORLD contains the ranks of all models;",
    ),
    (
        NAME,
        "its model's ranks out of all of the grid",
        [
            ("import numpy as np", "import numpy as np\nfrom mpi4py import MPI"),
            ("mp_comm.All", "MPI.COMM_WORLD.All"),
            ("(mp_size, *x", "(MPI.COMM_WORLD.size, *x"),
            ("list(parts)", "list(parts)[MPI.COMM_WORLD.rank // mp_size * mp_size :][:mp_size]"),
        ],
        "Allgather of ranks 0, 1, 2, 3; the ranks of this model are 0, 1(.|\n)*COMM_WORLD",
    ),
    (NAME, "float64 whatever x is", [(", x.dtype)", ")")], "send is float32, recv is float64(.|\n)*whatever you send"),
    (
        NAME,
        "all in float64",
        [(", x.dtype)", ")"), (SEND, "x.astype(np.float64, order='C')")],
        r"result is float64, expected float32, the dtype of x(.|\n)*np\.empty and np\.zeros create float64 arrays",
    ),
    (
        NAME,
        "float64 on the way",
        [(", x.dtype)", ")"), (SEND, "x.astype(np.float64, order='C')"), (JOIN, f"{JOIN}.astype(x.dtype)")],
        "make 1 × Allgather of 1,440 bytes; one Allgather of 720 bytes is enough(.|\n)*a wider dtype",
    ),
    (
        NAME,
        "a slice is sent as it is",
        [(SEND, "x")],
        "BufferError(.|\n)*np.ascontiguousarray makes a copy",
    ),
    (NAME, "a copy in x's own order", [(SEND, "np.array(x)")], "the array that you send is not in C order,"),
    (NAME, "x is used as a buffer", [(RETURN, f"    x[...] = 0\n{RETURN}")], "x must stay unchanged: x.0, 0, 0. was"),
    (
        NAME,
        "the result is a transposed view",
        [(JOIN, f"{JOIN}.transpose(2, 0, 1).copy().transpose(1, 2, 0)")],
        "not contiguous(.|\n)*its memory order differs from the order of",
    ),
    (
        NAME,
        "only rank 0 gathers",
        [("    mp_comm.All", "    if mp_comm.Get_rank() == 0:\n        mp_comm.All")],
        "a deadlock: rank 0 waits in Allgather of ranks 0, 1 for 1(.|\n)*some ranks call it and others do not",
    ),
    (
        NAME,
        "an all-reduce of zeros and x",
        [(ANSWER, f"{PADDED}    recv = np.empty_like(mine)\n    mp_comm.Allreduce(mine, recv)\n    return recv\n")],
        "but ranks 0, 1 make 1 × Allreduce of 960 bytes(.|\n)*an all-reduce sends twice the bytes",
    ),
    (
        NAME,
        "one gathers, and tells the others",
        [(ANSWER, "    parts = mp_comm.bcast(mp_comm.gather(x))\n" + RETURN)],
        "1 × gather, 1 × bcast(.|\n)*all parts go through one rank, and the others",
    ),
    (
        NAME,
        "an all-gather per row",
        [
            (
                GATHER,
                "    rows = np.ascontiguousarray(x)\n    parts = np.empty((*x.shape[:2], "
                "mp_size, x.shape[2]), x.dtype)\n    for b, length in np.ndindex(*x.shape[:2]):\n"
                "        mp_comm.Allgather(rows[b, length], parts[b, length])\n",
            ),
            (JOIN, "parts.reshape(*x.shape[:2], -1)"),
        ],
        "15 × Allgather of 64 bytes; one Allgather of 960 bytes is enough(.|\n)*every collective costs its latency",
    ),
    (
        NAME,
        "times 1.0",
        returns(f"{JOIN} * 1.0"),
        "int64(.|\n)*is float64(.|\n)*integers become float64 when you combine them",
    ),
]
DIFFERENT: list = [
    (NAME, returns("parts.transpose(1, 2, 0, 3).reshape(*x.shape[:2], -1)")),
    (NAME, returns("np.moveaxis(parts, 0, 2).reshape(x.shape[0], x.shape[1], mp_size * x.shape[2])")),
    (NAME, returns("np.dstack(parts)")),
    (NAME, [(ANSWER, "    return np.concatenate(mp_comm.allgather(x), axis=-1)\n")]),
    (
        NAME,
        [
            (PARTS, "    parts = np.empty((mp_size, *x.shape), x.dtype)\n    parts[mp_comm.Get_rank()] = x\n"),
            (SEND, "MPI.IN_PLACE"),
            ("import numpy as np", "import numpy as np\nfrom mpi4py import MPI"),
        ],
    ),
    (
        NAME,
        [
            (
                ANSWER,
                "    first = np.ascontiguousarray(x.transpose(2, 0, 1))  # the features first: parts join on axis 0\n"
                "    recv = np.empty((mp_size * x.shape[2], *x.shape[:2]), x.dtype)\n"
                "    mp_comm.Allgather(first, recv)\n    return np.ascontiguousarray(recv.transpose(1, 2, 0))\n",
            )
        ],
    ),
    (NAME, [(GATHER, "    mp_comm.Allgather(x.ravel().view(np.uint8), parts.reshape(-1).view(np.uint8))\n")]),
    (NAME, [(GATHER, "    mp_comm.Alltoall(np.array([x] * mp_size, order='C'), parts)\n")]),
]
