"""Exercise 9 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "top_k_mean"
ADD = "    residual += flat\n"
PLACES = "    positions = residual.abs().topk(k).indices\n"
VALUES = "    values = residual[positions]\n"
KEEP = "    residual[positions] = 0\n"
INT = "    positions = positions.int()\n"
ZERO = "    flat.zero_()\n"
PUT = "        flat.index_add_(0, places, theirs / size)\n"

BUGS: list = [
    (
        NAME,
        "positions as float32, in one message",
        [
            ("    positions = positions.int()\n", "    both = torch.cat([values, positions.float()])\n"),
            (
                "    all_values = [torch.empty_like(values) for _ in range(size)]\n",
                "    found = [torch.empty_like(both) for _ in range(size)]\n",
            ),
            ("    all_positions = [torch.empty_like(positions) for _ in range(size)]\n", ""),
            (
                "    dist.all_gather(all_values, values, group=group)\n",
                "    dist.all_gather(found, both, group=group)\n",
            ),
            (
                "    dist.all_gather(all_positions, positions, group=group)\n",
                "    all_values, all_positions = [f[:k] for f in found], [f[k:].int() for f in found]\n",
            ),
        ],
        "whole numbers only up to 2",
    ),
    (
        NAME,
        "values in another order",
        [(VALUES, "    values = residual[positions.sort().values]\n")],
        "value i belongs to position i",
    ),
    (NAME, "a sum", [("theirs / size", "theirs")], "the sum, not the mean"),
    (
        NAME,
        "divided twice",
        [(PUT, PUT + "    flat /= size\n")],
        "divided by the number of ranks twice",
    ),
    (NAME, "no feedback", [(ADD, "    residual = flat.clone()\n")], "residual stays 0, and the unsent values are lost"),
    (NAME, "nothing is kept", [(KEEP, "    residual.zero_()\n")], "residual stays 0, and the unsent values are lost"),
    (NAME, "everything is kept", [(KEEP, "")], "keeps the sent values too"),
    (
        NAME,
        "what was sent is kept",
        [(KEEP, "    kept = torch.zeros_like(residual)\n    kept[positions] = values\n    residual.copy_(kept)\n")],
        "holds the sent values, not the unsent",
    ),
    (NAME, "largest values", [("residual.abs().topk", "residual.topk")], "the largest values are chosen"),
    (
        NAME,
        "magnitudes are sent",
        [(PLACES + VALUES, "    values, positions = residual.abs().topk(k)\n")],
        "the sign is lost",
    ),
    (NAME, "smallest", [("topk(k)", "topk(k, largest=False)")], "the smallest entries are sent"),
    (NAME, "int64 positions", [(INT, "")], "positions are sent as int64"),
    (NAME, "overwritten", [(PUT, "        flat[places.long()] = theirs / size\n")], "only the last one counts"),
    (NAME, "not cleared", [(ZERO, "")], "added to the gradients that are still in flat"),
    (NAME, "flat is rebound", [(ZERO, "    flat = torch.zeros_like(flat)\n")], "flat is not written"),
    (
        NAME,
        "own entries alone",
        [("zip(all_values, all_positions, strict=True)", "[(values, positions)]")],
        "the entries of other ranks are not used",
    ),
    (
        NAME,
        "chosen without residual",
        [(PLACES, "    positions = flat.abs().topk(k).indices\n")],
        "chosen from the gradients alone",
    ),
    (NAME, "sent without residual", [(VALUES, "    values = flat[positions]\n")], "only the gradients are sent"),
    (
        NAME,
        "residual of the mean",
        [(KEEP, ""), (PUT, PUT + "    residual -= flat\n")],
        "the difference from the mean",
    ),
    (
        NAME,
        "the whole vector",
        [
            (
                "    all_values = [",
                (
                    "    whole = torch.zeros_like(flat)\n    whole[positions.long()] = values\n    "
                    "dist.all_reduce(whole, group=group)\n    flat.copy_(whole / size)\n    "
                    "return\n    all_values = ["
                ),
            )
        ],
        "send only the k entries",
    ),
    (
        NAME,
        "a threshold",
        [(PLACES, "    positions = (residual.abs() > 60).nonzero().flatten()\n")],
        "every rank has to send k entries|got ",
    ),
    (NAME, "the default group", [(", group=group)", ")")], "group= is missing|group=group is missing"),
    (
        NAME,
        "its own first",
        [
            (
                "    for theirs, places in zip(all_values, all_positions, strict=True):\n",
                (
                    "    pairs, me = list(zip(all_values, all_positions)), dist.get_rank(group)\n"
                    "    for theirs, places in pairs[me:] + pairs[:me]:\n"
                ),
            )
        ],
        "the ranks add in different orders",
    ),
    (
        NAME,
        "a threshold",
        [(PLACES, "    sizes = residual.abs()\n    positions = (sizes >= sizes.topk(k).values[-1]).nonzero()[:, 0]\n")],
        "a threshold selects a different number",
    ),
    (NAME, "one more", [("topk(k)", "topk(min(k + 1, len(flat)))")], "one entry too many is sent"),
    (
        NAME,
        "whole numbers",
        [("= residual[positions]\n", "= residual[positions].int()\n"), ("theirs / size", "theirs.float() / size")],
        "cut to whole numbers",
    ),
    (NAME, "by two", [("theirs / size", "theirs / 2")], "divided by 2, whatever"),
    (
        NAME,
        "the size is sent too",
        [(ZERO, "    dist.all_reduce(torch.tensor([k]), group=group)\n" + ZERO)],
        "two messages are enough",
    ),
    (
        NAME,
        "rounded",
        [("all_gather(all_values, values,", "all_gather(all_values, values.bfloat16().float(),")],
        "rounded to bfloat16",
    ),
    (
        NAME,
        "the first rank's places",
        [("index_add_(0, places,", "index_add_(0, all_positions[0],")],
        "rank 0's positions are used",
    ),
    (
        NAME,
        "cleared where any has sent",
        [(PUT, PUT + "        residual[places] = 0\n")],
        "cleared where any rank has sent",
    ),
    (
        NAME,
        "without its own",
        [(PUT, "        if theirs is not all_values[dist.get_rank(group)]:\n    " + PUT)],
        "this rank's own entries are not added",
    ),
]
GATHER = """    all_values = [torch.empty_like(values) for _ in range(size)]
    all_positions = [torch.empty_like(positions) for _ in range(size)]
    dist.all_gather(all_values, values, group=group)
    dist.all_gather(all_positions, positions, group=group)
