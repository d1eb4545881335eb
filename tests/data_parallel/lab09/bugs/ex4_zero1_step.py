"""Exercise 4 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "zero1_step"
MINE = "    mine = torch.empty_like(gradient[: whole.numel() // size])\n"
REDUCE = "    dist.reduce_scatter_tensor(mine, gradient / size, group=group)\n"
GIVE = """    at = 0
    for tensor in tensors:
        tensor.grad = mine[at : at + tensor.numel()]
        at += tensor.numel()
"""
STEP = "    optimizer.step()\n"
CLEAR = "    optimizer.zero_grad()\n"
SHARD = "    shard = whole.chunk(size)[rank]\n"
GATHER = "    dist.all_gather_into_tensor(whole, shard, group=group)\n"

BUGS: list = [
    (NAME, "in reverse", [("in tensors:", "in reversed(tensors):")], "the parts of the gradient are assigned to the"),
    (
        NAME,
        "the largest",
        [("gradient / size", "gradient, dist.ReduceOp.MAX")],
        "the largest gradient is used instead of the",
    ),
    (NAME, "its own beginning", [("= mine[at", "= gradient[at")], "the beginning of this rank's own gradient is"),
    (
        NAME,
        "the job's ranks",
        [("gradient / size", "gradient / dist.get_world_size()")],
        "divided by the number of ranks in the job",
    ),
    (NAME, "the rank before", [("(size)[rank]", "(size)[rank - 1]")], "another rank's shard is gathered: that of the"),
    (NAME, "ranks in reverse", [("(size)[rank]", "(size)[size - 1 - rank]")], "the order is reversed"),
    (NAME, "stepped twice", [(STEP, STEP + STEP)], "stepped twice"),
    (
        NAME,
        "rank 0's",
        [(GATHER, "    dist.broadcast(whole, group_src=0, group=group)\n")],
        "only rank 0's shard is updated: one rank steps,",
    ),
    (
        NAME,
        "added up",
        [(GATHER, "    dist.all_reduce(whole, group=group)\n")],
        "the ranks' whole tensors are added, but their",
    ),
    (NAME, "always float32", [(MINE, "    mine = torch.empty(whole.numel() // size)\n")], "not always float32"),
    (
        NAME,
        "added up in float32",
        [(MINE, "    mine = torch.empty(whole.numel() // size)\n"), ("gradient / size", "gradient.float() / size")],
        "not always float32",
    ),
    (
        NAME,
        "the job's rank",
        [("dist.get_rank(group), dist", "dist.get_rank(), dist")],
        r"dist\.get_rank\(\) without the group returns the",
    ),
    (
        NAME,
        "the gradient gathered too",
        [(GIVE, "    dist.all_gather_into_tensor(gradient, mine, group=group)\n" + GIVE)],
        "more all-gathers than a step needs",
    ),
    (NAME, "the sum", [("gradient / size", "gradient")], "this is the sum over the ranks: the division by"),
    (NAME, "divided twice", [("gradient / size", "gradient / size**2")], "divided by the number of ranks twice"),
    (NAME, "not reduced", [(MINE + REDUCE, "    mine = gradient.chunk(size)[rank] / size\n")], "nothing is reduced"),
    (NAME, "not gathered", [(GATHER, "")], "every rank has only its own shard's update: the"),
    (
        NAME,
        "gathered before the step",
        [(STEP + CLEAR + SHARD + GATHER, SHARD + GATHER + STEP + CLEAR)],
        "the gather runs before the step has updated the",
    ),
    (NAME, "not stepped", [(STEP, "")], r"whole is not updated: optimizer\.step\(\) is"),
    (NAME, "cleared before the step", [(STEP + CLEAR, CLEAR + STEP)], r"whole is not updated: optimizer\.step\(\) is"),
    (NAME, "not cleared", [(CLEAR, "")], "the shard's gradient is kept until the next"),
    (
        NAME,
        "added to what is there",
        [
            (
                "tensor.grad = mine[at : at + tensor.numel()]",
                "part = mine[at : at + tensor.numel()]\n"
                "        tensor.grad = part if tensor.grad is None else tensor.grad + part",
            ),
            (CLEAR, ""),
        ],
        "kept until the next step",
    ),
    (
        NAME,
        "each from its start",
        [("mine[at : at + tensor.numel()]", "mine[: tensor.numel()]")],
        "each tensor gets the beginning of the shard's",
    ),
    (NAME, "the shard for each", [("mine[at : at + tensor.numel()]", "mine")], "a tensor is one piece of the shard"),
    (
        NAME,
        "the first shard",
        [("whole.chunk(size)[rank]", "whole.chunk(size)[0]")],
        "every rank sends the first shard of whole to",
    ),
    (
        NAME,
        "all-reduce",
        [
            (
                MINE + REDUCE,
                "    gradient /= size\n    dist.all_reduce(gradient, group=group)\n"
                "    mine = gradient.chunk(size)[rank]\n",
            )
        ],
        "an all-reduce gives every rank the whole,",
    ),
    (
        NAME,
        "broadcasts",
        [
            (
                GATHER,
                "    for src, part in enumerate(whole.chunk(size)):\n"
                "        dist.broadcast(part, group_src=src, group=group)\n",
            )
        ],
        "you call one broadcast per shard, but one",
    ),
    (NAME, "world's rank", [("dist.get_rank(group)", "dist.get_rank()")], "two groups"),
    (NAME, "no group", [("gradient / size, group=group", "gradient / size")], "group= is missing"),
    (
        NAME,
        "not waited for",
        [("gradient / size, group=group", "gradient / size, group=group, async_op=True")],
        "NaN|wait\\(\\)",
    ),
    (
        NAME,
        "another whole",
        [(GATHER, "    whole = whole.clone()\n" + GATHER)],
        "every rank has only its own shard's update: the|the gather runs before the step has updated the",
    ),
    (NAME, "the wrong way", [("gradient / size", "-gradient / size")], "updated in the direction of the gradient"),
]

DIFFERENT: list = [
    (NAME, [("gradient / size, group=group", "gradient, dist.ReduceOp.AVG, group=group")]),
    (
        NAME,
        [
            (
                GIVE,
                "    ends = torch.tensor([0] + [t.numel() for t in tensors]).cumsum(0).tolist()\n"
                "    for tensor, begin, end in zip(tensors, ends, ends[1:]):\n"
                "        tensor.grad = mine[begin:end].clone()\n",
            )
        ],
    ),
    (
        NAME,
        [
            (REDUCE, "    dist.reduce_scatter(mine, list(gradient.chunk(size)), group=group)\n    mine /= size\n"),
            (GATHER, "    dist.all_gather(list(whole.chunk(size)), shard.clone(), group=group)\n"),
        ],
    ),
    (
        NAME,
        [
            (
                REDUCE,
                "    work = dist.reduce_scatter_tensor(mine, gradient.div_(size), group=group, async_op=True)\n"
                "    work.wait()\n",
            ),
            (CLEAR, "    for tensor in tensors:\n        tensor.grad = None\n"),
        ],
    ),
]
