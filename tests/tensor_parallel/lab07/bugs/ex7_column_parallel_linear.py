"""Exercise 7 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "column_parallel_linear"
FORWARD, GRAD_X = "out = x @ weight + bias", "grad_x = group.all_reduce(grad_out @ weight.T)"
GRAD_WEIGHT, GRAD_BIAS = "grad_weight = x.flatten(0, 1).T @ grad_out.flatten(0, 1)", "grad_bias = grad_out.sum((0, 1))"
RETURN, RETURN_BOTH = "return grad_x, grad_weight, grad_bias", "return out, backward"
DEF = "def column_parallel_linear"


BUGS = [
    (NAME, *bug)
    for bug in (
        (
            "all-reduce missing",
            [(GRAD_X, "grad_x = grad_out @ weight.T")],
            "rank 0's grad_x(.|\n)*all-reduce is missing",
        ),
        (
            "all-reduce dropped",
            [(GRAD_X, "grad_x = grad_out @ weight.T\n        group.all_reduce(grad_x)")],
            "rank 0's grad_x(.|\n)*the result of all_reduce is not used; it",
        ),
        ("grad_x averaged", [(GRAD_X, f"{GRAD_X} / group.size")], "not their mean"),
        ("the largest", [("weight.T)", 'weight.T, "max")')], "grad_x is the sum of the ranks' terms, not"),
        ("grad_out summed first", [(GRAD_X, "grad_x = group.all_reduce(grad_out) @ weight.T")], "before the product"),
        (
            "gathered and summed",
            [(GRAD_X, "grad_x = group.all_gather((grad_out @ weight.T)[None]).sum(0)")],
            "values are right, but it calls 1 × all_gather: 4,032 bytes(.|\n)*takes 2,688"
            "(.|\n)*every rank receives the tensors of all others",
        ),
        (
            "in float64",
            [(GRAD_X, "grad_x = group.all_reduce((grad_out @ weight.T).double()).to(x.dtype)")],
            "5,376 bytes leave each rank(.|\n)*twice the bytes",
        ),
        (
            "reduce-scatter",
            [("all_reduce(grad_out @ weight.T)", "reduce_scatter(grad_out @ weight.T, -1)")],
            r"shape \(6, 7, 4\)(.|\n)*leaves each rank a part of the sum",
        ),
        (
            "out reduced",
            [(FORWARD, "out = group.all_reduce(x @ weight + bias)")],
            "it is the sum of all ranks' out; it belongs",
        ),
        (
            "product reduced",
            [(FORWARD, "out = group.all_reduce(x @ weight) + bias")],
            "it is the sum of all ranks' out; it belongs",
        ),
        (
            "out gathered",
            [(FORWARD, f"{FORWARD}\n    out = group.all_gather(out, -1)")],
            "it joins all ranks' out; each rank returns",
        ),
        (
            "needless in forward",
            [(FORWARD, f"x = group.all_reduce(x) / group.size\n    {FORWARD}")],
            "2,688 bytes leave each rank; none are needed(.|\n)*forward needs no collective",
        ),
        ("weight.T", [(FORWARD, "out = x @ weight.T + bias")], "the second one transposed"),
        (
            "weight.T where it fits",
            [
                ("    # 1.", "    turned = weight.T if weight.shape[0] == weight.shape[1] else weight\n    # 1."),
                ("x @ weight", "x @ turned"),
            ],
            "a rank's weight is square(.|\n)*without .T",
        ),
        ("no bias", [(FORWARD, "out = x @ weight")], "bias is not added"),
        (
            "rank 0's bias",
            [(FORWARD, "out = x @ weight + group.all_gather(bias)[: bias.numel()]")],
            "bias comes from another rank",
        ),
        (
            "grad_weight turned",
            [(GRAD_WEIGHT, "grad_weight = grad_out.flatten(0, 1).T @ x.flatten(0, 1)")],
            "grad_weight is transposed; it has the shape",
        ),
        (
            "grad_weight reduced",
            [(GRAD_WEIGHT, f"{GRAD_WEIGHT}\n        grad_weight = group.all_reduce(grad_weight)")],
            "it is the sum of all ranks' grad_weight; it",
        ),
        (
            "batches apart",
            [(GRAD_WEIGHT, "grad_weight = x.mT @ grad_out")],
            "sum over batch and length; this sums only over length",
        ),
        ("mean of the batch", [(GRAD_WEIGHT, "grad_weight = (x.mT @ grad_out).mean(0)")], "mean over the tokens"),
        (
            "reshape for .T",
            [("x.flatten(0, 1).T", "x.reshape(x.shape[-1], -1)")],
            r"reshape does not transpose; use flatten\(0,",
        ),
        ("view", [("x.flatten(0, 1)", "x.view(-1, x.shape[-1])")], "transposed and sliced tensors(.|\n)*view does not"),
        ("mean for sum", [(GRAD_BIAS, "grad_bias = grad_out.mean((0, 1))")], "grad_bias(.|\n)*mean over the tokens"),
        ("only batch", [(GRAD_BIAS, "grad_bias = grad_out.sum(0)")], "this sums only over batch"),
        ("order", [(RETURN, "return grad_weight, grad_bias, grad_x")], "order is not"),
        (
            "backward called",
            [(RETURN_BOTH, "return out, backward(out)")],
            "return the function backward itself, without",
        ),
        ("x is out", [(FORWARD, "out = x = x @ weight + bias")], "it is computed from out instead of x; if"),
        ("own name", [(GRAD_X, f"x = x.flatten(0, 1)\n        {GRAD_X}")], "another name there"),
        (
            "grad_out summed in place",
            [(GRAD_X, "grad_x = group.all_reduce(grad_out, in_place=True) @ weight.T")],
            "grad_out must stay unchanged",
        ),
        ("weight changed", [(FORWARD, f"{FORWARD}\n    weight.mul_(2)")], "weight must stay unchanged"),
        (
            "state in a global",
            [
                (DEF, f"saved = {{}}\n\n\n{DEF}"),
                (FORWARD, f"{FORWARD}\n    saved.update(x=x)"),
                ("grad_weight = x.", 'grad_weight = saved["x"].'),
            ],
            "grad_weight(.|\n)*tensors of another call",
        ),
        (
            "accumulated",
            [
                (FORWARD, f"{FORWARD}\n    total = weight * 0"),
                (RETURN, "total.add_(grad_weight)\n        return grad_x, total.clone(), grad_bias"),
            ],
            "backward called again(.|\n)*backward adds to its previous result; each",
        ),
        (
            "one buffer",
            [
                (FORWARD, f"{FORWARD}\n    buffer = weight * 0"),
                (RETURN, "return grad_x, buffer.copy_(grad_weight), grad_bias"),
            ],
            "backward writes into tensors that an earlier",
        ),
        (
            "on rank 0 alone",
            [(GRAD_X, f"grad_x = grad_out @ weight.T\n        if group.rank == 0:\n            {GRAD_X}")],
            "a deadlock(.|\n)*some ranks call it",
        ),
        (
            "not waited for",
            [(GRAD_X, "grad_x = grad_out @ weight.T\n        group.start_all_reduce(grad_x)")],
            "before an all-reduce is done",
        ),
        ("float32", [(GRAD_X, "grad_x = group.all_reduce((grad_out @ weight.T).float()).to(x.dtype)")], "fewer bits"),
    )
]
DIFFERENT = [
    (NAME, changes)
    for changes in (
        [
            (DEF, f"import torch\n\n\n{DEF}"),
            (GRAD_WEIGHT, 'grad_weight = torch.einsum("bli,blo->io", x, grad_out)'),
            (GRAD_X, 'grad_x = group.all_reduce(torch.einsum("blo,io->bli", grad_out, weight))'),
        ],
        [  # communication behind computation
            (GRAD_X, "grad_x = grad_out @ weight.T\n        request = group.start_all_reduce(grad_x)"),
            (RETURN, f"request.wait()\n        {RETURN}"),
        ],
        [(GRAD_X, "grad_x = grad_out @ weight.T\n        group.all_reduce(grad_x, in_place=True)")],
        [
            (GRAD_WEIGHT, "grad_weight = sum(one.T @ g for one, g in zip(x, grad_out))"),
            (GRAD_BIAS, "grad_bias = grad_out.sum(0).sum(0)"),
            (RETURN, "return [grad_x, grad_weight, grad_bias]"),
        ],
        [  # autograd, where nothing is sent
            (
                FORWARD,
                "leaves = [t.detach().clone().requires_grad_() for t in (x, weight, bias)]\n"
                "    out = leaves[0] @ leaves[1] + leaves[2]",
            ),
            (
                GRAD_X,
                "import torch\n        gradients = torch.autograd.grad(out, leaves, grad_out, retain_graph=True)\n"
                "        grad_x, grad_weight, grad_bias = gradients",
            ),
            (GRAD_WEIGHT, "grad_x = group.all_reduce(grad_x)"),
            (GRAD_BIAS, "pass"),
        ],
    )
]