"""
DIFFERENT: list = [
    (
        NAME,
        [
            (
                GATHER,
                (
                    "    all_values, all_positions = torch.empty(size * k), torch.empty(size * k, "
                    "dtype=torch.int32)\n    dist.all_gather_into_tensor(all_values, values, "
                    "group=group)\n    dist.all_gather_into_tensor(all_positions, positions, "
                    "group=group)\n    all_values, all_positions = all_values.chunk(size), all_positions.chunk(size)\n"
                ),
            )
        ],
    ),
    (
        NAME,
        [
            (PUT, "        flat.scatter_add_(0, places.long(), theirs)\n    flat /= size\n"),
            (KEEP, "    residual.index_fill_(0, positions, 0.0)\n"),
        ],
    ),
    (
        NAME,
        [
            (
                GATHER,
                (
                    "    message = torch.cat([values.view(torch.int32), positions])\n    parts = "
                    "[torch.empty_like(message) for _ in range(size)]\n    "
                    "dist.all_gather(parts, message, group=group)\n    all_values = "
                    "[part[:k].view(torch.float32) for part in parts]\n    all_positions = "
                    "[part[k:] for part in parts]\n"
                ),
            ),
        ],
    ),
    (
        NAME,
        [
            (
                ADD + PLACES + VALUES + KEEP,
                (
                    "    corrected = flat + residual\n    _, order = "
                    "corrected.abs().sort(descending=True)\n    positions = order[:k]\n    "
                    "values = corrected[positions]\n    corrected[positions] = 0\n    residual.copy_(corrected)\n"
                ),
            ),
        ],
    ),
    (
        NAME,
        [
            (
                GATHER,
                (
                    "    all_values = [torch.empty_like(values) for _ in range(size)]\n"
                    "    all_positions = [torch.empty_like(positions) for _ in range(size)]\n"
                    "    for rank in range(size):\n        if rank == dist.get_rank(group):\n"
                    "            all_values[rank], all_positions[rank] = values, positions\n"
                    "        dist.broadcast(all_values[rank], group=group, group_src=rank)\n"
                    "        dist.broadcast(all_positions[rank], group=group, group_src=rank)\n"
                ),
            )
        ],
    ),
]
