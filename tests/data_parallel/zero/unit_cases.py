"""The transformer, its memory and traffic, several passes, and refusals, on four ranks. Pickled by value."""

import gc
import sys

import cloudpickle

from tests.data_parallel.zero import models

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(models)


def transformer(stage, tied, segments, comm, **settings):
    """Lab 01's, three steps on four ranks against one process: errors of weights, and of the loss that it ends with."""
    import torch
    import torch.nn.functional as F

    from labs_helpers.data_parallel.zero.state import whole_state
    from labs_helpers.transformer import TransformerConfig
    from labs_helpers.transformer.checkpointing import checkpoint_segments
    from labs_helpers.transformer.model import Block, Transformer

    config = TransformerConfig(32, layers=3, width=16, heads=2, hidden=24, context=8, tied=tied)
    torch.manual_seed(0)
    ours, plain = Transformer(config).double(), Transformer(config).double()
    plain.load_state_dict(ours.state_dict())
    if segments:
        checkpoint_segments(ours, segments)
    models.group_of(comm, 4)
    units = {"units": Block} if stage.startswith("3") else {"bucket_mb": 0.005}
    zero = models.make(stage, ours, "AdamW", **(units | settings))
    optimizer = torch.optim.AdamW(plain.parameters(), lr=0.01)
    tokens = torch.randint(32, (4, 2, 9), generator=torch.Generator().manual_seed(1))

    def loss_of(model, some):
        return F.cross_entropy(model(some[..., :-1]).flatten(0, 1), some[..., 1:].flatten())

    for _ in range(3):
        loss_of(ours, tokens[comm.rank]).backward()
        zero.step()
        zero.zero_grad()
        loss_of(plain, tokens.flatten(0, 1)).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        difference = loss_of(ours, tokens.flatten(0, 1)) - loss_of(plain, tokens.flatten(0, 1))
    return models.largest_error(whole_state(zero)["model"], plain.state_dict()), abs(difference.item())


