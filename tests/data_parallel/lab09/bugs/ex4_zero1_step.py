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
    (NAME, "in reverse", [("in tensors:", "in reversed(tensors):")], "go to the tensors in reverse"),
    (NAME, "the largest", [("gradient / size", "gradient, dist.ReduceOp.MAX")], "the largest of the gradients"),
    (NAME, "its own beginning", [("= mine[at", "= gradient[at")], "and its beginning"),
    (NAME, "the job's ranks", [("gradient / size", "gradient / dist.get_world_size()")], "by the ranks of the job"),
    (NAME, "the rank before", [("(size)[rank]", "(size)[rank - 1]")], "of the rank before"),
    (NAME, "ranks in reverse", [("(size)[rank]", "(size)[size - 1 - rank]")], "the order is reversed"),
    (NAME, "stepped twice", [(STEP, STEP + STEP)], "stepped twice"),
    (NAME, "rank 0's", [(GATHER, "    dist.broadcast(whole, group_src=0, group=group)\n")], "or its whole is sent"),
    (NAME, "added up", [(GATHER, "    dist.all_reduce(whole, group=group)\n")], "whole tensors are added up"),
    (NAME, "always float32", [(MINE, "    mine = torch.empty(whole.numel() // size)\n")], "not always float32"),
    (
        NAME,
        "added up in float32",
        [(MINE, "    mine = torch.empty(whole.numel() // size)\n"), ("gradient / size", "gradient.float() / size")],
        "not always float32",
    ),
    (NAME, "the job's rank", [("dist.get_rank(group), dist", "dist.get_rank(), dist")], "is the rank in the whole job"),
    (
        NAME,
        "the gradient gathered too",
        [(GIVE, "    dist.all_gather_into_tensor(gradient, mine, group=group)\n" + GIVE)],
        "more all-gathers than one step needs",
    ),
    (NAME, "the sum", [("gradient / size", "gradient")], "the sum over the ranks, not the mean"),
    (NAME, "divided twice", [("gradient / size", "gradient / size**2")], "divided by the ranks twice"),
    (NAME, "not reduced", [(MINE + REDUCE, "    mine = gradient.chunk(size)[rank] / size\n")], "nothing is reduced"),
    (NAME, "not gathered", [(GATHER, "")], "own shard's update alone: nothing is gathered"),
    (
        NAME,
        "gathered before the step",
        [(STEP + CLEAR + SHARD + GATHER, SHARD + GATHER + STEP + CLEAR)],
        "gathered before the step has updated",
    ),
    (NAME, "not stepped", [(STEP, "")], "no update"),
    (NAME, "cleared before the step", [(STEP + CLEAR, CLEAR + STEP)], "no update"),
    (NAME, "not cleared", [(CLEAR, "")], "the gradient's shard is kept"),
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
        "the beginning of the grad",
    ),
    (NAME, "the shard for each", [("mine[at : at + tensor.numel()]", "mine")], "a tensor is one piece of the shard"),
    (
        NAME,
        "the first shard",
        [("whole.chunk(size)[rank]", "whole.chunk(size)[0]")],
        "every rank brings the first shard",
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
        "twice the bytes of a reduce-scatter",
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
        "a broadcast per shard",
    ),
    (NAME, "world's rank", [("dist.get_rank(group)", "dist.get_rank()")], "two groups"),
    (NAME, "no group", [("gradient / size, group=group", "gradient / size")], "group= is missing"),
    (
        NAME,
        "not waited for",
        [("gradient / size, group=group", "gradient / size, group=group, async_op=True")],
        "NaN|wait\\(\\)",
    ),
    (NAME, "another whole", [(GATHER, "    whole = whole.clone()\n" + GATHER)], "nothing is gathered|gathered before"),
    (NAME, "the wrong way", [("gradient / size", "-gradient / size")], "not against it"),
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
