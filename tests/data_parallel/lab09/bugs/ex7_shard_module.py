"""Exercise 7 of lab 09: mistakes that its check has to name, and right answers written differently."""

NAME = "shard_module"
SHARD = "nn.Parameter(whole.chunk(size)[rank].clone())"
RESIZE = "        whole.untyped_storage().resize_(whole.nbytes)\n"
GATHER = "        dist.all_gather_into_tensor(whole, shard.detach(), group=group)\n"
WAITS = """        here.append(parameter)
        if len(here) < len(parameters):
            return
        here.clear()
"""
ADD = "shard.grad = mine if shard.grad is None else shard.grad + mine"
DROP = "        for p in parameters:\n            p.grad = None\n"
LAST = "            p.grad = None\n        free()\n"
HOOKS = ("    module.register_forward_pre_hook(gather)\n", "    module.register_forward_hook(free)\n",
         "    module.register_full_backward_pre_hook(gather)\n")  # fmt: skip
FIRST = "        p.register_post_accumulate_grad_hook(arrived)\n    free()\n"

ON_EACH = "    for p in parameters:\n" + FIRST.removesuffix("    free()\n")
ON_MODULE = "    module.register_full_backward_hook(arrived)\n"
EARLY = "Likely cause: you collect gradients before all of them have arrived: only the last to arrive may trigger it"

