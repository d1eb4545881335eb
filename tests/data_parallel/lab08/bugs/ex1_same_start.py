"""Exercise 1 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "same_start"
TENSORS = "[*model.parameters(), *model.buffers()]"
SEND = "        dist.broadcast(values, group=group, group_src=0)\n"
COPY = "        tensor.detach().copy_(values)\n"
CONTIGUOUS = "tensor.detach().contiguous()"

BUGS: list = [
    (NAME, "buffers forgotten", [(TENSORS, "model.parameters()")], "send the buffers too"),
    (
        NAME,
        "the state dict",
        [(TENSORS, "model.state_dict().values()")],
        "two layers share is sent twice(.|\n)*and state_dict.. twice",
    ),
    (
        NAME,
        "no frozen ones",
        [(TENSORS, "[*(p for p in model.parameters() if p.requires_grad), *model.buffers()]")],
        "frozen.weight(.|\n)*forward uses frozen parameters too",
    ),
    (
        NAME,
        "floats alone",
        [("        values =", "        if not tensor.is_floating_point():\n            continue\n        values =")],
        "steps(.|\n)*a buffer may hold integers",
    ),
    (NAME, "src counts among all", [("group_src=0", "src=0")], "is not part of group(.|\n)*group_src"),
    (
        NAME,
        "the default group",
        [("group=group, ", ""), ("group_src", "src")],
        "group= is missing|group=group is missing",
    ),
    (NAME, "the copy keeps it", [(COPY, "")], "the copy that contiguous.. made"),
    (
        NAME,
        "gaps are sent",
        [(CONTIGUOUS, "tensor.detach()")],
        "must be contiguous(.|\n)*collectives need contiguous tensors",
    ),
    (
        NAME,
        "a mean",
        [
            (
                SEND,
                "        dist.all_reduce(values, group=group)\n        values = values / dist.get_world_size(group)\n",
            )
        ],
        "the mean over the ranks: every rank has to start from",
    ),
    (NAME, "a sum", [(SEND, "        dist.all_reduce(values, group=group)\n")], "a broadcast, not an all-reduce"),
    (NAME, "another rank", [("group_src=0", "group_src=1")], "group_src=0 names rank 0 of the group"),
    (
        NAME,
        "the last rank",
        [("group_src=0", "group_src=dist.get_world_size(group) - 1")],
        "group_src=0 names rank 0 of the group",
    ),
    (
        NAME,
        "a new tensor",
        [
            (
                COPY,
                "    for name, p in list(model.named_parameters()):\n"
                "        home, _, last = name.rpartition('.')\n"
                "        setattr(model.get_submodule(home), last, "
                "__import__('torch').nn.Parameter(p.detach().clone()))\n",
            )
        ],
        "has replaced first.weight(.|\n)*an optimizer would not know",
    ),
    (NAME, "all memory anew", [(COPY, "        tensor.data = values.clone()\n")], "its memory has changed"),
    (NAME, "autograd watches", [(COPY, "        tensor.copy_(values)\n")], "autograd records|torch.no_grad"),
    (
        NAME,
        "modules one by one",
        [
            ("    for tensor in [*model.parameters(), *model.buffers()]:\n", "    for tensor in tensors:\n"),
            (
                "    ### BEGIN SOLUTION\n",
                (
                    "    ### BEGIN SOLUTION\n    tensors = [t for m in model.modules() for t in "
                    "[*m.parameters(recurse=False), *m.buffers(recurse=False)]]\n"
                ),
            ),
        ],
        "two layers share is sent twice(.|\n)*modules and state_dict.. twice",
    ),
    (
        NAME,
        "only rank 0 calls",
        [("    for tensor in", "    if dist.get_rank(group) == 0:\n        return\n    for tensor in")],
        "deadlock|Mismatch",
    ),
    (
        NAME,
        "trained in between",
        [(COPY, COPY + "        tensor.requires_grad_(False)\n")],
        "has changed requires_grad of",
    ),
    (NAME, "in float32", [(CONTIGUOUS, "tensor.detach().float().contiguous()")], "steps(.|\n)*had fewer bits"),
    (
        NAME,
        "its own buffers",
        [("model.buffers()", "model.buffers(recurse=False)")],
        "yields those of submodules too",
    ),
    (
        NAME,
        "a shared buffer twice",
        [("*model.buffers()", "*(b for m in model.modules() for b in m.buffers(recurse=False))")],
        "a buffer that two layers share is sent twice",
    ),
    (
        NAME,
        "its rank among all",
        [(COPY, "        if dist.get_rank():\n            tensor.detach().copy_(values)\n")],
        r"dist.get_rank\(\) without group",
    ),
    (
        NAME,
        "gaps left out",
        [("        values =", "        if not tensor.is_contiguous():\n            continue\n        values =")],
        "it was not sent because it has gaps",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        [
            (TENSORS, "list(model.parameters()) + list(model.buffers())"),
            (CONTIGUOUS, "tensor.data.clone().contiguous()"),
        ],
    ),
    (
        NAME,
        [
            (
                SEND + COPY,
                (
                    "        dist.broadcast(values, group=group, src=dist.get_global_rank(group, "
                    "0))\n        tensor.data.copy_(values)\n"
                ),
            ),
        ],
    ),
    (
        NAME,
        [
            (
                (
                    "    for tensor in [*model.parameters(), *model.buffers()]:\n        values = "
                    "tensor.detach().contiguous()\n"
                ),
                (
                    "    import torch\n    tensors = [*model.parameters(), *model.buffers()]\n    "
                    "with torch.no_grad():\n      for tensor in tensors:\n        values = "
                    "tensor.contiguous().reshape(-1).view(torch.uint8)\n"
                ),
            ),
            (COPY, "        tensor.copy_(values.view(tensor.dtype).view(tensor.shape))\n"),
        ],
    ),
    (
        NAME,
        [
            (
                SEND,
                "        work = dist.broadcast(values, group=group, group_src=0, async_op=True)\n        work.wait()\n",
            )
        ],
    ),
]
