"""Exercise 7 of lab 07: column-parallel, with one all-reduce in backward and nothing sent in forward."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import Case, Cut
from labs_helpers.tensor_parallel.lab07.checks.linear_causes import (
    alike,
    local_wrongly,
    other_calls,
    own_gradient,
    summed_wrongly,
)
from labs_helpers.tensor_parallel.lab07.checks.linear_judge import Scheme, layer_lines
from labs_helpers.tensor_parallel.lab07.checks.linear_step_causes import step_mistakes

CUT = Cut(weight=1, bias=0, grad_out=-1)
NOTHING = "a rank has the whole x, and all that its columns need"
COLUMNS = "each is of its rank's own columns"
CASES = (
    Case("3 ranks, 12 features to 15", 3, batch=6, length=7, features=12, width=15),
    Case("2 ranks, a rank's weight is square", 2, batch=3, length=2, features=4, width=8),
    Case("1 rank", 1, batch=2, length=3, features=5, width=4),
    Case("2 groups of 2 ranks, each with its own data", 2, batch=1, length=6, features=5, width=6, groups=2),
    Case("4 ranks, transposed and sliced tensors", 4, 3, 5, features=7, width=8, whole_numbers=False, strided=True),
    Case("2 layers on 2 ranks, in float64", 2, 2, 3, 4, 10, layers=2, dtype=torch.float64, whole_numbers=False),
)


@exercise("07/7", "column-parallel", points=15, minutes=20, reference=exercises.column_parallel_linear)
def column_parallel_linear(student):
    yield from layer_lines(student, SCHEME, CASES)


def out_causes(layer, made):
    """Their answers: out on all ranks."""
    x, weight, bias = layer.operands["x"], layer.operands["weight"], layer.operands["bias"]
    ranks = range(len(x))
    yield "bias is not added", [x[r] @ weight[r] for r in ranks]
    yield "bias is added twice", [x[r] @ weight[r] + 2 * bias[r] for r in ranks]
    yield "bias is subtracted", [x[r] @ weight[r] - bias[r] for r in ranks]
    yield "bias is added on one rank alone", [x[r] @ weight[r] + bias[r] * (r == 0) for r in ranks]
    for by in list(ranks)[1:]:
        yield "bias is that of another rank", [x[r] @ weight[r] + bias[(r + by) % len(x)] for r in ranks]
    yield "bias is that of another rank", [x[r] @ weight[r] + bias[0] for r in ranks]
    if x[0].shape[-1] == weight[0].shape[1]:
        yield "weight is (in, out / p) as it is: x @ weight, without .T", [x[r] @ weight[r].T + bias[r] for r in ranks]
    summed = [sum(x) @ weight[r] + bias[r] for r in ranks]
    yield "x is added up over the ranks, although it is the same whole on each", summed
    products = torch.stack([x[r] @ weight[r] for r in ranks]).sum(0)
    for extra in (0, *bias):
        reduced = f"the ranks' products are added up; {COLUMNS}, and no rank needs anything from another"
        yield reduced, alike(products + extra, len(x))
    yield reduced, [products + bias[r] for r in ranks]
    yield from local_wrongly("out", layer.out, COLUMNS)


def gradient_causes(layers, layer, call, name, made):
    """Their answers: a gradient on all ranks."""
    parts = layer.local(call)
    ranks, own = len(parts["x"]), own_gradient(parts, name)
    if name != "grad_x":
        yield from local_wrongly(name, own, COLUMNS)
        yield from step_mistakes(layer, call, name)
    else:
        yield from summed_wrongly(name, own, made)
        for cause, answer in step_mistakes(layer, call, name):
            yield cause, alike(sum(answer), ranks)
            if ranks > 1:
                yield f"{cause}; and the all-reduce is missing", answer
        grad_out = sum(parts["grad_out"])
        first = "grad_out is added up before the product; what has to be added up is grad_out @ weight.T"
        own = own_gradient(parts | {"grad_out": alike(grad_out, ranks)}, name)
        yield first, own
        yield first, alike(sum(own), ranks)
    yield from other_calls(layers, layer, call, name, summed=name == "grad_x")


SCHEME = Scheme(CUT, "grad_x", NOTHING, out_causes, gradient_causes)
