"""Units that return outputs unknown to autograd, models read at the wrong time, and refusals, on two to four ranks.
Pickled by value."""

import sys

import cloudpickle

from tests.data_parallel.zero import models
from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(models)


def odd_units(kept, comm):
    """Units with outputs of their own kinds, an evaluation and a forward pass without backward in between: errors."""
    import torch
    from torch import nn

    class Holder:
        def __init__(self, x):
            self.x = x

    class Unit(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.linear, self.kind = nn.Linear(6, 6), kind

        def forward(self, x):
            y = 2 * self.linear(torch.tanh(x))
            return {"object": lambda: Holder(y), "view": lambda: y.unsqueeze(0), "plain": lambda: y}[self.kind]()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.units = nn.ModuleList(Unit(kind) for kind in ("plain", "object", "view", "plain"))

        def forward(self, x):
            x = self.units[1](self.units[0](x)).x
            y = self.units[2](x)
            y += 1  # written to: the hook on a view is lost
            return self.units[3](y.squeeze(0))

    group = models.group_of(comm, 2)
    if group is None:
        return None
    ours, plain = Model().double(), Model().double()
    zero = models.make("3", ours, group=group, units=Unit, reshard_after_forward=not kept)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    xs = torch.randn(4, 2, 3, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    errors, freed = [], []
    for step in range(3):
        mine = xs[step, comm.rank].clone().requires_grad_()
        ours(mine).square().mean().backward()
        theirs = xs[step].flatten(0, 1).clone().requires_grad_()
        optimizer.zero_grad()
        plain(theirs).square().mean().backward()
        errors.append((mine.grad - theirs.grad.unflatten(0, (2, 3))[comm.rank] * 2).abs().max().item())
        freed.append(all(p.isnan().all() and p.grad is None for p in ours.parameters()))
        ours(xs[3, 0]).sum()  # its backward pass never comes
        zero.step()
        zero.zero_grad()
        optimizer.step()
        with torch.no_grad():
            errors.append((ours(xs[3]) - plain(xs[3])).abs().max().item())
        freed.append(all(b.whole.untyped_storage().nbytes() == 0 for b in zero.buckets))
    expected = dict(plain.named_parameters())
    with zero.whole_parameters():
        found = {name: p.detach().clone() for name, p in ours.named_parameters()}
    freed.append(all(p.isnan().all() for p in ours.parameters()))
    errors.append(models.largest_error(found, {name: p.detach() for name, p in expected.items()}))
    zero.remove()
    ours(xs[3]).square().mean().backward()
    optimizer.zero_grad()
    plain(xs[3]).square().mean().backward()
    errors += [(p.grad - expected[name].grad).abs().max().item() for name, p in ours.named_parameters()]
    return max(errors), freed


def removed(stage, comm):
    """After remove() the model trains as a plain one: whether it has gradients, whether they were noticed, what is said
    where it is wrapped without remove(), and whether it can be afterwards."""
    group = models.group_of(comm, 2)
    if group is None:
        return None
    model = models.Net()
    zero = models.make(stage, model, group=group, **({"overlap_gather": True} if stage != "3" else {}))
    models.loss_of(model, models.data(0, 2)[0][comm.rank]).backward()
    zero.step()
    zero.zero_grad()
    try:
        models.make("2", model, group=group)
    except RuntimeError as error:
        words = str(error)
    zero.remove()
    models.loss_of(model, models.data(0, 2)[0][0]).backward()
    weights = [p for p in model.parameters() if p.requires_grad]
    plain = all(p.grad is not None and p.isfinite().all() for p in weights)
    again = models.make("2", model, group=group)
    model.zero_grad()
    models.loss_of(model, models.data(0, 2)[0][comm.rank]).backward()
    again.step()
    return plain, zero.passes.unsent, words, all(p.isfinite().all() for p in weights)


def freed(stage, comm):
    """By option, how much is left of an optimizer and its model that were trained, and then dropped; and whether the
    model alone still works where only the optimizer was dropped."""
    import torch

    from labs_helpers.data_parallel import clip_gradients

    group = models.group_of(comm, 2)
    if group is None:
        return None
    batch = models.data(0, 2)[0][comm.rank]
    kept = []

    def train(keep_loss=False, **options):
        model = models.Net()
        zero = models.make(stage, model, "AdamW", group=group, **options)
        for _ in range(2):
            loss = models.loss_of(model, batch)
            loss.backward()
            clip_gradients(zero, 1.0)
            zero.step()
            zero.zero_grad()
        if keep_loss:  # its graph holds the parameters, as any does
            kept.append(loss)
        return [model, zero] if keep_loss else [model, zero, *model.parameters(), *zero.optimizer.state]

    options = [{}, {"find_unused_parameters": True}, {"compute_dtype": torch.bfloat16}, {"offload": "optimizer"}]
    options += [{"prefetch": False}, {"offload": "parameters"}] if stage[0] == "3" else [{"overlap_gather": True}]
    found = {str(some): on_ranks.left_over(lambda some=some: train(**some)) for some in options}
    found["the loss is kept"] = on_ranks.left_over(lambda: train(keep_loss=True))
    model, _ = train(keep_loss=True, **({"overlap_gather": True} if stage[0] != "3" else {}))
    return found, bool(models.loss_of(model, batch).isfinite())


def refusals(comm):
    """What is said: {what was done: the message}."""
    import torch
    from torch import nn

    group = models.group_of(comm, 2)
    if group is None:
        return None
    said = {}

    def refused(name, function, kinds=(ValueError, RuntimeError, TypeError)):
        try:
            function()
            said[name] = "nothing"
        except kinds as error:
            said[name] = str(error)

    def make(stage="2", model=None, **settings):
        return models.make(stage, model or models.Net(), group=group, **settings)

    other = nn.Linear(3, 3 + comm.rank)
    refused("model", lambda: make(model=other))
    refused("arrangement", lambda: make(bucket_mb=0.1 * (1 + comm.rank)))
    refused("reduction", lambda: make(reduction="ring"))
    refused("offload", lambda: make(offload="all"))
    refused("offload of parameters", lambda: make(offload="parameters"))
    refused("nothing", lambda: make(params=[]))
    refused("foreign", lambda: make(params=[nn.Parameter(torch.zeros(3))]))
    model = models.Net()
    refused("set", lambda: make(model=model, params=set(model.parameters())))
    refused("set in a group", lambda: make(model=model, params=[{"params": set(model.parameters())}]))
    groups = [{"params": model.output.parameters()}, {"params": model.output.bias}]
    refused("twice", lambda: make(model=model, params=groups))
    tied = models.Net()
    refused("shared", lambda: make("3", tied, units=[tied.output, *tied.blocks]))
    refused("no such unit", lambda: make("3", units=nn.Conv2d))
    refused("not inside", lambda: make("3", units=[nn.Linear(2, 2)]))
    refused("list", lambda: make("3", tied, units=[tied.blocks]))

    pair = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    make("3", pair, units=list(pair))
    first, second = pair[comm.rank], pair[1 - comm.rank]
    refused("order of units", lambda: second(first(torch.ones(2, 3))).sum().backward())

    for stage in ("1", "3"):
        model = models.Net()
        zero = make(stage, model)
        with zero.no_sync():
            models.loss_of(model, models.data(0, 2)[0][comm.rank]).backward()
        refused(f"unsent {stage}", zero.step)
        zero.zero_grad()
        model.blocks[1].down.weight.requires_grad_(True)
        refused(f"thawed {stage}", zero.step)
    return said
