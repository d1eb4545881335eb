"""Compute the gradients of a pipeline's step on every rank: the right ones, and those of common mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

WIDTH, TOKENS, CLASSES = 3, 4, 5
SHAPE = (TOKENS, WIDTH)  # of the activations between stages
Backward = Callable[[Tensor, Tensor], Tensor]


def stage_of(rank: int, ranks: int) -> nn.Module:
    """Return a rank's stage: rank 0 maps token numbers (4,) and the last rank returns logits (4, 5)."""
    with torch.random.fork_rng():
        torch.manual_seed(rank)
        layers: list[nn.Module] = [nn.Embedding(7, WIDTH)] if rank == 0 else []
        layers += [nn.Linear(WIDTH, WIDTH), nn.Tanh()]
        layers += [nn.Linear(WIDTH, CLASSES)] if rank == ranks - 1 else []
        return nn.Sequential(*layers)


def batch(m: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return the inputs and the targets of m micro-batches."""
    draw = torch.Generator().manual_seed(m)
    return tuple([torch.randint(high, (TOKENS,), generator=draw) for _ in range(m)] for high in (7, CLASSES))


def loss_of(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy, times 10 so that losses and gradients differ from rounding errors."""
    if target is None:
        raise TypeError("loss_of got None as its target")
    return 10 * nn.functional.cross_entropy(output, target)


def grads_of(stage: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in stage.parameters()])


def _keep(x: Tensor, dy: Tensor) -> Tensor:
    return x.grad


def each(ranks: int, m: int, sends: Backward = _keep) -> list[list[Tensor]]:
    """Return [rank][micro-batch] → the gradients of this micro-batch's loss.

    sends(x, dy): what a rank sends to the rank before it. x: its input, whose .grad is computed; dy: the gradient of
    its output.
    """
    stages, found = [stage_of(rank, ranks) for rank in range(ranks)], [[] for _ in range(ranks)]
    for tokens, target in zip(*batch(m), strict=True):
        xs, ys, x = [], [], tokens
        for stage in stages:
            xs.append(x if x is tokens else x.detach().requires_grad_())
            ys.append(stage(xs[-1]))
            x = ys[-1]
        loss = loss_of(ys[-1], target)
        (dy,) = torch.autograd.grad(loss, ys[-1], retain_graph=True)
        for rank in reversed(range(ranks)):
            stages[rank].zero_grad()
            ys[rank].backward(dy)
            found[rank].append(grads_of(stages[rank]))
            dy = sends(xs[rank], dy) if rank else dy
    return found


def mean(some: list[Tensor]) -> Tensor:
    return sum(some) / len(some)


def gradients(ranks: int, m: int, held: float = 0.0) -> list[Tensor]:
    """Return the right gradients of each rank. held: the number that fills them before the step."""
    return [held + mean(some) for some in each(ranks, m)]


def mistakes(ranks: int, m: int, held: float) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield a sentence and each rank's gradients after the step."""
    right = gradients(ranks, m)
    yield "the gradients from before the step are lost: add to them, so do not clear or replace .grad", right
    yield (
        "the gradients from before the step are divided by the number of micro-batches too: divide each loss instead",
        [held / m + one for one in right],
    )
    for sentence, wrong in _of_the_step(ranks, m):
        yield sentence, [held + one for one in wrong]


def _of_the_step(ranks: int, m: int) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield a sentence and what the step adds to each rank's gradients."""
    right = each(ranks, m)
    yield "the losses are not divided by the number of micro-batches", [sum(some) for some in right]
    yield "divided by the number of micro-batches twice", [mean(some) / m for some in right]
    yield "divided by the number of ranks; the mean is over the micro-batches", [sum(some) / ranks for some in right]
    yield "divided by the number of ranks, in addition", [mean(some) / ranks for some in right]
    once = "every rank divides by the number of micro-batches; the gradient that it receives is already divided"
    yield once, [mean(some) / m ** (ranks - 1 - rank) for rank, some in enumerate(right)]
    yield (
        "each micro-batch's gradients replace the last one's: backward adds them, so do not clear .grad",
        [some[-1] / m for some in right],
    )
    yield "only the last micro-batch counts", [some[-1] for some in right]
    yield "only the first micro-batch counts", [some[0] / m for some in right]
    yield (
        "a rank passes on the gradient that it received, which is that of its output; send x.grad",
        [mean(some) for some in each(ranks, m, lambda x, dy: dy if dy.shape == SHAPE else x.grad)],
    )
    yield (
        "a rank sends its input back instead of the input's gradient, x.grad",
        [sum(some) if rank < ranks - 1 else mean(some) for rank, some in enumerate(each(ranks, m, _input))],
    )
    yield (
        "a gradient of ones is used instead of the one that the next rank sends: y.backward(gradient)",
        [sum(some) if rank < ranks - 1 else mean(some) for rank, some in enumerate(each(ranks, m, _ones))],
    )


def each_loss(ranks: int, m: int) -> list[Tensor]:
    model = nn.Sequential(*[stage_of(rank, ranks) for rank in range(ranks)])
    return [loss_of(model(x), target).detach() for x, target in zip(*batch(m), strict=True)]


def mean_loss(ranks: int, m: int) -> Tensor:
    return mean(each_loss(ranks, m))


def losses(ranks: int, m: int) -> Iterator[tuple[str, Tensor]]:
    """Yield a sentence and the loss that the last rank returns."""
    some = each_loss(ranks, m)
    yield "the sum of the losses, not their mean", sum(some)
    yield "the loss of the last micro-batch alone", some[-1]
    yield "the loss of the last micro-batch alone, already divided by their number", some[-1] / m
    yield "the mean is divided by the number of micro-batches once more", mean(some) / m
    yield "the losses are not added: the total stays 0", torch.zeros(())


def _input(x: Tensor, dy: Tensor) -> Tensor:
    return x.detach()


def _ones(x: Tensor, dy: Tensor) -> Tensor:
    return torch.ones_like(x)
