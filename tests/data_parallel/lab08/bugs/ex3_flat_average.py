"""Exercise 3 of lab 08: mistakes that its check has to name, and right answers written differently."""

NAME = "flat_average"
GRADS = "[torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]"
CAT = "        flat = torch.cat([grad.reshape(-1) for grad in grads])\n"
SEND = "        dist.all_reduce(flat, group=group)\n"
DIVIDE = "        flat /= dist.get_world_size(group)\n"
BACK = "            parameter.grad = part.view(parameter.shape)\n"
SPLIT = "flat.split([p.numel() for p in parameters])"

BUGS: list = [
    (NAME, "a sum", [(DIVIDE, "")], "the sum over the ranks, not the mean"),
    (
        NAME,
        "the mean twice",
        [("(flat, group=group)", "(flat, op=dist.ReduceOp.AVG, group=group)")],
        "the mean is taken twice",
    ),
    (NAME, "not back", [(BACK, "            pass\n")], "this rank's own gradient: it was not sent"),
    (NAME, "nothing is sent", [(SEND, "")], "never added to the others'"),
    (
        NAME,
        "copied back",
        [(BACK, "            parameter.grad = part.view(parameter.shape).clone()\n")],
        "copied out of the flat tensor",
    ),
    (
        NAME,
        "copied into the old",
        [
            (
                "        for parameter, part",
                (
                    "        for parameter, grad in zip(parameters, grads):\n            "
                    "parameter.grad = grad\n        for parameter, part"
                ),
            ),
            (BACK, "            parameter.grad.copy_(part.view(parameter.shape))\n"),
        ],
        "copied out of the flat tensor",
    ),
    (
        NAME,
        "unused skipped",
        [(GRADS, "[p.grad for p in parameters if p.grad is not None]")],
        "has not used|Mismatch|not used",
    ),
    (NAME, "None in cat", [(GRADS, "[p.grad for p in parameters]")], "None where this rank has not used"),
    (NAME, "frozen too", [("        if parameter.requires_grad:\n", "        if True:\n")], "frozen.weight"),
    (
        NAME,
        "tied twice",
        [("model.parameters():", "[p for m in model.modules() for p in m.parameters(recurse=False)]:")],
        "is sent twice",
    ),
    (
        NAME,
        "dtypes together",
        [("setdefault(parameter.dtype, [])", "setdefault(0, [])")],
        "three dtypes(.|\n)*(flat tensor has one dtype|has its parameter's)",
    ),
    (
        NAME,
        "dtypes together in float64",
        [
            ("setdefault(parameter.dtype, [])", "setdefault(0, [])"),
            ("grad.reshape(-1)", "grad.reshape(-1).double()"),
            ("part.view(parameter.shape)", "part.view(parameter.shape).to(parameter.dtype)"),
        ],
        "travel in float64",
    ),
    (
        NAME,
        "order turned",
        [
            ("for parameter, part in zip(parameters,", "for parameter, part in zip(parameters[::-1],"),
            ("p.numel() for p in parameters])", "p.numel() for p in parameters[::-1]])"),
        ],
        "gradients in a different order than the parts",
    ),
    (
        NAME,
        "sizes turned",
        [("p.numel() for p in parameters])", "p.numel() for p in parameters[::-1]])")],
        "is invalid for input(.|\n)*numel",
    ),
    (NAME, "view for reshape", [("grad.reshape(-1)", "grad.view(-1)")], "view size is not compatible(.|\n)*transposed"),
    (
        NAME,
        "memory order",
        [
            (
                "grad.reshape(-1)",
                "(grad if grad.ndim != 2 else grad.t().contiguous() if not grad.is_contiguous() else grad).reshape(-1)",
            )
        ],
        "in the wrong order: the layout in memory|in a different order",
    ),
    (NAME, "stack", [("torch.cat(", "torch.stack(")], "stack expects each tensor"),
    (NAME, "cat of matrices", [("grad.reshape(-1) for grad", "grad for grad")], "reshape\\(-1\\) makes each"),
    (
        NAME,
        "each by itself",
        [(CAT + SEND, "        for grad in grads:\n            dist.all_reduce(grad, group=group)\n" + CAT)],
        "latency α again",
    ),
    (NAME, "all ranks divide", [("dist.get_world_size(group)", "dist.get_world_size()")], "without group"),
    (
        NAME,
        "divided into a new one",
        [(DIVIDE, "        flat / dist.get_world_size(group)\n")],
        "nothing uses the result of `flat / dist",
    ),
    (NAME, "never waited", [("(flat, group=group)", "(flat, group=group, async_op=True)")], "wait"),
    (NAME, "by element count", [("dist.get_world_size(group)", "flat.numel()")], "every number is 0.075 times"),
    (
        NAME,
        "frozen, with what is left in .grad",
        [("if parameter.requires_grad:", "if parameter.requires_grad or parameter.grad is not None:")],
        "frozen after some steps(.|\n)*a frozen parameter has requires_grad False",
    ),
    (
        NAME,
        "used first",
        [(CAT, CAT.replace("in grads", "in sorted(grads, key=lambda g: not g.any())"))],
        "depends on which .grad are None",
    ),
    (NAME, "zeros of any dtype", [("torch.zeros_like(p)", "torch.zeros(p.shape)")], r"torch.zeros_like\(parameter\)"),
    (
        NAME,
        "in bfloat16",
        [(SEND, "        flat = flat.bfloat16().to(flat.dtype)\n" + SEND)],
        "rounded before they are added",
    ),
    (NAME, "in float16", [(DIVIDE, DIVIDE + "        flat = flat.half().to(flat.dtype)\n")], "had fewer bits"),
    (
        NAME,
        "in float32",
        [(SEND, "        flat = flat.float().to(flat.dtype)\n" + SEND)],
        "only in .*float64: gradients are rounded before they are added",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        [
            (
                SEND + DIVIDE,
                "        flat /= group.size()\n        dist.all_reduce(flat, group=group, async_op=True).wait()\n",
            )
        ],
    ),
    (
        NAME,
        [
            (
                CAT,
                (
                    "        flat = torch.zeros(sum(p.numel() for p in parameters), "
                    "dtype=parameters[0].dtype)\n        at = 0\n        for p, g in "
                    "zip(parameters, grads):\n            flat[at : at + "
                    "p.numel()].view(p.shape).copy_(g)\n            at += p.numel()\n"
                ),
            ),
            (BACK, "            parameter.grad = part.reshape(parameter.shape)\n"),
        ],
    ),
    (
        NAME,
        [
            (CAT, "        flat = torch._utils._flatten_dense_tensors([g.contiguous() for g in grads])\n"),
            (SPLIT, "torch._utils._unflatten_dense_tensors(flat, grads)"),
            (SEND + DIVIDE, "        dist.all_reduce(flat, dist.ReduceOp.AVG, group)\n"),
        ],
    ),
    (NAME, [("model.parameters():", "reversed(list(model.parameters())):"), ("grad.reshape(-1)", "grad.flatten()")]),
    (NAME, [(DIVIDE, "        flat = flat / dist.get_world_size(group)\n")]),
]
