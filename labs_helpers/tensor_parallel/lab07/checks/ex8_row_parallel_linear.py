"""Exercise 8 of lab 07: row-parallel, with one all-reduce in forward and nothing sent in backward."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import Case, Cut
from labs_helpers.tensor_parallel.lab07.checks.linear_causes import (
    alike,
    local_wrongly,
    not_summed,
    other_calls,
    own_gradient,
    summed_wrongly,
)
from labs_helpers.tensor_parallel.lab07.checks.linear_judge import Scheme, layer_lines
from labs_helpers.tensor_parallel.lab07.checks.linear_step_causes import step_mistakes

CUT = Cut(x=-1, weight=0)
NOTHING = "grad_out is whole on every rank, and that is all that a rank's rows need"
WHY = {
    "grad_x": "each is of its rank's own features",
    "grad_weight": "each is of its rank's own rows",
    "grad_bias": "each rank has the whole grad_out, hence the whole of it",
}
CASES = (
    Case("3 ranks, 15 features to 12", 3, batch=6, length=7, features=15, width=12),
    Case("2 ranks, a rank's weight is square", 2, batch=3, length=2, features=8, width=4),
    Case("1 rank", 1, batch=2, length=3, features=5, width=4),
    Case("2 groups of 2 ranks, each with its own data", 2, batch=1, length=6, features=6, width=5, groups=2),
    Case("4 ranks, transposed and sliced tensors", 4, 3, 5, features=8, width=7, whole_numbers=False, strided=True),
    Case("2 layers on 2 ranks, in float64", 2, 2, 3, 10, 4, layers=2, dtype=torch.float64, whole_numbers=False),
)


@exercise("07/8", "row-parallel", points=15, minutes=15, reference=exercises.row_parallel_linear)
def row_parallel_linear(student):
    yield from layer_lines(student, SCHEME, CASES)


def out_causes(layer, made):
    """Their answers: out on all ranks."""
    x, weight, bias = layer.operands["x"], layer.operands["weight"], layer.operands["bias"][0]
    ranks = range(len(x))
    own = [x[r] @ weight[r] for r in ranks]
    total, p = sum(own), len(own)
    yield "bias is added once per rank: add it to the sum, after the all-reduce", alike(total + p * bias, p)
    yield "bias is not added", alike(total, p)
    yield "bias is divided by the ranks, but added once only", alike(total + bias / p, p)
    yield "bias is added to the sum on one rank alone", [total + bias * (r == 0) for r in ranks]
    yield "bias is added to the sum on one rank alone", [total + bias * (r == p - 1) for r in ranks]
    yield from summed_wrongly("out", own, made, bias)
    if p > 1:
        yield f"bias is not added; and {not_summed('out', own, made)}", own
        alone = "bias is in it on one rank alone; and the all-reduce is missing"
        yield alone, [own[r] + bias * (r == 0) for r in ranks]
        mean = "out is the sum of the ranks' parts, not their mean; and bias is not added"
        yield mean, alike(total / p, p)
    if weight[0].shape[0] == weight[0].shape[1]:
        turned = "weight is (in / p, out) as it is: x @ weight, without .T"
        yield turned, alike(sum(x[r] @ weight[r].T for r in ranks) + bias, p)
    slices = "the ranks' x are added up before the product; they are slices, and meet other rows of the weight"
    mixed = [sum(x) @ weight[r] for r in ranks]
    yield slices, [one + bias for one in mixed]
    yield slices, alike(sum(mixed) + bias, p)


def gradient_causes(layers, layer, call, name, made):
    """Their answers: a gradient on all ranks."""
    parts = layer.local(call)
    own = own_gradient(parts, name)
    p = len(own)
    yield from local_wrongly(name, own, WHY[name], whole=name == "grad_bias")
    whole = "grad_out is added up over the ranks, although it is the same whole on each: p times too large"
    yield whole, [p * one for one in own]
    yield from step_mistakes(layer, call, name)
    yield from other_calls(layers, layer, call, name, summed=False)


SCHEME = Scheme(CUT, "out", NOTHING, out_causes, gradient_causes)