BUGS: list = [
    (
        NAME,
        "free frees nothing",
        [("        whole.untyped_storage().resize_(0)\n", "        pass\n")],
        r"call free\(\) at the end too, and let it release",
    ),
    (
        NAME,
        "whole's own part is gathered",
        [("shard.detach(), group", "whole.chunk(size)[rank], group")],
        "whole was freed, and its new memory contains no",
    ),
    (
        NAME,
        "free returns something",
        [("        whole.untyped_storage().resize_(0)\n", "        return whole.untyped_storage().resize_(0)\n")],
        "PyTorch uses the return value of a forward hook",
    ),
    (
        NAME,
        "sent when the module's backward hook comes",
        [(WAITS, ""), ("def arrived(parameter)", "def arrived(*_)"), (ON_EACH, ON_MODULE)],
        "Likely cause: register_full_backward_hook waits for the gradient of the module's input",
    ),
    (
        NAME,
        "sent there, zeros for those that have not come",
        [
            (WAITS, ""),
            ("def arrived(parameter)", "def arrived(*_)"),
            (ON_EACH, ON_MODULE),
            ("p.grad.reshape(-1) for", "(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for"),
        ],
        "Likely cause: register_full_backward_hook waits for the gradient of the module's input",
    ),
    (
        NAME,
        "sent before backward",
        [
            (WAITS, ""),
            ("def arrived(parameter)", "def arrived(*_)"),
            (ON_EACH, ON_MODULE.replace("backward_hook", "backward_pre_hook")),
        ],
        "Likely cause: register_full_backward_pre_hook runs before the gradients",
    ),
    (NAME, "sent by the first to arrive", [(WAITS, "")], EARLY + "$"),
    (NAME, "what has arrived is not cleared", [("        here.clear()\n", "")], EARLY + ", and the count"),
    (
        NAME,
        "let go of before they are read",
        [("        flat = torch.cat", DROP + "        flat = torch.cat")],
        "Likely cause: a .grad is None: it was released before it was read",
    ),
    (
        NAME,
        "the shard of the beginning",
        [
            ("    here = []\n", "    here = []\n    old = shard.detach().clone()\n"),
            ("(whole, shard.detach(),", "(whole, old,"),
        ],
        "you gather the initial values, but the",
    ),
    (
        NAME,
        "gathered after backward",
        [("register_full_backward_pre_hook", "register_full_backward_hook")],
        "register_full_backward_hook runs after the",
    ),
    (
        NAME,
        "freed before it computes",
        [("module.register_forward_hook(free)", "module.register_forward_pre_hook(free)")],
        "and free after the module",
    ),
    (
        NAME,
        "whole gradients kept in a list",
        [
            ("    here = []\n", "    here, history = [], []\n"),
            (
                "        mine = torch.empty_like(shard)\n",
                "        history.append(flat)\n        mine = torch.empty_like(shard)\n",
            ),
        ],
        "a list or a buffer of your own still holds",
    ),
    (
        NAME,
        "hooks on every submodule",
        [
            (
                "    module.register_forward_pre_hook",
                "    for m in module.modules():\n        m.register_forward_pre_hook",
            ),
            ("    module.register_forward_hook", "        m.register_forward_hook"),
            ("    module.register_full_backward", "        m.register_full_backward"),
        ],
        "the gather does not fill whole, or whole is",
    ),
    (
        NAME,
        "a view of the whole gradient",
        [("mine = torch.empty_like(shard)", "mine = flat.chunk(size)[rank]")],
        r"reduce-scatter into torch\.empty_like\(shard\),",
    ),
    (NAME, "no memory for the gather", [(RESIZE, "")], r"call resize_\(whole\.nbytes\) before the gather,"),
    (
        NAME,
        "the first parameter's hook alone",
        [
            (WAITS, ""),
            (
                "    for p in parameters:\n        p.register_post",
                "    for p in parameters[:1]:\n        p.register_post",
            ),
        ],
        "you collect gradients before all of them have",
    ),
    (
        NAME,
        "the last parameter's hook alone",
        [
            (WAITS, ""),
            (
                "    for p in parameters:\n        p.register_post",
                "    for p in parameters[-1:]:\n        p.register_post",
            ),
        ],
        "you collect gradients before all of them have",
    ),
    (NAME, "a view of whole", [(SHARD, "nn.Parameter(whole.chunk(size)[rank])")], "is a view of whole"),
    (NAME, "the first part", [("chunk(size)[rank]", "chunk(size)[0]")], "every rank has the first part"),
    (
        NAME,
        "not freed at first",
        [(FIRST, FIRST.replace("    free()\n", ""))],
        r"call free\(\) at the end too, and let it release",
    ),
    (
        NAME,
        "not freed after forward",
        [(HOOKS[1], "")],
        "a forward hook must free it|a forward hook must free it before the next",
    ),
    (
        NAME,
        "not freed after backward",
        [(LAST, "            p.grad = None\n")],
        "the weights are no longer needed after the last",
    ),
    (NAME, "not gathered for forward", [(HOOKS[0], "")], "a forward pre-hook must gather it"),
    (NAME, "not gathered for backward", [(HOOKS[2], "")], "gathers nothing in the backward pass|freed"),
    (
        NAME,
        "freed by a backward hook",
        [
            (LAST, "            p.grad = None\n"),
            (HOOKS[2], HOOKS[2] + "    module.register_full_backward_hook(free)\n"),
        ],
        "NaN|after backward|freed",
    ),
    (NAME, "gathered into no memory", [(RESIZE, "")], "whole has no memory"),
    (NAME, "gathered before there is memory", [(RESIZE + GATHER, GATHER + RESIZE)], "NaN|freed"),
    (NAME, "not waited for", [("shard.detach(), group=group", "shard.detach(), group=group, async_op=True")], "wait"),
    (
        NAME,
        "the sum",
        [("for p in parameters]) / size", "for p in parameters])")],
        "this is the sum over the ranks: the division by",
    ),
    (NAME, "overwritten", [(ADD, "shard.grad = mine")], "only the last pass counts: each pass must add"),
    (NAME, "whole gradients stay", [(DROP, "")], r"set p\.grad = None to release a gradient"),
    (
        NAME,
        "not padded",
        [("        flat = nn.functional.pad(flat, (0, whole.numel() - flat.numel()))\n", "")],
        "pad the gradients to the size of whole, n",
    ),
    (
        NAME,
        "padding in front",
        [("(0, whole.numel() - flat.numel())", "(whole.numel() - flat.numel(), 0)")],
        "the zeros are in front, but belong after the",
    ),
    (
        NAME,
        "all-reduce",
        [
            (
                "        dist.reduce_scatter_tensor(mine, flat, group=group)\n",
                "        dist.all_reduce(flat, group=group)\n        mine = flat.chunk(size)[rank].clone()\n",
            )
        ],
        "an all-reduce gives every rank the whole,|you add shards padded with zeros, which sends",
    ),
    (
        NAME,
        "order of arrival",
        [("for p in parameters]) / size", "for p in parameters[::-1]]) / size")],
        "gradients are in order of arrival, or reversed,",
    ),
    (
        NAME,
        "hooks without arguments",
        [("def free(*_):", "def free():")],
        "PyTorch calls hooks with the module and more",
    ),
    (NAME, "gradient kept as mine alone", [(ADD, "mine += 0")], r"store the reduce-scatter's result in shard\.grad"),
]

DIFFERENT: list = [
    (NAME, [(WAITS, "        if any(p.grad is None for p in parameters):\n            return\n")]),
    (
        NAME,
        [
            (
                SHARD,
                "nn.Parameter(whole[rank * (len(whole) // size) : (rank + 1) * (len(whole) // size)].detach().clone())",
            ),
            (GATHER, "        dist.all_gather(list(whole.chunk(size)), shard.data, group=group)\n"),
        ],
    ),
    (
        NAME,
        [
            ("for p in parameters]) / size", "for p in parameters])"),
            ("(mine, flat, group=group)", "(mine, flat, op=dist.ReduceOp.AVG, group=group)"),
        ],
    ),
    (NAME, [(GATHER, GATHER.replace("group=group)", "group=group, async_op=True).wait()"))]),
    (
        NAME,
        [
            (HOOKS[0], "    module.register_forward_pre_hook(lambda module, inputs: gather())\n"),
            (HOOKS[1], "    module.register_forward_hook(lambda module, inputs, output: free())\n"),
            (ADD, "shard.grad = mine + (0 if shard.grad is None else shard.grad)"),
        ],
    ),
]
