"""Exercise 8 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "clip_shards"
SQUARES = "    squares = torch.stack([shard.float().square().sum() for shard in shards]).sum()\n"
REDUCE = "    dist.all_reduce(squares, group=group)\n"
NORM = "    norm = squares.sqrt()\n"
FACTOR = "    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)\n"
SCALE = "        shard.mul_(factor)\n"

BUGS: list = [
    (
        NAME,
        "the largest norm",
        [("dist.all_reduce(squares, group", "dist.all_reduce(squares, dist.ReduceOp.MAX, group")],
        "you take the largest norm of all ranks; add",
    ),
    (
        NAME,
        "max_norm squared",
        [("(max_norm / (norm", "(max_norm**2 / (norm")],
        "max_norm is squared, but compared with a norm",
    ),
    (
        NAME,
        "squares in bfloat16",
        [("shard.float().square().sum()", "shard.square().float().sum()")],
        "the squares are rounded to bfloat16: convert",
    ),
    (
        NAME,
        "the first rank alone",
        [("    for shard in shards:\n", "    for shard in shards * (dist.get_rank(group) == 0):\n")],
        "only the first rank scales: every rank must do",
    ),
    (
        NAME,
        "a copy is scaled",
        [("shard.mul_(factor)", "shard.float().mul_(factor)")],
        r"nothing is scaled: \.float\(\) copies a bfloat16",
    ),
    (NAME, "one rank alone", [(REDUCE, "")], "the norm covers only this rank's shards: the"),
    (
        NAME,
        "norms added up",
        [
            (
                SQUARES + REDUCE + NORM,
                "    norm = sum(s.float().square().sum() for s in shards).sqrt()\n"
                "    dist.all_reduce(norm, group=group)\n",
            )
        ],
        "you add norms; add squares instead and take the",
    ),
    (
        NAME,
        "norms of shards added up",
        [(SQUARES, "    squares = sum(s.float().norm() for s in shards) ** 2\n")],
        "you add the norms of a rank's shards; add their",
    ),
    (NAME, "no root", [(NORM, "    norm = squares\n")], "the root is missing"),
    (
        NAME,
        "the mean",
        [(REDUCE, "    dist.all_reduce(squares, dist.ReduceOp.AVG, group=group)\n")],
        "the sum over the ranks is needed, not the mean",
    ),
    (NAME, "one shard", [(SQUARES, "    squares = shards[0].float().square().sum()\n")], "the first"),
    (
        NAME,
        "the largest rank",
        [(REDUCE, "    dist.all_reduce(squares, dist.ReduceOp.MAX, group=group)\n")],
        "you take the largest norm of all ranks; add",
    ),
    (NAME, "the sum", [("square().sum()", "sum()"), (NORM, "    norm = squares\n")], "not their squares"),
    (
        NAME,
        "absolute values",
        [("square().sum()", "abs().sum()"), (NORM, "    norm = squares\n")],
        "sum of absolute values",
    ),
    (NAME, "never below", [(".clamp(max=1.0)", "")], "the factor must not exceed 1: a small gradient"),
    (NAME, "not scaled", [(SCALE, "        pass\n")], "nothing is scaled"),
    (
        NAME,
        "other tensors",
        [
            (
                "    for shard in shards:\n" + SCALE,
                "    for i in range(len(shards)):\n        shards[i] = shards[i] * factor\n",
            )
        ],
        "replaces tensors in shards; scale them in place",
    ),
    (
        NAME,
        "a copy",
        [("    for shard in shards:\n" + SCALE, "    shards = [shard * factor for shard in shards]\n")],
        "nothing is scaled",
    ),
    (
        NAME,
        "own factor",
        [
            (SQUARES, SQUARES + "    own = squares.sqrt()\n"),
            ("(norm + 1e-6)", "(own + 1e-6)"),
            (SQUARES + "    own", SQUARES + "    own"),
        ],
        "each rank scales by its own norm, so the ranks",
    ),
    (NAME, "to 1", [("max_norm / (norm", "1 / (norm")], "to a norm of 1"),
    (NAME, "divided", [(SCALE, "        shard.div_(factor)\n")], "multiplied where a division is needed|shards"),
    (NAME, "no epsilon", [("(norm + 1e-6)", "norm")], r"the 1e-6 is missing: max_norm / \(norm \+ 1e-6\)"),
    (NAME, "in bfloat16", [("shard.float().square()", "shard.square()")], "bfloat16"),
    (
        NAME,
        "an all-reduce per shard",
        [
            (
                SQUARES + REDUCE,
                "    squares = 0\n    for s in shards:\n        one = s.float().square().sum()\n"
                "        dist.all_reduce(one, group=group)\n        squares = squares + one\n",
            )
        ],
        "you all-reduce every shard separately: first",
    ),
    (
        NAME,
        "a vector is reduced",
        [
            (
                SQUARES + REDUCE + NORM,
                "    parts = torch.stack([s.float().square().sum() for s in shards])\n"
                "    dist.all_reduce(parts, group=group)\n    norm = parts.sum().sqrt()\n",
            )
        ],
        "one number is enough",
    ),
    (
        NAME,
        "a number",
        [("    return norm\n", "    return norm.item()\n")],
        r"\.item\(\) converts a tensor",
    ),
    (NAME, "not returned", [("    return norm\n", "")], "a return is missing"),
    (NAME, "the norm after", [("    return norm\n", "    return norm * factor\n")], "the norm after clipping"),
    (NAME, "no group", [("squares, group=group", "squares")], "group= is missing"),
]

DIFFERENT: list = [
    (NAME, [(SCALE, "        if norm > max_norm:\n            shard.mul_(max_norm / (norm + 1e-6))\n")]),
    (NAME, [(SQUARES, "    squares = torch.cat([shard.float() for shard in shards]).pow(2).sum()\n")]),
    (
        NAME,
        [
            (
                SQUARES,
                "    norms = [torch.linalg.vector_norm(s, dtype=torch.float32) for s in shards]\n"
                "    squares = torch.stack(norms).square().sum()\n",
            )
        ],
    ),
    (
        NAME,
        [
            (
                "    for shard in shards:\n" + SCALE,
                "    if norm + 1e-6 > max_norm:\n        for shard in shards:\n            shard *= factor\n",
            )
        ],
    ),
    (
        NAME,
        [
            ("    for shard in shards:\n" + SCALE, "    torch._foreach_mul_(shards, factor)\n"),
            (".clamp(max=1.0)", ".clamp_(max=1.0)"),
        ],
    ),
]