def wide(layers=6, width=64):
    """(model, its units): equal ones, and a larger part that belongs to none."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)]
    return nn.Sequential(nn.Linear(width, 4 * width), nn.Linear(4 * width, width), *blocks), blocks


def settings_for(stage, blocks):
    return {"units": blocks} if stage[0] == "3" else {"bucket_mb": 0.05}


def live_bytes():
    """Bytes of all tensors in this process, each memory once."""
    import torch

    gc.collect()
    storages = {}
    for x in gc.get_objects():
        if type(x) in (torch.Tensor, torch.nn.Parameter):
            storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
    return sum(storages.values())


def memory(stage, layout, size, comm):
    """Bytes held after backward and after a step, by part and counted, and how much is whole at most as stage 3
    runs."""
    import torch

    from labs_helpers.data_parallel.zero.memory import held_bytes

    group = models.group_of(comm, size)
    if group is None:
        return None
    counting = size == 4 and comm.rank == 0  # it takes a second
    before = live_bytes() if counting else 0
    model, blocks = wide()
    count = sum(p.numel() for p in model.parameters())
    settings = settings_for(stage, blocks) | ({"compute_dtype": torch.bfloat16} if layout == "bf16" else {})
    zero = models.make(stage, model, "AdamW", group=group, **settings)
    most = []
    look = lambda *_: most.append(sum(b.whole.untyped_storage().nbytes() for b in zero.buckets))  # noqa: E731
    hooks = [m.register_forward_hook(look) for m in model.modules()]
    x = torch.randn(3, 64, dtype=next(model.parameters()).dtype)
    for _ in range(2):
        model(x).square().mean().backward()
        after_backward = held_bytes(zero)
        counted = live_bytes() - before if counting else 0
        zero.step()
        zero.zero_grad()
    for hook in hooks:
        hook.remove()
    of = [b.layout.numel * b.whole.itemsize for b in zero.buckets]
    return {
        "count": count,
        "padded": sum(b.layout.numel for b in zero.buckets),
        "after backward": after_backward,
        "counted": counted,
        "after step": held_bytes(zero),
        "most": max(most),
        "root": sum(of[: -len(blocks)]),
        "unit": of[-1],
    }


def sent(stage, comm):
    """Calls and payload of the second step. How many buckets were sent before the first layer's gradients, and before
    the end of backward. In stage 3, as each unit computed, which were whole and which on their way."""
    import torch

    models.group_of(comm, 4)
    model, blocks = wide()
    zero = models.make(stage, model, "SGD", **settings_for(stage, blocks))
    whole, ahead = [], []

    def look(*_):
        whole.append([u.gathered for u in zero.units[1:]])
        ahead.append([bool(u.requests) for u in zero.units[1:]])

    if stage[0] == "3":
        for block in blocks:
            block.register_forward_pre_hook(look)
            block[0].register_forward_hook(lambda m, a, output: output.register_hook(look) and None)
    else:
        early = []
        blocks[0][0].bias.requires_grad_(False)  # from now on: nobody is to wait for its gradient
        model[0].register_forward_hook(
            lambda m, a, out: out.register_hook(lambda g: early.append(zero.reduced)) and None
        )
        send_the_rest = zero._send_the_rest
        zero._send_the_rest = lambda: (early.append(zero.reduced), send_the_rest())
    for _ in range(2):
        zero.group.reset()
        whole.clear(), ahead.clear()
        model(torch.randn(3, 64)).square().mean().backward()
        zero.step()
        zero.zero_grad()
    padded = sum(b.layout.numel for b in zero.buckets) * 4
    return {
        "calls": dict(zero.group.calls),
        "payload": {name: n / padded for name, n in zero.group.payload.items()},
        "buckets": len(zero.buckets),
        "whole": whole,
        "ahead": ahead,
        "in backward": early[-2:] if stage[0] != "3" else None,
        "root": zero.units[0].buckets[0].layout.numel * 4 / padded if stage[0] == "3" else 0,
    }


def several_passes(comm):
    """Two losses, one after the other: errors where that adds up, and the words where it is refused."""
    import torch

    from labs_helpers.data_parallel.zero.state import whole_state

    models.group_of(comm, 4)
    found = {}
    plain = models.Net().double()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9)
    models.mean_backward(plain, models.data(0, 4, passes=2), 4)
    optimizer.step()
    for stage in ("1", "1 all_reduce", "2", "2 all_reduce", "3", "3 kept"):
        model = models.Net().double()
        zero = models.make(stage, model)
        try:
            losses = [models.loss_of(model, batch[comm.rank]) / 2 for batch in models.data(0, 4, passes=2)]
            for loss in losses:  # both forward passes come before both backward passes
                loss.backward()
            zero.step()
            found[stage] = models.largest_error(whole_state(zero)["model"], plain.state_dict())
        except RuntimeError as error:
            found[stage] = str(error)
            zero.zero_grad()
            models.loss_of(model, models.data(0, 4)[0][comm.rank]).backward()  # it goes on
            zero.step()
    return found


def one_rank_differs(stage, comm):
    """A layer that rank 0 alone uses, and one that nobody uses: the error, and whether the optimizer has the states
    that it has in one process."""
    import torch
    from torch import nn

    from labs_helpers.data_parallel.zero.state import whole_state

    class Choice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(5, 5), nn.Linear(5, 5), nn.Linear(5, 5)

        def forward(self, x, both):
            return self.b(self.a(x)) if both else self.a(x)

    def make():
        torch.manual_seed(0)
        return nn.Sequential(Choice(), Choice()).double()

    models.group_of(comm, 4)
    ours, plain = make(), make()
    settings = {"units": list(ours)} if stage[0] == "3" else {"bucket_mb": 0.0001}
    zero = models.make(stage, ours, "AdamW", find_unused_parameters=True, **settings)
    kind, options = models.OPTIMIZERS["AdamW"]
    optimizer = kind(plain.parameters(), **options)
    for step in range(2):
        x = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(step), dtype=torch.float64)

        def loss_of(model, rank, x=x):
            return model[1](model[0](x[rank], rank == 0), rank == 0).square().mean()

        loss_of(ours, comm.rank).backward()
        zero.step()
        zero.zero_grad()
        optimizer.zero_grad()
        sum(loss_of(plain, rank) / 4 for rank in range(4)).backward()
        optimizer.step()
    state = whole_state(zero)
    return (
        models.largest_error(state["model"], plain.state_dict()),
        sorted(state["optimizer"]["state"]) == sorted(optimizer.state_dict()["state"]),
    )
