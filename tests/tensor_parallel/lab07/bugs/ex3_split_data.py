"""Exercise 3 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "split_data"
NUMPY = "    import numpy as np\n"
TEST = "    if n % dp_size:\n"
RAISE = '        raise ValueError(f"dp_size {dp_size} does not divide {n} samples")\n'
INDEX = "    dp_idx, part = rank // mp_size, n // dp_size\n"
MINE = "    mine = slice(dp_idx * part, (dp_idx + 1) * part)\n"
RETURN = "    return x_train[mine], y_train[mine]\n"


def index(dp_idx: str, part: str = "n // dp_size") -> list[tuple[str, str]]:
    return [(INDEX, f"    dp_idx, part = {dp_idx}, {part}\n")]


BUGS: list = [
    (NAME, "y is not split", [("y_train[mine]", "y_train")], "y on rank 0(.|\n)*nothing is split"),
    (
        NAME,
        "y is split by rank",
        [("y_train[mine]", "y_train[rank * part : (rank + 1) * part]")],
        "y on rank 1(.|\n)*as if every",
    ),
    (
        NAME,
        "x and y exchanged",
        [("return x_train[mine], y_train[mine]", "return y_train[mine], x_train[mine]")],
        r"order is \(x, y\)",
    ),
    (
        NAME,
        "shuffled",
        [
            (
                RETURN,
                "    import numpy as np\n    order = np.random.default_rng(0).permutation(n)\n"
                "    return x_train[order][mine], y_train[order][mine]\n",
            )
        ],
        "the samples are out of order; a part keeps",
    ),
    (
        NAME,
        "shuffled in place",
        [(INDEX, f"    import numpy as np\n    np.random.default_rng(0).shuffle(x_train)\n{INDEX}")],
        r"x_train must stay unchanged(.|\n)*the function sorts, shuffles or writes it in",
    ),
    (
        NAME,
        "the features are cut",
        [("x_train[mine]", "x_train[:, mine]")],
        "the samples are along the first axis, but",
    ),
    (NAME, "one sample", [("x_train[mine]", "x_train[dp_idx]")], "an index takes a single sample; use a slice"),
    (NAME, "floats", [("n // dp_size", "n / dp_size")], "slice indices must be integers(.|\n)*// returns an integer"),
    (NAME, "lists", [("x_train[mine]", "list(x_train[mine])")], "x is list(.|\n)*not a NumPy array"),
    (NAME, "the rest is lost", [(TEST, "    if False:\n")], r"nothing is raised(.|\n)*3 \+ 3 \+ 3 of 10 samples"),
    (
        NAME,
        "uneven parts",
        [
            (TEST, "    if False:\n"),
            (
                RETURN,
                f"{NUMPY}    return tuple(np.array_split(z, dp_size)[dp_idx] for z in (x_train, y_train))\n",
            ),
        ],
        r"nothing is raised(.|\n)*the parts have 4 \+ 3 \+ 3 samples, but all",
    ),
    (
        NAME,
        "a ValueError that is returned",
        [("raise ValueError", "return ValueError")],
        "after return or print the caller continues",
    ),
    (
        NAME,
        "only rank 0 refuses",
        [(TEST, "    if n % dp_size and rank == 0:\n")],
        "every rank knows the sizes, so all have to",
    ),
    (NAME, "assert", [(TEST + RAISE, "    assert n % dp_size == 0\n")], "assert raises AssertionError"),
    (
        NAME,
        "mp_size has to divide, too",
        [(TEST, "    if n % (mp_size * dp_size):\n")],
        "9 samples: ValueError(.|\n)*mp_size need not",
    ),
    (NAME, "no return", [(RETURN, "")], "returned None(.|\n)*a return is missing"),
    (
        NAME,
        "sorted",
        [(RETURN, NUMPY + "    return np.sort(x_train[mine], axis=0), y_train[mine]\n")],
        "x on rank 0(.|\n)*the samples are out of order; a part keeps",
    ),
    (NAME, "y sorted in place", [(INDEX, "    y_train.sort(axis=0)\n" + INDEX)], "y_train must stay unchanged"),
    (
        NAME,
        "two dimensions",
        [(RETURN, "    return x_train[mine, :], y_train[mine]\n")],
        "too many indices(.|\n)*any number of dimensions",
    ),
    (
        NAME,
        "centred",
        [(RETURN, "    return x_train[mine] + 0.5, y_train[mine]\n")],
        "which is in no sample of x_train",
    ),
]

DIFFERENT: list = [
    (NAME, [(RETURN, "    return x_train[mine].copy(), y_train[mine].copy()\n")]),
    (
        NAME,
        [
            (TEST + RAISE, ""),
            (
                RETURN,
                f"{NUMPY}    return [np.split(z, dp_size)[rank // mp_size] for z in (x_train, y_train)]\n",
            ),
        ],
    ),
    (
        NAME,
        [
            (MINE, "    shape = dp_size, part\n"),
            (RETURN, "    return tuple(z.reshape(*shape, *z.shape[1:])[dp_idx] for z in (x_train, y_train))\n"),
        ],
    ),
    (
        NAME,
        [
            (MINE, "    import numpy as np\n    mine = np.arange(n) // part == dp_idx\n"),
        ],
    ),
    (
        NAME,
        [
            (
                RETURN,
                "    import numpy as np\n    take = [i for i in range(n) if i // part == dp_idx]\n"
                "    return np.array([x_train[i] for i in take]), np.take(y_train, take, axis=0)\n",
            )
        ],
    ),
]
