"""Exercise 7 of lab 10: mistakes that its check has to name, and right answers written differently."""

NAME = "split_backward"
SAVE = "            ctx.save_for_backward(x, weight)\n"
PRODUCT = "            return x @ weight.t()\n"
KEEP = "            kept.append((weight, x, dy))\n"
RETURN = "            return dy @ weight, None\n"
POP = "            weight, x, dy = kept.pop()\n"
GRADIENT = "dy.flatten(0, -2).t() @ x.flatten(0, -2)"
ADD = "                weight.grad += gradient\n"
SET = """            if weight.grad is None:
                weight.grad = gradient
            else:
                weight.grad += gradient
"""

BUGS: list = [
    (
        NAME,
        "at once",
        [(RETURN, f"            return dy @ weight, {GRADIENT}\n")],
        "I computes the gradient of weight at",
    ),
    (NAME, "overwritten", [(ADD, "                weight.grad.copy_(gradient)\n")], "replaces the one that is there"),
    (NAME, "a new tensor", [(ADD, "                weight.grad = weight.grad + gradient\n")], "add in place, with"),
    (NAME, "new memory", [(ADD, "                weight.grad.data = weight.grad + gradient\n")], "add in place, with"),
    (NAME, "a detached weight", [(KEEP, KEEP.replace("weight,", "weight.detach(),"))], "neither detached nor cloned"),
    (
        NAME,
        "None plus a tensor",
        [(SET, "            weight.grad += gradient\n")],
        "weight.grad is None before the first W",
    ),
    (
        NAME,
        "a tensor plus None",
        [(SET, "            weight.grad = gradient + weight.grad\n")],
        "weight.grad is None before",
    ),
    (
        NAME,
        "a method of None",
        [(SET, "            weight.grad.add_(gradient)\n")],
        "weight.grad is None before the first W",
    ),
    (NAME, "transposed", [(GRADIENT, "x.flatten(0, -2).t() @ dy.flatten(0, -2)")], "has the shape of weight|∂yᵀ·x"),
    (NAME, "∂x transposed", [(RETURN, "            return dy @ weight.t(), None\n")], r"x has the shape \(…, n\)"),
    (
        NAME,
        "∂x transposed if square",
        [
            (
                RETURN,
                "            return dy @ (weight.t() if len(weight) == x.shape[-1] else weight), None\n",
            )
        ],
        "y = x·Wᵀ gives ∂x = ∂y·W",
    ),
    (
        NAME,
        "y is kept",
        [
            (
                SAVE + PRODUCT,
                "            y = x @ weight.t()\n            ctx.save_for_backward(y, weight)\n            return y\n",
            )
        ],
        "has the shape of weight",
    ),
    (NAME, "∂x is kept", [(KEEP, KEEP.replace("dy))", "dy @ weight))"))], "∂y·W once per product"),
    (
        NAME,
        "swapped",
        [(KEEP, KEEP.replace("x, dy", "dy, x"))],
        "has the shape of weight",
    ),
    (
        NAME,
        "kept stays",
        [("        while kept:\n" + POP, "        for weight, x, dy in kept:\n")],
        "W uses every entry once",
    ),
    (NAME, "one entry", [("        while kept:\n", "        if kept:\n")], "use every entry"),
    (
        NAME,
        "one entry, then cleared",
        [("        while kept:\n", "        if kept:\n"), (SET, SET + "            kept.clear()\n")],
        "use every entry",
    ),
    (
        NAME,
        "computed again",
        [
            (
                KEEP,
                "            with torch.enable_grad():\n                again = x @ weight.t()\n"
                "            assert again is not None\n" + KEEP,
            )
        ],
        "y is there already, and",
    ),
    (
        NAME,
        "autograd twice",
        [
            (
                RETURN,
                """            with torch.enable_grad():
                y = (x := x.detach().requires_grad_()) @ weight.t()
            torch.autograd.grad(y, weight, dy, retain_graph=True)
            return torch.autograd.grad(y, x, dy)[0], None
""",
            )
        ],
        "y is there already, and",
    ),
    (NAME, "two for one", [(RETURN, "            return dy @ weight\n")], "one gradient per argument of forward"),
    (NAME, "first row", [(GRADIENT, "dy.mT @ x")], "has the shape of weight"),
    (
        NAME,
        "a new list",
        [(KEEP, "            kept = kept + [(weight, x, dy)]\n")],
        "an assignment makes a new local name",
    ),
    (NAME, "mean", [(GRADIENT, f"({GRADIENT}) / x[..., 0].numel()")], "a mean over the rows"),
    (NAME, "graph", [("    @torch.no_grad()\n", "")], "W needs @torch.no_grad"),
    (NAME, "no entry", [(KEEP, "")], "keep one entry per product"),
    (
        NAME,
        "swapped gradients",
        [(RETURN, "            return None, dy @ weight\n")],
        "∂x first, and None for weight second",
    ),
    (
        NAME,
        "the result",
        [("return Linear.apply, add_weight_gradients", "return Linear.apply, add_weight_gradients()")],
        "two functions",
    ),
]
DIFFERENT: list = [
    (
        NAME,
        [
            (
                SET,
                """            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            weight.grad.addmm_(dy.flatten(0, -2).t(), x.flatten(0, -2))
""",
            ),
            (f"            gradient = {GRADIENT}\n", ""),
        ],
    ),
    (
        NAME,
        [
            ("        while kept:\n" + POP, "        for weight, x, dy in kept:\n"),
            (GRADIENT, 'torch.einsum("rk,rn->kn", dy.reshape(-1, len(weight)), x.reshape(-1, x.shape[-1]))'),
            (SET, SET + "        kept.clear()\n"),
        ],
    ),
    (
        NAME,
        [
            (PRODUCT, "            return torch.nn.functional.linear(x, weight)\n"),
            (KEEP, "            kept.append([weight, x.detach(), dy.clone()])\n"),
            (RETURN, "            return torch.matmul(dy, weight), None\n"),
        ],
    ),
    (NAME, [(GRADIENT, "(dy.mT @ x).flatten(0, -3).sum(0) if x.ndim > 2 else dy.mT @ x")]),
]
