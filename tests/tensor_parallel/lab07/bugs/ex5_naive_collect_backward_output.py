"""Exercise 5 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "naive_collect_backward_output"
PART = "    part = output_grad.shape[2] // mp_size\n"
SLICE = "output_grad[:, :, mp_group_idx * part : (mp_group_idx + 1) * part]"
RETURN = f"    return {SLICE}.copy()\n"


def returns(expression: str) -> list[tuple[str, str]]:
    return [(RETURN, f"    return {expression}\n")]


BUGS: list = [
    (NAME, "a view", [(".copy()", "")], "rank 0's result shares memory with output_grad(.|\n)*a slice is a view"),
    (
        NAME,
        "a view by np.split",
        returns("np.split(output_grad, mp_size, axis=2)[mp_group_idx]") + [("\ndef", "import numpy as np\n\n\ndef")],
        "shares memory with output_grad(.|\n)*so is what np.split gives",
    ),
    (
        NAME,
        "contiguous, and copied only where it has to be",
        [("\ndef", "import numpy as np\n\n\ndef"), *returns(f"np.ascontiguousarray({SLICE})")],
        "batch and length 1: rank 0's result shares memory(.|\n)*np.ascontiguousarray and reshape copy only where they",
    ),
    (
        NAME,
        "copied as it lies in memory",
        [("\ndef", "import numpy as np\n\n\ndef"), *returns(f"np.array({SLICE})")],
        "length before batch in memory: rank 0's result is not contiguous(.|\n)*keep the order that they have",
    ),
    (
        NAME,
        "copied into Fortran's order",
        [(".copy()", ".copy(order='F')")],
        "not contiguous(.|\n)*order='F' is not C's",
    ),
    (
        NAME,
        "the batch is cut",
        [("shape[2]", "shape[0]"), ("[:, :, mp", "[mp")],
        r"shape \(3, 9, 10\), expected shape \(6, 9, 5\)(.|\n)*along the axis 0, the batch",
    ),
    (NAME, "the length is cut", [("[:, :, mp", "[:, mp")], r"shape \(6, 5, 10\)(.|\n)*along the axis 1, the length"),
    (NAME, "mp_size wide", [(PART, "    part = mp_size\n")], "the slices are mp_size features wide"),
    (NAME, "the batch's share", [("shape[2]", "shape[0]")], "the width of a part is worked out from the batch"),
    (
        NAME,
        "the index is no start",
        [("mp_group_idx * part :", "mp_group_idx :")],
        "a slice begins at mp_group_idx times",
    ),
    (
        NAME,
        "one too many",
        [("1) * part]", "1) * part + 1]")],
        "the end of a slice is the first feature that is not in it",
    ),
    (NAME, "no end", [(": (mp_group_idx + 1) * part]", ":]")], "a slice has no end"),
    (
        NAME,
        "every other feature",
        returns("output_grad[:, :, mp_group_idx::mp_size].copy()"),
        "every mp_size-th feature",
    ),
    (NAME, "rank 0's for all", returns("output_grad[:, :, :part].copy()"), "the slice is the same on all ranks"),
    (
        NAME,
        "counted from 1",
        [("mp_group_idx * part :", "(mp_group_idx - 1) * part :"), ("(mp_group_idx + 1)", "mp_group_idx")],
        r"shape \(6, 9, 0\)(.|\n)*mp_group_idx counts from 0",
    ),
    (NAME, "a mean", returns(f"{SLICE} / mp_size"), "divided by mp_size; no mean"),
    (NAME, "all of it", returns("output_grad.copy()"), "it is output_grad itself"),
    (
        NAME,
        "reduced once more",
        [(RETURN, f"    mp_comm.Allreduce(output_grad)\n{RETURN}")],
        "name 'mp_comm' is not defined(.|\n)*has the whole gradient already, so nothing has to be sent",
    ),
    (
        NAME,
        "the rank of the grid",
        [("\ndef", "from mpi4py import MPI\n\n\ndef"), (PART, f"{PART}    mp_group_idx = MPI.COMM_WORLD.rank\n")],
        r"rank 2's result(.|\n)*got shape \(6, 9, 0\)(.|\n)*COMM_WORLD has the ranks of all models",
    ),
    (
        NAME,
        "blocks of rows",
        returns("output_grad.reshape(mp_size, *output_grad.shape[:2], part)[mp_group_idx].copy()"),
        "blocks of rows in place of features",
    ),
    (
        NAME,
        "a float for a width",
        [("// mp_size", "/ mp_size")],
        "slice indices must be integers(.|\n)*// makes an integer",
    ),
    (
        NAME,
        "zeros in float64",
        [
            ("\ndef", "import numpy as np\n\n\ndef"),
            (
                RETURN,
                f"    mine = np.zeros((*output_grad.shape[:2], part))\n    mine[...] = {SLICE}\n    return mine\n",
            ),
        ],
        "result is float64, expected float32, as output_grad is(.|\n)*np.empty and np.zeros make float64",
    ),
    (
        NAME,
        "output_grad is emptied",
        [(RETURN, f"    mine = {SLICE}.copy()\n    output_grad[...] = 0\n    return mine\n")],
        "output_grad has to stay as it is: output_grad.0, 0, 0. was .*, and is 0 now",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        returns("np.split(output_grad, mp_size, axis=-1)[mp_group_idx].copy()")
        + [("\ndef", "import numpy as np\n\n\ndef")],
    ),
    (NAME, returns("output_grad.reshape(*output_grad.shape[:2], mp_size, part)[:, :, mp_group_idx].copy()")),
    (
        NAME,
        [
            ("\ndef", "import numpy as np\n\n\ndef"),
            (
                RETURN,
                "    mine = np.empty((*output_grad.shape[:2], part), output_grad.dtype)\n"
                f"    mine[...] = {SLICE}\n    return mine\n",
            ),
        ],
    ),
    (
        NAME,
        [
            ("output_grad.shape[2] // mp_size", "int(output_grad.shape[-1] / mp_size)"),
            (SLICE, SLICE.replace(":, :", "...")),
        ],
    ),
    (NAME, [("\ndef", "import numpy as np\n\n\ndef"), *returns(f"np.array({SLICE}, order='C')")]),
]
