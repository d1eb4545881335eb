"""Exercise 2 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "get_info"
SIZES = "    if mp_size * dp_size != comm.Get_size():\n"
SIZES_RAISE = '        raise ValueError(f"{mp_size} × {dp_size} is not {comm.Get_size()} ranks")\n'
LAYER = '    if fc_layer not in ("fc_q", "fc_k", "fc_v", "fc_o"):\n'
DIM = '    split_dim = in_dim if fc_layer == "fc_o" else out_dim\n'
DIVIDES = "    if split_dim % mp_size:\n"
INDICES = "    mp_idx, dp_idx = rank % mp_size, rank // mp_size\n"
MP_SPLIT = "    mp_comm = comm.Split(color=dp_idx, key=mp_idx)\n"
DP_SPLIT = "    dp_comm = comm.Split(color=mp_idx, key=dp_idx)\n"
SPLITS = MP_SPLIT + DP_SPLIT
PARTS = '    part_in_dim, part_out_dim = (part, out_dim) if fc_layer == "fc_o" else (in_dim, part)\n'
IMPORT = ("def get_info", "from mpi4py import MPI\n\n\ndef get_info")
RETURN = "    return mp_idx, dp_idx, mp_comm, dp_comm, part_in_dim, part_out_dim\n"


def indices(mp_idx: str, dp_idx: str) -> list[tuple[str, str]]:
    return [(INDICES, f"    mp_idx, dp_idx = {mp_idx}, {dp_idx}\n")]


def splits(mp_comm: str, dp_comm: str) -> list[tuple[str, str]]:
    return [(SPLITS, f"    mp_comm = {mp_comm}\n    dp_comm = {dp_comm}\n")]


def returns(values: str) -> list[tuple[str, str]]:
    return [(RETURN, f"    return {values}\n")]


EXCHANGED = (
    r"mp_comm: rank 0(.|\n)*got ranks 0, 2, 4, expected ranks 0, 1\n(.|\n)*this is its dp_comm: the two communicators"
)
BUGS: list = [
    (
        NAME,
        "indices are floats",
        indices("rank % mp_size", "rank / mp_size"),
        "color is 0.5, not a whole number|color is 0.0(.|\n)*// returns",
    ),
    (
        NAME,
        "both communicators exchanged",
        splits("comm.Split(color=mp_idx, key=dp_idx)", "comm.Split(color=dp_idx, key=mp_idx)"),
        EXCHANGED,
    ),
    (
        NAME,
        "the indices exchanged in the return",
        returns("dp_idx, mp_idx, mp_comm, dp_comm, part_in_dim, part_out_dim"),
        "are exchanged",
    ),
    (
        NAME,
        "communicators first",
        returns("mp_comm, dp_comm, mp_idx, dp_idx, part_in_dim, part_out_dim"),
        r"mp_idx is <practice communicator(.|\n)*the order is \(mp_idx",
    ),
    (
        NAME,
        "comm itself",
        splits("comm", "comm.Split(color=mp_idx, key=dp_idx)"),
        "it contains all ranks; Split's color has to",
    ),
    (
        NAME,
        "a Split of mp_comm",
        [(DP_SPLIT, DP_SPLIT.replace("comm.S", "mp_comm.S"))],
        "dp_comm: rank 0(.|\n)*each rank is alone in it: its color differs",
    ),
    (
        NAME,
        "COMM_WORLD",
        [IMPORT, (SPLITS, SPLITS.replace("comm.S", "MPI.COMM_WORLD.S"))],
        "two grids at once(.|\n)*others that are not in comm(.|\n)*COMM_WORLD contains the ranks of all models;",
    ),
    (
        NAME,
        "the sizes of COMM_WORLD",
        [IMPORT, ("comm.Get_size()", "MPI.COMM_WORLD.Get_size()")],
        "COMM_WORLD contains the ranks of all models;",
    ),
    (
        NAME,
        "q, k and v split on the input",
        [(PARTS, PARTS.replace("== ", "!= "))],
        r"got \(30, 60\)(.|\n)*the part of the split dimension is returned",
    ),
    (
        NAME,
        "the part is a float",
        [("split_dim // mp_size", "split_dim / mp_size")],
        r"part_out_dim is 30.0, not an integer(.|\n)*// returns",
    ),
    (
        NAME,
        "fc_v is forgotten",
        [('"fc_k", "fc_v"', '"fc_k"')],
        "fc_v, mp 2 × dp 3: rank 0 raised ValueError(.|\n)*this grid and this layer are possible; a",
    ),
    (
        NAME,
        "no test of the sizes",
        [(SIZES, "    if False:\n")],
        r"mp 3 × dp 3 on 6 ranks: nothing(.|\n)*mp_size · dp_size differs from comm\.Get_size\(\)",
    ),
    (
        NAME,
        "fewer ranks are let pass",
        [(SIZES, SIZES.replace("!=", ">"))],
        "mp 3 × dp 1 on 6 ranks: nothing(.|\n)*the grid is smaller than comm, so some ranks",
    ),
    (
        NAME,
        "any layer",
        [(LAYER, "    if False:\n")],
        "the layer fc_x: nothing is raised(.|\n)*it is treated as one of the four layers;",
    ),
    (
        NAME,
        "no test of the dimension",
        [(DIVIDES, "    if False:\n")],
        "fc_q with out_dim 9 on mp 2: nothing(.|\n)*fc_q is split on out_dim, so mp_size has to",
    ),
    (
        NAME,
        "in_dim is tested for all",
        [(DIVIDES, "    if in_dim % mp_size:\n")],
        "fc_q of 7 × 8(.|\n)*fc_q is not split on in_dim, so mp_size need",
    ),
    (
        NAME,
        "out_dim is tested for all",
        [(DIVIDES, "    if out_dim % mp_size:\n")],
        "fc_o of 8 × 7(.|\n)*fc_o is not split on out_dim, so mp_size need",
    ),
    (
        NAME,
        "dp_size has to divide, too",
        [(DIVIDES, "    if split_dim % (mp_size * dp_size):\n")],
        "dp_size need not divide",
    ),
    (
        NAME,
        "rank 0 alone refuses",
        [(SIZES, SIZES.replace("if", "if rank == 0 and"))],
        "rank 0 raises ValueError, and rank 1 (waits in Split|goes on)",
    ),
    (
        NAME,
        "refused after the groups are made",
        [(DIVIDES, f"{INDICES}{SPLITS}{DIVIDES}"), (f"{INDICES}{SPLITS}    part =", "    part =")][:1],
        "rank 0 calls Split before it raises ValueError(.|\n)*the argument checks come after it; put them",
    ),
    (
        NAME,
        "assert",
        [(SIZES + SIZES_RAISE, "    assert mp_size * dp_size == comm.Get_size()\n")],
        "assert raises AssertionError",
    ),
    (
        NAME,
        "a group on some ranks",
        [(DP_SPLIT, "    dp_comm = comm.Split(color=mp_idx, key=dp_idx) if mp_idx == 0 else comm\n")],
        "a deadlock(.|\n)*some ranks call it",
    ),
    (NAME, "no return", [(RETURN, "")], "returned None(.|\n)*a return is missing"),
    (
        NAME,
        "split",
        [("comm.Split(color=dp_idx", "comm.split(color=dp_idx")],
        "mpi4py's method is Split, with a capital",
    ),
    (
        NAME,
        "another error",
        [('raise ValueError(f"fc_layer', 'raise KeyError(f"fc_layer')],
        "rank 0 raised KeyError(.|\n)*it raises a different type of error; callers",
    ),
    (
        NAME,
        "an error that is printed",
        [('raise ValueError(f"mp_size', 'return print(f"mp_size')],
        "out_dim 9 on mp 2: nothing is raised(.|\n)*after return or print the caller continues",
    ),
    (
        NAME,
        "a barrier first",
        [(SIZES, "    comm.Barrier()\n" + SIZES)],
        "calls Barrier before it raises ValueError(.|\n)*the argument checks come after it; put them",
    ),
]

BUGS += [
    (
        NAME,
        "a product that divides the ranks is let pass",
        [(SIZES, "    if comm.Get_size() % (mp_size * dp_size):\n")],
        "mp 3 × dp 1 on 6 ranks: nothing is raised(.|\n)*the grid is smaller than comm, so some ranks",
    ),
    (
        NAME,
        "the rank in COMM_WORLD",
        [IMPORT, (INDICES, "    rank = MPI.COMM_WORLD.rank\n" + INDICES)],
        "two grids at once(.|\n)*COMM_WORLD contains the ranks of all models;",
    ),
]

DIFFERENT: list = [
    (NAME, [("rank % mp_size, rank // mp_size", "divmod(rank, mp_size)[::-1]")]),
    (NAME, [(INDICES, "    assert rank == comm.Get_rank()\n    rank = comm.rank\n" + INDICES)]),
    # Ranks with one key keep their order: these are right, too.
    (NAME, splits("comm.Split(dp_idx, rank)", "comm.Split(mp_idx, rank)")),
    (NAME, splits("comm.Split(color=dp_idx)", "comm.Split(color=mp_idx)")),
    (NAME, splits("comm.Split(key=0, color=10 + dp_idx)", "comm.Split(key=rank * 3, color=mp_size - mp_idx)")),
    (NAME, [(SPLITS, DP_SPLIT + MP_SPLIT), (RETURN, RETURN.replace("return ", "return [").replace("\n", "]\n"))]),
    (
        NAME,
        [
            (
                INDICES,
                "    import numpy as np\n    grid = np.arange(comm.size).reshape(dp_size, mp_size)\n"
                "    (dp_idx,), (mp_idx,) = np.nonzero(grid == rank)\n",
            ),
            (
                PARTS,
                "    parts = {name: (in_dim, part) for name in ('fc_q', 'fc_k', 'fc_v')} | {'fc_o': (part, out_dim)}\n"
                "    part_in_dim, part_out_dim = parts[fc_layer]\n",
            ),
        ],
    ),
    (
        NAME,
        [
            (
                LAYER,
                "    match fc_layer:\n        case 'fc_q' | 'fc_k' | 'fc_v' | 'fc_o':\n            known = True\n"
                "        case _:\n            known = False\n    if not known:\n",
            ),
            (MP_SPLIT, "    everyone = comm.allgather(rank)\n    assert everyone == sorted(everyone)\n" + MP_SPLIT),
        ],
    ),
]
