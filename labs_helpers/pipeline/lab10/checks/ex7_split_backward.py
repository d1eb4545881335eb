"""Check exercise 7 of lab 10: I and W of linear layers, their values, their order and their cost."""

from functools import partial

import torch
from torch.utils.flop_counter import FlopCounterMode

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, expect_tuple
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks.split_mistakes import after, drawn, mistakes, run

CASES = (
    drawn("one product", [(3, 4)], (0,), (5,), ((0,),)),
    drawn("a square weight", [(4, 4)], (0,), (6,), ((0,),)),
    drawn("sequences, x of shape (2, 3, 4)", [(5, 4)], (0,), (2, 3), ((0,),)),
    drawn("x of shape (2, 1, 3, 4)", [(5, 4)], (0,), (2, 1, 3), ((0,),)),
    drawn("two layers", [(6, 4), (3, 6)], (0, 1), (5,), ((0,),)),
    drawn("W after two micro-batches, and again after a third", [(6, 4), (3, 6)], (0, 1), (5,), ((0, 1), (2,))),
    drawn("two layers that share a weight", [(4, 4)], (0, 0), (2, 3), ((0, 1), (2,))),
)
SHAPES = "x has the shape (…, n), weight (k, n) and dy (…, k)"
ERRORS = (
    (
        r"incorrect number of gradients",
        "backward returns one gradient per argument of forward: ∂x, and None for weight",
    ),
    (r"invalid gradient at index 1", "backward returns ∂x first, and None for weight second"),
    (r"invalid gradient at index 0", f"backward returns ∂x first, in the shape of x: {SHAPES}"),
    (
        r"assign a gradient of size|assigned grad has data of a different size",
        f"weight.grad has the shape of weight, (k, n): {SHAPES}",
    ),
    (r"UnboundLocalError[^\n]*'kept'", "kept.append(…) changes the list; an assignment makes a new local name"),
    (r"not enough values to unpack[\s\S]*saved_tensors", "ctx.save_for_backward(x, weight) in forward keeps them"),
    (
        r"\+=?: ('NoneType' and 'Tensor'|'Tensor' and 'NoneType')[^\n]*\n[^\n]*\.grad\b"
        r"|'NoneType' object has no attribute '(?!grad')[^\n]*\n[^\n]*\.grad\.",
        "weight.grad is None before the first W: then the sum becomes weight.grad, and only later sums are added to it",
    ),
    (r"a leaf Variable that requires grad", "add to weight.grad, not to weight"),
    (r"shapes cannot be multiplied|must match the (existing )?size|expects? .*2D|<= 2 dimensions", SHAPES),
)
NOW = "I computes the gradient of weight at once: keep (weight, x, ∂y) for W, and return None for weight"
MORE = "I computes ∂y·W once per product, and nothing else: y is there already, and ∂yᵀ·x belongs to W"


@exercise("10/7", "a split backward pass", points=15, minutes=25, reference=exercises.split_backward)
def split_backward(student):
    comparison = Comparison("{0}", slack=1e-6, advice="compute one product with a 1 × 2 weight by hand")
    for layers in CASES:
        try:
            found = _measured(student, layers)
        except Wrong as wrong:
            wrong.case = wrong.case or layers.name
            raise
        except Exception as error:
            raise describe_error(student, error, layers.name, ERRORS) from None
        comparison.expect(layers.name, found, run(layers), partial(mistakes, layers))
        count = len(layers.chain) * len(layers.inputs)
        yield f"{layers.name}: {count} product{'s' * (count > 1)} forward, as many in I and in W"


