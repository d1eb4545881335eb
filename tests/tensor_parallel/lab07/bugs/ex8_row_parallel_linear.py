"""Exercise 8 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "row_parallel_linear"
FORWARD, GRAD_X = "out = group.all_reduce(x @ weight) + bias", "grad_x = grad_out @ weight.T"
GRAD_WEIGHT, GRAD_BIAS = "grad_weight = x.flatten(0, 1).T @ grad_out.flatten(0, 1)", "grad_bias = grad_out.sum((0, 1))"
RETURN, RETURN_BOTH = "return grad_x, grad_weight, grad_bias", "return out, backward"
DEF = "def row_parallel_linear"

BUGS = [
    (NAME, *bug)
    for bug in (
        ("bias once per rank", [(FORWARD, "out = group.all_reduce(x @ weight + bias)")], "added once per rank"),
        ("bias of all ranks", [("+ bias", "+ group.all_reduce(bias)")], "added once per rank"),
        ("no bias", [(FORWARD, "out = group.all_reduce(x @ weight)")], "bias is not added"),
        ("bias / p after the sum", [("+ bias", "+ bias / group.size")], "bias is divided by the number of ranks, but"),
        (
            "bias on rank 0 after the sum",
            [(FORWARD, "out = group.all_reduce(x @ weight)\n    out = out + bias if group.rank == 0 else out")],
            "rank 1's out(.|\n)*only one rank adds the bias",
        ),
        ("all-reduce missing", [(FORWARD, "out = x @ weight + bias")], "rank 0's out(.|\n)*the all-reduce is missing"),
        (
            "all-reduce and bias missing",
            [(FORWARD, "out = x @ weight")],
            "bias is not added; and each rank returns only",
        ),
        (
            "all-reduce dropped",
            [(FORWARD, "out = x @ weight\n    group.all_reduce(out)\n    out = out + bias")],
            "the result of all_reduce is not used; it",
        ),
        ("mean", [("(x @ weight)", "(x @ weight) / group.size")], "not their mean"),
        (
            "gathered",
            [(FORWARD, "out = group.all_gather(x @ weight, -1)")],
            "the ranks' terms of out are concatenated; add",
        ),
        (
            "gathered and summed",
            [("group.all_reduce(x @ weight)", "group.all_gather((x @ weight)[None]).sum(0)")],
            "4,032 bytes leave each rank; 1 × all_reduce of out takes 2,688"
            "(.|\n)*every rank receives the tensors of all others",
        ),
        (
            "x and weight gathered",
            [(FORWARD, "out = group.all_gather(x, -1) @ group.all_gather(weight) + bias")],
            "it calls 2 × all_gather: 2,160 bytes leave each rank; 1 × all_reduce of out takes 2,688",
        ),
        (
            "x gathered",
            [(FORWARD, "out = group.all_gather(x, -1) @ weight + bias")],
            "in = 15(.|\n)*inner sizes differ",
        ),
        (
            "x summed",
            [(FORWARD, "out = group.all_reduce(x) @ weight + bias")],
            "x is added up over the ranks before the",
        ),
        ("weight.T", [(FORWARD, "out = group.all_reduce(x @ weight.T) + bias")], "the second one transposed"),
        (
            "bias changed",
            [(FORWARD, "bias /= group.size\n    out = group.all_reduce(x @ weight + bias)")],
            "bias must stay unchanged",
        ),
        (
            "grad_x reduced",
            [(GRAD_X, "grad_x = group.all_reduce(grad_out @ weight.T)")],
            "it is the sum of all ranks' grad_x; it",
        ),
        (
            "grad_x gathered",
            [(GRAD_X, "grad_x = group.all_gather(grad_out @ weight.T, -1)")],
            "it joins all ranks' grad_x; each rank returns",
        ),
        (
            "grad_out reduced",
            [(GRAD_X, f"grad_out = group.all_reduce(grad_out)\n        {GRAD_X}")],
            "grad_out is added up over the ranks(.|\n)*every rank already holds the whole",
        ),
        (
            "grad_out averaged",
            [(GRAD_X, f"grad_out = group.all_reduce(grad_out) / group.size\n        {GRAD_X}")],
            "2,688 bytes leave each rank; none are needed(.|\n)*backward needs no collective",
        ),
        (
            "grad_weight of the whole x",
            [(GRAD_WEIGHT, "grad_weight = group.all_gather(x, -1).flatten(0, 1).T @ grad_out.flatten(0, 1)")],
            "it joins all ranks' grad_weight; each rank",
        ),
        (
            "grad_weight turned",
            [(GRAD_WEIGHT, "grad_weight = grad_out.flatten(0, 1).T @ x.flatten(0, 1)")],
            "grad_weight is transposed; it has the shape",
        ),
        (
            "grad_bias reduced",
            [(GRAD_BIAS, "grad_bias = group.all_reduce(grad_out.sum((0, 1)))")],
            "it is the sum of all ranks' grad_bias; each",
        ),
        ("grad_bias / p", [(GRAD_BIAS, f"{GRAD_BIAS} / group.size")], "divided by the number of ranks"),
        (
            "a part of grad_bias",
            [(GRAD_BIAS, f"{GRAD_BIAS}.chunk(group.size)[group.rank]")],
            "grad_bias is split into parts a second time;",
        ),
        ("grad_bias over length", [(GRAD_BIAS, "grad_bias = grad_out.sum(1)")], "this sums only over length"),
        ("order", [(RETURN, "return grad_x, grad_bias, grad_weight")], "order is not"),
        (
            "state in a global",
            [
                (DEF, f"saved = {{}}\n\n\n{DEF}"),
                (FORWARD, f"saved.update(weight=weight)\n    {FORWARD}"),
                (GRAD_X, 'grad_x = grad_out @ saved["weight"].T'),
            ],
            "grad_x(.|\n)*tensors of another call",
        ),
        (
            "autograd through all_reduce",
            [
                (DEF, f"import torch\n\n\n{DEF}"),
                (
                    FORWARD,
                    "leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]\n"
                    f"    x, weight, bias = leaves\n    {FORWARD}",
                ),
                (RETURN, "return torch.autograd.grad(out, leaves, grad_out, retain_graph=True)"),
            ],
            "autograd cannot differentiate",
        ),
        (
            "not waited for",
            [(FORWARD, "out = x @ weight\n    group.start_all_reduce(out)\n    out = out + bias")],
            "returns before an all-reduce is done",
        ),
        (
            "waited for too late",
            [
                (
                    FORWARD,
                    "part = x @ weight\n    request = group.start_all_reduce(part)\n    out = part + bias\n"
                    "    request.wait()",
                )
            ],
            "start_all_reduce returns a request, and the",
        ),
        (
            "past group",
            [(FORWARD, "out = group.comm.allreduce(x @ weight) + bias")],
            "it bypasses group with another communicator",
        ),
    )
]
DIFFERENT = [
    (NAME, changes)
    for changes in (
        [(FORWARD, "out = group.all_reduce(x @ weight + bias / group.size)")],
        [(FORWARD, "out = group.all_reduce(x @ weight + (bias if group.rank == 0 else 0))")],
        [(FORWARD, "out = x @ weight\n    group.all_reduce(out, in_place=True)\n    out += bias")],
        [
            (DEF, f"import torch\n\n\n{DEF}"),
            (FORWARD, 'out = group.all_reduce(torch.einsum("bli,io->blo", x, weight)).add_(bias)'),
            (GRAD_WEIGHT, "grad_weight = torch.tensordot(x, grad_out, ([0, 1], [0, 1]))"),
        ],
        [
            (FORWARD, f"{FORWARD}\n    flat = x.reshape(-1, x.shape[-1])"),
            (GRAD_WEIGHT, "grad_weight = (grad_out.flatten(0, 1).T @ flat).T"),
            (RETURN_BOTH, "return [out, backward]"),
        ],
    )
]
