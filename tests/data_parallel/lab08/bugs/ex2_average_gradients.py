"""Exercise 2 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "average_gradients"
IF = "        if parameter.requires_grad:\n"
NONE = "            if parameter.grad is None:\n                parameter.grad = torch.zeros_like(parameter)\n"
SEND = "            dist.all_reduce(parameter.grad, group=group)\n"
DIVIDE = "            parameter.grad /= dist.get_world_size(group)\n"
LOOP = "    for parameter in model.parameters():\n"

BUGS: list = [
    (NAME, "an overflow is hidden", [(SEND, "            parameter.grad.nan_to_num_()\n" + SEND)], "has to reach all"),
    (NAME, "a sum", [(DIVIDE, "")], "the sum over the ranks, not the mean"),
    (
        NAME,
        "the mean twice",
        [("parameter.grad, group=group)", "parameter.grad, op=dist.ReduceOp.AVG, group=group)")],
        "the mean is taken twice",
    ),
    (NAME, "nothing is sent", [(SEND, "")], "divided by the number of ranks: it was never added"),
    (
        NAME,
        "a copy is sent",
        [("all_reduce(parameter.grad,", "all_reduce(parameter.grad.clone(),")],
        "never added to the others'",
    ),
    (
        NAME,
        "unused skipped",
        [(IF + NONE, "        if parameter.grad is not None:\n")],
        "ranks 1 and 3 have not used(.|\n)*send zeros",
    ),
    (NAME, "frozen awaited", [(IF, "        if True:\n")], "frozen.weight(.|\n)*frozen"),
    (
        NAME,
        "tied twice",
        [(LOOP, "    for parameter in [p for m in model.modules() for p in m.parameters(recurse=False)]:\n")],
        "a weight that two layers share(.|\n)*is sent twice",
    ),
    (
        NAME,
        "tied twice by name",
        [(LOOP, "    for _, parameter in model.named_parameters(remove_duplicate=False):\n")],
        "a weight that two layers share(.|\n)*is sent twice",
    ),
    (NAME, "all ranks divide", [("dist.get_world_size(group)", "dist.get_world_size()")], "without group"),
    (NAME, "the default group", [(", group=group", "")], "group= is missing|group=group is missing"),
    (NAME, "half", [("dist.get_world_size(group)", "2")], "divided by 2"),
    (NAME, "by this rank", [("dist.get_world_size(group)", "max(1, dist.get_rank(group))")], "rank"),
    (
        NAME,
        "the others",
        [("dist.get_world_size(group)", "max(1, dist.get_world_size(group) - 1)")],
        "the sum over the ranks|number of other ranks",
    ),
    (NAME, "multiplied", [("/=", "*=")], "multiplied by the number of ranks"),
    (
        NAME,
        "the parameters",
        [
            ("parameter.grad, group", "parameter.data, group"),
            (DIVIDE, "            parameter.data /= dist.get_world_size(group)\n"),
        ],
        r"has changed first.weight(.|\n)*do not change the parameters",
    ),
    (
        NAME,
        "a broadcast",
        [("dist.all_reduce(parameter.grad, group=group)", "dist.broadcast(parameter.grad, group=group, group_src=0)")],
        "a broadcast adds no values",
    ),
    (
        NAME,
        "the largest",
        [("parameter.grad, group", "parameter.grad, dist.ReduceOp.MAX, group")],
        "leave op at its default",
    ),
    (
        NAME,
        "by a reduce",
        [("dist.all_reduce(parameter.grad, group=group)", "dist.reduce(parameter.grad, group=group, group_dst=0)")],
        "rank 1",
    ),
    (
        NAME,
        "whoever has used it",
        [
            (
                NONE,
                "            used = torch.tensor(float(parameter.grad is not None))\n"
                + NONE
                + "            dist.all_reduce(used, group=group)\n",
            ),
            (DIVIDE, "            parameter.grad /= used.clamp(min=1)\n"),
        ],
        "do not count the users",
    ),
    (
        NAME,
        "all in one",
        [
            (
                LOOP,
                (
                    "    flat = torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad "
                    "is not None])\n    dist.all_reduce(flat, group=group)\n    flat /= "
                    "dist.get_world_size(group)\n    at = 0\n    for p in model.parameters():\n  "
                    "      if p.grad is not None:\n            p.grad = flat[at : at + "
                    "p.numel()].view(p.shape)\n            at += p.numel()\n    for parameter in []:\n"
                ),
            )
        ],
        "several gradients share a message",
    ),
    (
        NAME,
        "gathered",
        [
            (
                SEND,
                (
                    "            parts = [torch.empty(parameter.shape) for _ in "
                    "range(dist.get_world_size(group))]\n            dist.all_gather(parts, "
                    "parameter.grad.contiguous(), group=group)\n            parameter.grad.copy_(sum(parts))\n"
                ),
            )
        ],
        "all-gather delivers p tensors",
    ),
    (NAME, "never waited", [("parameter.grad, group=group)", "parameter.grad, group=group, async_op=True)")], "wait"),
    (
        NAME,
        "frozen, with what is left in .grad",
        [(IF, "        if parameter.requires_grad or parameter.grad is not None:\n")],
        "frozen after some steps(.|\n)*a frozen parameter has requires_grad False",
    ),
    (
        NAME,
        "zeros of any dtype",
        [("torch.zeros_like(parameter)", "torch.zeros(parameter.shape)")],
        "parameter's dtype",
    ),
    (NAME, "a third", [("dist.get_world_size(group)", "3")], "4 ranks(.|\n)*divided by 3, whatever"),
    (
        NAME,
        "what all_reduce returns",
        [(SEND + DIVIDE, "            parameter.grad = dist.all_reduce(parameter.grad, group=group) / group.size()\n")],
        "changes its tensor in place, and returns None",
    ),
    (
        NAME,
        "those with a gradient first",
        [("in model.parameters()", "in sorted(model.parameters(), key=lambda p: p.grad is None)")],
        "ranks 1 and 3 have not used(.|\n)*makes it at another place",
    ),
    (
        NAME,
        "in bfloat16",
        [(SEND, SEND + "            parameter.grad = parameter.grad.bfloat16().to(parameter.dtype)\n")],
        "had fewer bits",
    ),
]
DIFFERENT: list = [
    (NAME, [(SEND + DIVIDE, "            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG, group=group)\n")]),
    (
        NAME,
        [
            (
                SEND + DIVIDE,
                (
                    "            total = parameter.grad.contiguous() / dist.get_world_size(group)\n  "
                    "          dist.all_reduce(total, group=group)\n            parameter.grad = total\n"
                ),
            )
        ],
    ),
    (
        NAME,
        [
            (LOOP, "    works = []\n" + LOOP),
            (
                SEND + DIVIDE,
                (
                    "            works.append((parameter, dist.all_reduce(parameter.grad, "
                    "group=group, async_op=True)))\n    for parameter, work in works:\n        "
                    "work.wait()\n        parameter.grad.div_(group.size())\n"
                ),
            ),
        ],
    ),
    (
        NAME,
        [
            (LOOP, "    for _, parameter in reversed(list(model.named_parameters())):\n"),
            (
                NONE,
                (
                    "            parameter.grad = torch.zeros_like(parameter) if parameter.grad is "
                    "None else parameter.grad\n"
                ),
            ),
        ],
    ),
]
