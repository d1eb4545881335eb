"""Split backward passes in float64 with one mistake each, as answers to exercise 7 of lab 10 do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

Tree = Mapping[str, Tensor]


class Layers(NamedTuple):
    """A chain of products and the rounds of I and W.

    chain: the number of the weight of each product, in forward order. weights: the matrices (k, n). inputs, dys: per
    micro-batch. rounds: the micro-batches whose I runs before each W.
    """

    name: str
    chain: tuple[int, ...]
    weights: list[Tensor]
    inputs: list[Tensor]
    dys: list[Tensor]
    rounds: tuple[tuple[int, ...], ...]


class Product(NamedTuple):
    """The tensors of one product in one micro-batch. number: of the weight."""

    number: int
    x: Tensor
    y: Tensor
    dy: Tensor
    dx: Tensor


def drawn(
    name: str, shapes: Sequence[tuple[int, int]], chain: tuple[int, ...], rows: tuple[int, ...], rounds: tuple
) -> Layers:
    """Draw whole numbers, whose products float32 holds exactly. shapes: (k, n) of the weights."""
    generator = torch.Generator().manual_seed(sum(map(sum, shapes)) + len(rows))

    def draw(*shape: int) -> Tensor:
        return torch.randint(-4, 5, shape, generator=generator).float()

    count = sum(map(len, rounds))
    inputs = [draw(*rows, shapes[chain[0]][1]) for _ in range(count)]
    return Layers(
        name, chain, [draw(*s) for s in shapes], inputs, [draw(*rows, shapes[chain[-1]][0]) for _ in inputs], rounds
    )


def products(layers: Layers, micro: int, dx: Callable[[Tensor, Tensor], Tensor] = torch.matmul) -> list[Product]:
    """Return the products of a micro-batch, in the order of the backward pass. dx: (∂y, W) → ∂x."""
    values = [layers.inputs[micro].double()]
    for number in layers.chain:
        values.append(values[-1] @ layers.weights[number].double().t())
    found, dy = [], layers.dys[micro].double()
    for place, number in reversed(list(enumerate(layers.chain))):
        back = dx(dy, layers.weights[number].double())
        found.append(Product(number, values[place], values[place + 1], dy, back))
        dy = back
    return found


def of_weight(product: Product) -> Tensor:
    """Return ∂yᵀ·x."""
    return product.dy.flatten(0, -2).t() @ product.x.flatten(0, -2)


def run(
    layers: Layers,
    *,
    dx: Callable[[Tensor, Tensor], Tensor] = torch.matmul,
    gradient: Callable[[Product], Tensor] = of_weight,
    add: Callable[[Tensor | None, list[Tensor]], Tensor] = lambda old, new: sum(new) + (0 if old is None else old),
) -> Tree:
    """Return y and ∂x of each micro-batch, and the weights' gradients after each W, by name.

    gradient: what a product contributes. add: the gradient after W, from the one before (or None) and the contributions
    of the weight's products, in the order of the backward passes.
    """
    tree: dict[str, Tensor] = {}
    grads: dict[int, Tensor] = {}
    for number, round in enumerate(layers.rounds):
        of_round = [product for micro in round for product in products(layers, micro, dx)]
        for micro in round:
            first, *_, last = [*products(layers, micro, dx)] * 2
            tree[f"y of micro-batch {micro}"], tree[f"∂x of micro-batch {micro}"] = first.y, last.dx
        for weight in sorted(set(layers.chain)):
            mine = [gradient(product) for product in of_round if product.number == weight]
            tree[after(weight, number)] = grads[weight] = add(grads.get(weight), mine)
    return tree


def after(weight: int, number: int) -> str:
    return f"the gradient of weight {weight} after W number {number}"


def mistakes(layers: Layers) -> Iterator[tuple[str, Callable[[], Tree]]]:
    """Yield a sentence and a function that computes the result of its mistake."""

    def made(sentence, **settings):
        return sentence, lambda: run(layers, **settings)

    if all(len(weight) == len(weight.t()) for weight in layers.weights):  # with other shapes it is an error
        yield made("∂x is ∂y·Wᵀ here; y = x·Wᵀ gives ∂x = ∂y·W", dx=lambda dy, weight: dy @ weight.t())
    yield made("xᵀ·∂y is the transpose of the weight's gradient, ∂yᵀ·x", gradient=lambda p: of_weight(p).t())
    replaced = "a gradient replaces the one that is there; add to it"
    yield made(replaced, add=lambda old, new: new[-1])
    yield made(replaced, add=lambda old, new: new[0])
    yield made("each W starts again at 0: add to the gradient that is there", add=lambda old, new: sum(new))
    one = "W uses only one entry per weight: use all of them"
    yield made(one, add=lambda old, new: new[-1] + (0 if old is None else old))
    yield made(one, add=lambda old, new: new[0] + (0 if old is None else old))
    rows = layers.inputs[0][..., 0].numel()
    yield made("the gradient is a mean over the rows; sum over them", gradient=lambda p: of_weight(p) / rows)
    yield made("∂yᵀ·x is added twice", add=lambda old, new: 2 * sum(new) + (0 if old is None else old))
    yield made("the first ∂yᵀ·x is added twice: weight.grad was None, became the sum, and the sum was added again",
               add=lambda old, new: sum(new) + (new[-1] if old is None else old))  # fmt: skip
    yield made("the gradient is subtracted", add=lambda old, new: (0 if old is None else old) - sum(new))
    yield made("∂yᵀ·x uses ∂x in place of ∂y",
               gradient=lambda p: p.dx.flatten(0, -2).t() @ p.x.flatten(0, -2))  # fmt: skip
    yield made("∂yᵀ·x uses y in place of x", gradient=lambda p: p.dy.flatten(0, -2).t() @ p.y.flatten(0, -2))
