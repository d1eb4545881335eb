"""The functions that test_layers.py runs on two pairs of ranks: operators, layers and cross-entropy against one
rank."""

import sys

import cloudpickle

from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(on_ranks)


def everyone(group, *shape, seed=0):
    """(size, *shape) in float64, a row per rank, the same on every rank."""
    import torch

    return torch.randn(group.size, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def operators(comm):
    """{operator: errors of its value and of its gradient}; what comes in differs by rank where it may."""
    import torch

    from labs_helpers.tensor_parallel import operators as ops

    group, _ = on_ranks.groups(comm, "mpi", 2)
    rank, size = group.rank, group.size
    x, g = everyone(group, 3, 4, 6), everyone(group, 3, 4, 6, seed=1)
    whole_g = everyone(group, 3, 4 * size, 6, seed=2)
    along = dict(group=group, dim=1)
    total, parts = x.sum(0), torch.cat(list(x), 1)

    def part(tensor):
        return tensor.chunk(size, 1)[rank]

    expected = {
        # name: (call, input, value, gradient that comes in, gradient that goes out)
        "copy_to": (lambda t: ops.copy_to(t, group), x[0], x[0], g[rank], g.sum(0)),
        "reduce_from": (lambda t: ops.reduce_from(t, group), x[rank], total, g[0], g[0]),
        "gather_to": (lambda t: ops.gather_to(t, **along), x[rank], parts, whole_g[rank], part(whole_g.sum(0))),
        "scatter_from": (
            lambda t: ops.scatter_from(t, **along),
            x[rank],
            part(total),
            part(g[0]),
            g[0],
        ),
        "gather_whole": (lambda t: ops.gather_whole(t, **along), x[rank], parts, whole_g[0], part(whole_g[0])),
        "slice_whole": (lambda t: ops.slice_whole(t, **along), x[0], part(x[0]), part(g[0]), g[0]),
    }
    errors = {}
    for name, (call, given, value, incoming, outgoing) in expected.items():
        t = given.clone().requires_grad_()
        found = call(t)
        (gradient,) = torch.autograd.grad(found, t, incoming)
        errors[name] = (found - value).abs().max().item(), (gradient - outgoing).abs().max().item()
    return errors


def layers(comm):
    """{layer: largest error of output, input's gradient and parameters' gradients}, with biases."""
    import torch
    from torch import nn

    from labs_helpers.tensor_parallel.layers import (
        ColumnParallelLinear,
        GatheredLinear,
        RowParallelLinear,
        VocabularyParallelEmbedding,
    )
    from labs_helpers.tensor_parallel.operators import gather_to
    from labs_helpers.tensor_parallel.sharded_gradients import sum_partial_gradients
    from labs_helpers.tensor_parallel.state import gather_state, slice_state

    group, _ = on_ranks.groups(comm, "mpi", 2)
    torch.manual_seed(0)
    linear, embedding = nn.Linear(12, 8).double(), nn.Embedding(10, 8).double()
    tokens = torch.tensor([[0, 4, 5, 9], [9, 9, 1, 3]])
    x, g = torch.randn(2, 4, 12).double(), torch.randn(2, 4, 8).double()

    def same(t, dim):
        return t

    def split(t, dim):
        return group.part(t, dim)

    cases = {
        # the layer, the whole one, its input, which part of the input it takes, and of the output it gives
        "column": (ColumnParallelLinear(12, 8, group, copies=True), linear, x, (same, 0), (split, -1)),
        "row": (RowParallelLinear(12, 8, group), linear, x, (split, -1), (same, 0)),
        "row, sequence": (
            RowParallelLinear(12, 8, group, sequence_parallel=True), linear, x, (split, -1), (split, 1),
        ),
        "gathered": (GatheredLinear(12, 8, group), linear, x, (split, -1), (same, 0)),
        "embedding": (VocabularyParallelEmbedding(10, 8, group), embedding, tokens, (same, 0), (same, 0)),
        "embedding, sequence": (
            VocabularyParallelEmbedding(10, 8, group, True), embedding, tokens, (same, 0), (split, 1),
        ),
    }  # fmt: skip
    errors = {}
    for name, (layer, whole, given, (take, take_dim), (give, give_dim)) in cases.items():
        layer.double().load_state_dict(slice_state(layer, whole.state_dict(), group))
        whole.zero_grad()
        there, here = given.clone(), take(given, take_dim).clone()
        if given.is_floating_point():
            there.requires_grad_(), here.requires_grad_()
        expected, found = whole(there), layer(here)
        expected.backward(g)
        found.backward(give(g, give_dim))
        if "sequence" in name:
            sum_partial_gradients(layer, group)
        pairs = [(found, give(expected, give_dim))]
        if given.is_floating_point():
            pairs.append((here.grad, take(there.grad, take_dim)))
        gradients = gather_state(layer, {n: p.grad for n, p in layer.named_parameters()}, group)
        pairs += [(gradients[n], p.grad) for n, p in whole.named_parameters()]
        errors[name] = max((a - b).abs().max().item() for a, b in pairs)
    shared = x.clone()[:, : 4 // group.size].requires_grad_()
    gather_to(shared, group, 1).sum().backward()
    errors["gather_to adds"] = (shared.grad - group.size).abs().max().item()
    return errors


def cross_entropy(comm):
    """{case: largest error of loss and gradient}, against PyTorch's on the whole logits."""
    import torch
    import torch.nn.functional as F

    from labs_helpers.tensor_parallel.cross_entropy import vocabulary_parallel_cross_entropy

    group, _ = on_ranks.groups(comm, "mpi", 2)
    generator = torch.Generator().manual_seed(0)
    errors = {}
    for name, scale, dtype, shape in (
        ("float64", 1.0, torch.float64, (2, 5)),
        ("large", 300.0, torch.float32, (2, 5)),
        ("shifted by 10⁴", 1.0, torch.float64, (3, 1)),
        ("bfloat16", 4.0, torch.bfloat16, (2, 5)),
    ):
        logits = (scale * torch.randn(*shape, 12, generator=generator)).to(dtype) + (1e4 if "10⁴" in name else 0)
        targets = torch.randint(12, shape, generator=generator)
        whole = logits.clone().requires_grad_()
        wide = whole if dtype == torch.float64 else whole.float()
        expected = F.cross_entropy(wide.flatten(0, 1), targets.flatten())
        expected.backward()
        mine = group.part(logits, -1).clone().requires_grad_()
        before = mine.detach().clone()
        group.reset()
        loss = vocabulary_parallel_cross_entropy(mine, targets, group)
        (3 * loss).backward()
        unchanged = torch.equal(mine.detach(), before)
        gradient = (mine.grad.double() - 3 * group.part(whole.grad, -1).double()).abs().max().item()
        errors[name] = (
            (loss - expected).abs().item(),
            gradient,
            unchanged,
            dict(group.calls),
            group.payload["all_reduce"],
        )
    for name, tokens in (("too large", [[12]]), ("negative", [[-1]])):
        try:
            vocabulary_parallel_cross_entropy(torch.zeros(1, 1, 12 // group.size), torch.tensor(tokens), group)
            errors[name] = "nothing"
        except IndexError as error:
            errors[name] = str(error)
    return errors
