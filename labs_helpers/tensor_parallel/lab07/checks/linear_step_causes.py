"""What common mistakes in a rank's own products and sums make of its gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import Layer, own_gradients
from labs_helpers.tensor_parallel.lab07.checks.linear_causes import own_gradient

OUT_FOR_GRAD = "it is computed from out in place of grad_out"
OUT_FOR_X = "it is computed from out in place of x; if forward has an `x = …`, that x is what backward sees"
BOTH = "batch and length are both to be summed up"
TOKENS = "grad_bias sums over batch and length, the first two dimensions"
SAMPLE = "one sample of the batch alone is in it"
POSITION = "one position of each sample alone is in it"


def step_mistakes(layer: Layer, call: int, name: str) -> Candidates:
    """Each answer is what the ranks compute of the gradient, before any of it is added up over them."""
    parts = layer.local(call)
    x, weight, grad_out = parts["x"], parts["weight"], parts["grad_out"]
    yield from {"grad_x": _of_x, "grad_weight": _of_weight, "grad_bias": _of_bias}[name](layer, x, weight, grad_out)
    yield f"{name} has the wrong sign", [-one for one in own_gradient(parts, name)]
    if name != "grad_bias":
        operands = zip(x, weight, layer.out, strict=True)
        yield OUT_FOR_GRAD, [own_gradients(*one)[name] for one in operands]


def _of_x(layer: Layer, x: list[Tensor], weight: list[Tensor], grad_out: list[Tensor]) -> Candidates:
    yield "grad_x is turned round: it is shaped as x", [(g @ w.T).mT for g, w in zip(grad_out, weight, strict=True)]
    if weight[0].shape[0] == weight[0].shape[1]:
        turned = "weight is to be turned round (.T) for grad_x"
        yield turned, [g @ w for g, w in zip(grad_out, weight, strict=True)]


def _of_weight(layer: Layer, x: list[Tensor], weight: list[Tensor], grad_out: list[Tensor]) -> Candidates:
    flat = [(one.flatten(0, 1), g.flatten(0, 1)) for one, g in zip(x, grad_out, strict=True)]
    own = [one.T @ g for one, g in flat]
    yield "grad_weight is turned round (.T): it is shaped as weight", [one.T for one in own]
    yield from _means(own, grad_out[0])
    for made in (layer.out, [one @ w for one, w in zip(x, weight, strict=True)]):
        yield OUT_FOR_X, [one.flatten(0, 1).T @ g for one, (_, g) in zip(made, flat, strict=True)]
    pairs = list(zip(x, grad_out, strict=True))
    yield f"{BOTH}: only length is", [one.mT @ g for one, g in pairs]
    yield f"{BOTH}: only batch is", [one.transpose(0, 1).mT @ g.transpose(0, 1) for one, g in pairs]
    for i in (0, -1):
        yield SAMPLE, [one[i].T @ g[i] for one, g in pairs]
        yield POSITION, [one[:, i].T @ g[:, i] for one, g in pairs]
    features = x[0].shape[-1]
    anew = "reshape turns nothing round, it only counts anew: flatten(0, 1).T"
    yield anew, [one.reshape(features, -1) @ g for one, (_, g) in zip(x, flat, strict=True)]
    order = "the tokens of x come in another order than those of grad_out: flatten(0, 1) of both"
    yield order, [one.transpose(0, 2).reshape(features, -1) @ g for one, (_, g) in zip(x, flat, strict=True)]


def _of_bias(layer: Layer, x: list[Tensor], weight: list[Tensor], grad_out: list[Tensor]) -> Candidates:
    yield from _means([one.sum((0, 1)) for one in grad_out], grad_out[0])
    yield f"{TOKENS}: only batch is", [one.sum(0) for one in grad_out]
    yield f"{TOKENS}: only length is", [one.sum(1) for one in grad_out]
    for dims in ((0, 1, 2), (-1,), (0, 2), (1, 2)):
        yield f"{TOKENS}, not over the features", [one.sum(dims) for one in grad_out]
    yield f"{TOKENS}; keepdim leaves them there", [one.sum((0, 1), keepdim=True) for one in grad_out]
    yield f"{TOKENS}; it is grad_out as it came", grad_out
    for i in (0, -1):
        yield SAMPLE, [one[i].sum(0) for one in grad_out]
        yield POSITION, [one[:, i].sum(0) for one in grad_out]
        yield "one token alone is in it", [one[i, i] for one in grad_out]
    batch, length, _ = grad_out[0].shape
    for number in (1, length, batch * length):
        ones = [torch.full_like(one[0, 0], number) for one in grad_out]
        yield "grad_bias is the sum of grad_out over the tokens, which is not in it", ones
    yield OUT_FOR_GRAD, [one.sum((0, 1)) for one in layer.out]


def _means(own: list[Tensor], grad_out: Tensor) -> Candidates:
    batch, length, _ = grad_out.shape
    for number in (batch * length, batch, length):
        yield "it is a mean over the tokens; their contributions add up", [one / number for one in own]
