"""The transfer exercise of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "hybrid_step"
LOOP = """    for gradient in gradients:
        mine = torch.empty_like(total)
        dist.reduce_scatter_tensor(mine, gradient, group=shard_group)
        total += mine
        count += 1
"""
ACROSS = "    dist.all_reduce(total, group=replica_group)\n"
MEAN = "    total /= count * dist.get_world_size(shard_group) * dist.get_world_size(replica_group)\n"
SQUARES = "    squares = total.square().sum()\n"
REDUCE = "    dist.all_reduce(squares, group=shard_group)\n"
FACTOR = " * (max_norm / (norm + 1e-6)).clamp(max=1.0)"
STEP = "    optimizer.step()\n"
GATHER = "    dist.all_gather_into_tensor(whole, shard.data, group=shard_group)\n"

BUGS: list = [
    (
        NAME,
        "the mean is dropped",
        [("total /= count", "total / (count"), ("get_world_size(replica_group)\n", "get_world_size(replica_group))\n")],
        "nothing uses the result of `total /",
    ),
    (
        NAME,
        "the largest norm",
        [
            (
                "    squares = total.square().sum()\n    dist.all_reduce(squares, group",
                "    squares = total.square().sum()\n    dist.all_reduce(squares, dist.ReduceOp.MAX, group",
            )
        ],
        "this is the largest norm of the shards; add",
    ),
    (NAME, "no 1e-6", [("(norm + 1e-6)", "norm")], r"the 1e-6 is missing: max_norm / \(norm \+ 1e-6\)"),
    (
        NAME,
        "replicas drift apart",
        [(ACROSS, ""), (" * dist.get_world_size(replica_group)", "")],
        "the gradient of this node alone",
    ),
    (NAME, "replicas not added", [(ACROSS, "")], "the gradient of this node alone, divided by all ranks"),
    (NAME, "micro-batches not divided", [("count * dist", "dist")], "the sum over the micro-batches"),
    (
        NAME,
        "replicas not divided",
        [(" * dist.get_world_size(replica_group)", "")],
        "not divided by the size of replica_group, or",
    ),
    (
        NAME,
        "shards not divided",
        [("dist.get_world_size(shard_group) * ", "")],
        "divided by the size of replica_group, but not",
    ),
    (
        NAME,
        "the sum",
        [(MEAN, "")],
        "neither divided by the number of ranks nor by|the division by the number of ranks is missing,",
    ),
    (
        NAME,
        "norm over replicas",
        [(REDUCE, "    dist.all_reduce(squares, group=replica_group)\n")],
        "the squares are added over the replicas instead",
    ),
    (
        NAME,
        "norm over all",
        [(REDUCE, REDUCE + "    dist.all_reduce(squares, group=replica_group)\n")],
        "replicas hold the same shard, so their squares",
    ),
    (NAME, "norm of one shard", [(REDUCE, "")], "the norm covers only this rank's shard: the"),
    (
        NAME,
        "norms added up",
        [(".square().sum()\n", ".norm()\n"), ("squares.sqrt()", "squares")],
        "you add norms; add squares instead",
    ),
    (NAME, "no root", [("squares.sqrt()", "squares")], "the root is missing"),
    (NAME, "not clipped", [(FACTOR, "")], "is not scaled"),
    (NAME, "scaled up", [(".clamp(max=1.0)", "")], "the factor must not exceed 1"),
    (
        NAME,
        "across in every micro-batch",
        [
            (
                LOOP + ACROSS,
                LOOP.replace(
                    "        total += mine\n",
                    "        dist.all_reduce(mine, group=replica_group)\n        total += mine\n",
                ),
            )
        ],
        "you send every micro-batch between nodes, but",
    ),
    (
        NAME,
        "the whole across",
        [
            (
                LOOP + ACROSS,
                LOOP.replace(
                    "        dist.reduce_scatter_tensor(mine",
                    "        dist.all_reduce(gradient, group=replica_group)\n        dist.reduce_scatter_tensor(mine",
                ),
            )
        ],
        "reduce inside the node first",
    ),
    (NAME, "all kept", [("in gradients:", "in list(gradients):")], "reduce each gradient to its shard, and release"),
    (
        NAME,
        "summed whole first",
        [
            (
                LOOP,
                "    summed = 0\n    for gradient in gradients:\n        summed = summed + gradient\n"
                "        count += 1\n    dist.reduce_scatter_tensor(total, summed, group=shard_group)\n",
            )
        ],
        "you add whole gradients first, which requires",
    ),
    (
        NAME,
        "gathered before the step",
        [(STEP + "    optimizer.zero_grad()\n" + GATHER, GATHER + STEP + "    optimizer.zero_grad()\n")],
        "every rank has only its own shard's update: the",
    ),
    (NAME, "not gathered", [(GATHER, "")], "every rank has only its own shard's update: the"),
    (NAME, "not stepped", [(STEP, "")], r"nothing is updated: optimizer\.step\(\) is"),
    (NAME, "gradient kept", [("    optimizer.zero_grad()\n", "")], "optimizer.zero_grad"),
    (NAME, "last micro-batch", [("total += mine", "total = mine")], "only the last micro-batch counts"),
    (
        NAME,
        "gathered from replicas",
        [("shard.data, group=shard_group", "shard.data, group=replica_group")],
        "shards of one node's|whole",
    ),
    (NAME, "no group", [("squares, group=shard_group", "squares")], "group= is missing"),
    (
        NAME,
        "iterated twice",
        [("    total, count", "    micro = sum(1 for _ in gradients)\n    total, count")],
        "norm|nan|ZeroDivision|keeps",
    ),
]

DIFFERENT: list = [
    (
        NAME,
        [
            (
                "total, count = torch.zeros_like(shard.data), 0",
                "ranks = shard_group.size() * replica_group.size()\n    total, count = torch.zeros_like(shard.data), 0",
            ),
            (MEAN, "    total /= count\n    total /= ranks\n"),
        ],
    ),
    (NAME, [(ACROSS, "    dist.all_reduce(total, group=replica_group, async_op=True).wait()\n")]),
    (
        NAME,
        [
            (
                "shard.grad = total" + FACTOR,
                "shard.grad = total\n    if norm + 1e-6 > max_norm:\n        shard.grad *= max_norm / (norm + 1e-6)",
            )
        ],
    ),
    (
        NAME,
        [
            ("reduce_scatter_tensor(mine, gradient,", "reduce_scatter_tensor(mine, gradient, dist.ReduceOp.AVG,"),
            ("count * dist.get_world_size(shard_group) * ", "count * "),
        ],
    ),
]
