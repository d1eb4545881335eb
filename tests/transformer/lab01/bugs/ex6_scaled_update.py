"""Planted bugs of exercise 6, and right answers written differently."""

import inspect

from labs_helpers.transformer.lab01 import exercises

SOURCE = inspect.getsource(exercises.scaled_update)
BODY = SOURCE.split("    ### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
FINITE = "all(gradient.isfinite().all() for gradient in gradients)"
SKIP = f"    if not {FINITE}:\n        return scale / 2, 0\n"
BACK_OFF = "return scale / 2, 0"
MASTER = "exact -= lr * (gradient.float() / scale)"
WRITE = "weight.copy_(exact)"
LOOP = "        for weight, exact, gradient in zip(weights, master, gradients, strict=True):\n"
COUNT = "    good_steps += 1\n"
GROW = "    if good_steps == growth_interval:\n        return scale * 2, 0\n"

FOREACH = """
    torch._foreach_add_  # one call for all tensors
    wide = [gradient.float() for gradient in gradients]
    if any(bool(gradient.isinf().any() | gradient.isnan().any()) for gradient in wide):
        return 0.5 * scale, 0
    torch._foreach_mul_(wide, -lr / scale)
    torch._foreach_add_(master, wide)
    for weight, exact in zip(weights, master):
        weight.data.copy_(exact.half())
    good_steps = (good_steps + 1) % growth_interval
    return (scale if good_steps else 2 * scale), good_steps
"""
FLAT = """
    flat = torch.cat([gradient.flatten() for gradient in gradients]).double()
    found_inf = not torch.isfinite(flat).all().item()
    if found_inf:
        scale *= 0.5
        good_steps = 0
    else:
        start = 0
        for index in range(len(weights)):
            count = master[index].numel()
            change = flat[start : start + count].view_as(master[index]) * lr / scale
            master[index].sub_(change)
            with torch.no_grad():
                weights[index][...] = master[index].to(torch.float16)
            start += count
        good_steps += 1
        if good_steps >= growth_interval:
            scale, good_steps = scale * 2.0, 0
    return scale, good_steps
"""
DATA = """
    for g in gradients:
        if torch.isnan(g).any() or torch.isinf(g).any():
            return scale * 0.5, 0
    for w, m, g in zip(weights, master, gradients):
        m.data[:] = m.data - (lr / scale) * g.to(torch.float32)
        w.data[:] = m.data.to(w.dtype)
    return (2 * scale, 0) if good_steps + 1 == growth_interval else (scale, 1 + good_steps)
"""
ADD = """
    with torch.no_grad():
        if not torch.stack([g.float().abs().amax() for g in gradients]).isfinite().all():
            return scale / 2.0, 0
        for i, g in enumerate(gradients):
            master[i].add_(g.float(), alpha=-lr / scale)
            weights[i].copy_(master[i])
    count = good_steps + 1
    grown = count // growth_interval
    return scale * 2**grown, count - grown * growth_interval
"""


def _bug(name, *changes):
    return ("scaled_update", name, [*changes[:-1]], changes[-1])


BUGS = [
    # the update
    _bug("float16", (MASTER, "exact -= lr * gradient / scale"), "computed in float16"),
    _bug("float16, then wide", (MASTER, "exact -= lr * (gradient / scale).float()"), "computed in float16"),
    _bug("lr in float16", (MASTER, "exact -= (lr * gradient).float() / scale"), "computed in float16"),
    _bug("a half scale", (MASTER, "exact -= lr * (gradient / torch.tensor(scale).half())"), "computed in float16"),
    _bug("not unscaled", (MASTER, "exact -= lr * gradient.float()"), "divide by the scale"),
    _bug("unscaled twice", (MASTER, "exact -= lr * (gradient.float() / scale / scale)"), "more than once"),
    _bug("scaled", (MASTER, "exact -= lr * gradient.float() * scale"), "divide the gradient by the scale, do not"),
    _bug("no lr", (MASTER, "exact -= gradient.float() / scale"), "lr is left out"),
    _bug("uphill", (MASTER, MASTER.replace("-=", "+=")), "against the gradient"),
    _bug("in place", (MASTER, "exact -= lr * gradient.div_(scale).float()"), r"gradients\[0\] was changed"),
    _bug("weights rebound", (WRITE, "weight = exact.half()"), "weight.copy_"),
    _bug("not written", ("            " + WRITE + "\n", ""), "the given weights did not change: write to"),
    _bug("masters rebound", (MASTER, MASTER.replace("-=", "= exact -")), "the given masters did not change: use `-=`"),
    _bug(
        "masters replaced",
        (LOOP, "        for i, (weight, exact, gradient) in enumerate(zip(weights, master, gradients)):\n"),
        (MASTER, "exact = master[i] = exact - lr * gradient.float() / scale"),
        r"master\[0\] is no longer the tensor",
    ),
    _bug(
        "weights replaced",
        (LOOP, "        for i, (weight, exact, gradient) in enumerate(zip(weights, master, gradients)):\n"),
        (WRITE, "weights[i] = exact.half()"),
        r"weights\[0\] is no longer the tensor",
    ),
    _bug(
        "no masters",
        (MASTER, "weight -= lr * gradient / scale"),
        (WRITE, "..."),
        "the weights are updated instead of the",
    ),
    _bug(
        "no masters, wide",
        (MASTER, ""),
        (WRITE, "weight -= lr * (gradient.float() / scale)"),
        "the weights are updated instead of the",
    ),
    _bug("from rounded weights", (MASTER, "exact.copy_(weight - lr * gradient.float() / scale)"), "rounded weights"),
    _bug("masters rounded", (WRITE, WRITE + "\n            exact.copy_(weight)"), "rounded weights"),
    _bug("both", (WRITE, "weight -= lr * (gradient.float() / scale)"), "the weights must be the rounded masters"),
    _bug(
        "too late",
        (MASTER, WRITE),
        (f"            {WRITE}\n    good", f"            {MASTER}\n    good"),
        "the weights are written before the masters",
    ),
    _bug("with gradients", ("torch.no_grad()", "torch.enable_grad()"), "under `with torch.no_grad"),
    _bug("another memory", (WRITE, "weight.data = exact.half()"), "replaces the tensor's memory: weight.copy_"),
    _bug(
        "another memory under the masters",
        (MASTER, "exact.data = exact - lr * (gradient.float() / scale)"),
        "replaces the tensor's memory: exact.copy_",
    ),
    _bug("no more gradients", (WRITE, "weight.requires_grad_(False).copy_(exact)"), "no longer requires gradients"),
    _bug("masters rounded first", (WRITE, "exact.copy_(exact.half())\n            " + WRITE), "rounded weights"),
    _bug(
        "weights first, in float16",
        (MASTER, "weight -= (lr * (gradient.float() / scale)).half()"),
        (WRITE, "exact.copy_(weight)"),
        "rounded weights",
    ),
    # what is not finite
    _bug("not looked at", (SKIP, ""), "nothing tests whether all gradients are"),
    _bug(
        "only NaN",
        (FINITE, "all(not gradient.isnan().any() for gradient in gradients)"),
        r"inf is not NaN: use isfinite\(\)",
    ),
    _bug(
        "only inf",
        (FINITE, "all(not gradient.isinf().any() for gradient in gradients)"),
        r"NaN is not inf: use isfinite\(\)",
    ),
    _bug("only +inf", (FINITE, "all(gradient.max().isfinite() for gradient in gradients)"), "−inf is not finite"),
    _bug(
        "the sum",
        (FINITE, "all(gradient.sum().isfinite() for gradient in gradients)"),
        r"test each element with isfinite\(\): a sum, a",
    ),
    _bug(
        "the norm",
        (FINITE, "all(gradient.norm().isfinite() for gradient in gradients)"),
        r"test each element with isfinite\(\): a sum, a",
    ),
    _bug("any", (FINITE, FINITE.replace(".all()", ".any()")), "the gradients are finite if all elements"),
    _bug("the first", (FINITE, "gradients[0].isfinite().all()"), "test every gradient, not only one"),
    _bug("the last", (FINITE, "gradients[-1].isfinite().all()"), "test every gradient, not only one"),
    _bug(
        "that tensor alone",
        (SKIP, f"    fine = {FINITE}\n"),
        (LOOP, LOOP + "            if not gradient.isfinite().all():\n                continue\n"),
        (COUNT, "    if not fine:\n        return scale / 2, 0\n" + COUNT),
        "skip the whole step",
    ),
    _bug(
        "in the loop",
        (SKIP, ""),
        (LOOP, LOOP + "            if not gradient.isfinite().all():\n                return scale / 2, 0\n"),
        "skip the whole step",
    ),
    _bug(
        "not skipped",
        (SKIP, f"    fine = {FINITE}\n"),
        (COUNT, "    if not fine:\n        return scale / 2, 0\n" + COUNT),
        "the step is not skipped",
    ),
    _bug(
        "below 10000",
        (FINITE, "all(gradient.abs().max() < 1e4 for gradient in gradients)"),
        r"test each element with isfinite\(\): a sum, a",
    ),
    _bug(
        "zeroed",
        (SKIP, ""),
        (MASTER, MASTER.replace("float()", "float().nan_to_num(0, 0, 0)")),
        "skip the whole step: replacing inf or NaN by",
    ),
    # the scale
    _bug("not halved", (BACK_OFF, "return scale, 0"), "not halved"),
    _bug("doubled", (BACK_OFF, "return scale * 2, 0"), "halve the scale after a skipped step, do not"),
    _bug("count kept", (BACK_OFF, "return scale / 2, good_steps"), "count good steps in a row: start again from"),
    _bug("counted", (BACK_OFF, "return scale / 2, good_steps + 1"), "count good steps in a row: start again from"),
    _bug("whole halves", (BACK_OFF, "return scale // 2, 0"), "the scale is a float: / 2, not // 2"),
    _bug("at most 65536", ("return scale * 2, 0", "return min(scale * 2, 65536.0), 0"), "the scale has no maximum"),
    _bug("two more", ("scale * 2", "scale + 2"), "the scale doubles"),
    _bug("seven more", ("scale * 2", "scale + 7"), "write down scale and good_steps after each step"),
    _bug("at least 1", (BACK_OFF, "return max(1.0, scale / 2), 0"), "the scale has no minimum: halve 1 too"),
    _bug("grows every step", (GROW, "    return scale * 2, 0\n"), "not after each"),
    _bug("never grows", (GROW, ""), "never grows"),
    _bug(
        "count goes on",
        ("return scale * 2, 0", "return scale * 2, good_steps"),
        "after the scale grows, the count starts",
    ),
    _bug(
        "count goes on, at least",
        ("return scale * 2, 0", "return scale * 2, good_steps"),
        ("good_steps == growth", "good_steps >= growth"),
        "after the scale grows, the count starts",
    ),
    _bug("one late", ("good_steps == growth", "good_steps > growth"), "count it before you compare"),
    _bug(
        "one early",
        ("good_steps == growth_interval", "good_steps >= growth_interval - 1"),
        "the scale grows one step too early",
    ),
    _bug("not counted", (COUNT, ""), "the good step is not counted"),
    _bug("four times", ("scale * 2", "scale * 4"), "the scale doubles"),
    _bug(
        "grown first",
        (SKIP, SKIP + "    if good_steps + 1 == growth_interval:\n        scale *= 2\n"),
        (GROW, "    if good_steps == growth_interval:\n        return scale, 0\n"),
        "update first, then",
    ),
    # what is returned
    _bug(
        "the count first",
        ("return scale, good_steps", "return good_steps, scale"),
        (BACK_OFF, "return 0, scale / 2"),
        "the scale comes first",
    ),
    _bug("nothing", (BACK_OFF, "return"), "returned None"),
    _bug("the scale alone", ("return scale, good_steps", "return scale"), r"expected \(scale, good_steps\)"),
    _bug("a tensor", ("return scale, good_steps", "return torch.tensor(scale), good_steps"), "expected a number"),
]

DIFFERENT = [
    ("scaled_update", [(BODY, FOREACH)]),
    ("scaled_update", [(BODY, FLAT)]),
    ("scaled_update", [(BODY, DATA)]),
    ("scaled_update", [(BODY, ADD)]),
    ("scaled_update", [(MASTER, "exact.sub_(gradient.float() * (lr / scale))"), ("scale / 2", "0.5 * scale")]),
]