def _measured(student, layers):
    """Return what an answer computes in each round of I and W, by name. Raises Wrong for work at the wrong time."""
    found = {}
    functions = expect_tuple("", student(), "linear", "add_weight_gradients")
    if not all(map(callable, functions)):
        raise Wrong("", "returned something other than two functions", cause="return Linear.apply, not its result")
    linear, add = functions
    weights = [torch.nn.Parameter(weight.clone()) for weight in layers.weights]
    for number, round in enumerate(layers.rounds):
        grads = [(weight.grad, _address(weight.grad)) for weight in weights]
        for micro in round:
            values = _forward_and_input(layers, micro, linear, weights)
            found[f"y of micro-batch {micro}"], found[f"∂x of micro-batch {micro}"] = values
        with FlopCounterMode(display=False) as counter:
            add()
        _expect_weights(weights, grads)
        _expect_dropped(weights, add)
        _expect_flops("W", counter, layers, len(round), "W has one product per entry, ∂yᵀ·x")
        for i, weight in enumerate(weights):
            found[after(i, number)] = weight.grad.clone()
    return found


def _forward_and_input(layers, micro, linear, weights):
    """Run one micro-batch forward and its I, product by product as stages do; return y and ∂x."""
    xs, ys = [layers.inputs[micro]], []
    grads = [None if weight.grad is None else weight.grad.clone() for weight in weights]
    with FlopCounterMode(display=False) as counter:
        for number in layers.chain:
            xs[-1] = xs[-1].clone().requires_grad_()
            ys.append(linear(xs[-1], weights[number]))
            if not getattr(ys[-1], "requires_grad", False):
                what = "None" if ys[-1] is None else "a tensor without a graph"
                cause = "return y from forward, and call Linear.apply, not Linear.forward"
                raise Wrong("", f"linear returns {what}", cause=cause)
            xs.append(ys[-1].detach())
    _expect_flops("forward", counter, layers, 1, "forward has one product, x·Wᵀ")
    gradient = layers.dys[micro]
    with FlopCounterMode(display=False) as counter:
        for x, y in zip(reversed(xs[:-1]), reversed(ys), strict=True):
            y.backward(gradient)
            gradient = x.grad
            if gradient is None:
                raise Wrong("", "backward returns None for ∂x", cause="return ∂y·W first, and None for weight second")
    for i, (weight, old) in enumerate(zip(weights, grads, strict=True)):
        same = weight.grad is old if old is None or weight.grad is None else torch.equal(weight.grad, old)
        if not same:
            raise Wrong("", f"the gradient of weight {i} changes during I", cause=NOW)
    _expect_flops("I", counter, layers, 1, MORE)
    return xs[-1], gradient


def _expect_flops(what, counter, layers, micro_batches, cause):
    """Raise Wrong if the products of a part take more than once their FLOPs."""
    rows = layers.inputs[0][..., 0].numel()
    wanted = micro_batches * sum(2 * rows * layers.weights[number].numel() for number in layers.chain)
    if (taken := counter.get_total_flops()) > wanted:
        raise Wrong("", f"{what} takes {taken:,} FLOPs; {wanted:,} are enough", cause=cause)


def _expect_weights(weights, before):
    """Raise Wrong unless W leaves gradients outside of autograd, in the old tensors."""
    for i, (weight, (old, address)) in enumerate(zip(weights, before, strict=True)):
        if weight.grad is None:
            cause = (
                "keep one entry per product in backward, with the weight itself, neither detached nor cloned, and use "
                "every entry in W"
            )
            raise Wrong("", f"the gradient of weight {i} is still None after W", cause=cause)
        if weight.grad.requires_grad:
            raise Wrong("", f"the gradient of weight {i} has a graph of its own", cause="W needs @torch.no_grad()")
        if old is not None and (weight.grad is not old or _address(old) != address):
            cause = "add in place, with += or add_: an optimizer or a bucket may hold the old tensor"
            raise Wrong("", f"W stores the gradient of weight {i} in a new tensor", cause=cause)


def _address(grad):
    """Return the address of a gradient's memory, which an assignment to .data changes."""
    return None if grad is None else grad.data_ptr()


def _expect_dropped(weights, add):
    """Raise Wrong if a second W adds anything."""
    before = [weight.grad.clone() for weight in weights]
    add()
    for i, (weight, old) in enumerate(zip(weights, before, strict=True)):
        if not torch.equal(weight.grad, old):
            cause = "W uses every entry once: go through the whole list, and leave it empty"
            raise Wrong("", f"a second W without a new I changes the gradient of weight {i}", cause=cause)
