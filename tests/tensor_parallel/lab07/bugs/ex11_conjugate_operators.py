"""Exercise 11 of lab 07: mistakes that its check has to name, and right answers written differently."""

NAME = "conjugate_operators"
F_OUT = "return group.all_gather(x, 1) if sequence_parallel else x.view_as(x)"
F_GRAD = "return group.reduce_scatter(grad, 1) if sequence_parallel else group.all_reduce(grad)"
G_OUT = "return group.reduce_scatter(x, 1) if sequence_parallel else group.all_reduce(x)"
G_GRAD = "return group.all_gather(grad, 1) if sequence_parallel else grad"
RETURN = "return F.apply, G.apply"

BUGS = [
    (NAME, *bug)
    for bug in (
        ("f and g exchanged", [(RETURN, "return G.apply, F.apply")], "output of f(.|\n)*it is the sum over"),
        (
            "f's gradient is not summed",
            [(F_GRAD, F_GRAD.replace("group.all_reduce(grad)", "grad"))],
            "it should be the sum over the ranks, because each rank's columns contribute",
        ),
        (
            "g's gradient is summed",
            [(G_GRAD, G_GRAD.replace("else grad", "else group.all_reduce(grad)"))],
            "it is the sum over the ranks; it should be the input unchanged, because the gradient of a sum",
        ),
        (
            "f's gradient is a mean",
            [("group.all_reduce(grad)", "group.all_reduce(grad) / group.size")],
            "it is the mean",
        ),
        (
            "f sums up",
            [("else x.view_as(x)", "else group.all_reduce(x)")],
            "it is the sum over the ranks; it should be the input unchanged",
        ),
        (
            "gathered along the batch",
            [("all_gather(x, 1)", "all_gather(x)")],
            "it is the ranks' parts joined along the",
        ),
        (
            "gathered along the width",
            [("all_gather(x, 1)", "all_gather(x, -1)")],
            "it is the ranks' parts joined along the",
        ),
        (
            "scattered along the batch",
            [("reduce_scatter(grad, 1)", "reduce_scatter(grad)")],
            "a gradient has the shape of its x; pass the",
        ),
        (
            "a slice in place of a reduce-scatter",
            [("group.reduce_scatter(grad, 1)", "grad.chunk(group.size, 1)[group.rank].clone()")],
            "it is this rank's part of its own input, split along the length; it should be",
        ),
        (
            "an all-reduce and a slice",
            [("group.reduce_scatter(x, 1)", "group.all_reduce(x).chunk(group.size, 1)[group.rank].clone()")],
            "g's output is right, but the pass calls 1 × all_reduce; 1 × reduce_scatter is enough",
        ),
        (
            "summed needlessly",
            [("else grad", "else group.all_reduce(grad) / group.size")],
            "g's gradient is right, but the pass calls 1 × all_reduce; no collective is needed",
        ),
        (
            "dropped",
            [("else group.all_reduce(x)", "else (group.all_reduce(x), x.clone())[1]")],
            "it is the input unchanged; it should be the",
        ),
        ("the classes", [(RETURN, "return F, G")], "apply of each class"),
        ("past autograd", [(RETURN, "return F.apply, group.all_reduce")], "does not come from a Function's apply"),
        ("nothing", [(G_GRAD, "pass")], "autograd receives no gradient: backward"),
        ("one function", [(RETURN, "return F.apply")], "two functions, is asked for"),
        (
            "in place",
            [("else group.all_reduce(x)", "else group.all_reduce(x, in_place=True)")],
            "x must stay unchanged",
        ),
        (
            "one buffer",
            [
                (
                    "    class F(",
                    "    kept = {}\n\n    def keep(t):\n        buffer = kept.setdefault(t.shape, t)\n"
                    "        return buffer.copy_(t)\n\n    class F(",
                ),
                ("return group.reduce_scatter(x, 1)", "return keep(group.reduce_scatter(x, 1))"),
            ],
            "changed during a later call(.|\n)*it keeps something from one call to the next",
        ),
    )
]
DIFFERENT = [
    (NAME, changes)
    for changes in (
        [("x.view_as(x)", "x.clone()"), ("else grad", "else grad.clone()")],
        [
            (
                RETURN,
                "def f(x):\n        if sequence_parallel:\n            return F.apply(x)\n        y = 1 * x\n"
                "        y.register_hook(group.all_reduce)\n        return y\n\n    return [f, lambda x: G.apply(x)]",
            ),
        ],
        [
            (
                "def forward(ctx, x):\n            return group.all",
                "def forward(ctx, x, dim=1):\n            return group.all",
            ),
            (
                F_GRAD,
                "grad = group.reduce_scatter(grad, 1) if sequence_parallel else group.all_reduce(grad)\n"
                "            return grad, None",
            ),
            (RETURN, "return lambda x: F.apply(x, 1), G.apply"),
        ],
    )
]
