"""The functions that test_gradients.py runs on two pairs of ranks: gradients averaged in buckets."""

import sys

import cloudpickle

from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(on_ranks)


def model(tied=True):
    """Four layers, the last one with the weight of the second."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = nn.Sequential(*[nn.Linear(6, 6) for _ in range(4)], nn.Linear(6, 6)).double()
    if tied:
        layers[3].weight = layers[1].weight
    return layers


def mean_gradients(way, overlap, comm):
    """Over three steps: the largest error; buckets started before the first layer's gradient arrived; copies kept."""
    import torch

    from labs_helpers.communication.gradient_average import GradientAverage

    _, across = on_ranks.groups(comm, way, comm.size // 2)
    mine, whole = model(), model()
    average = GradientAverage([*mine.parameters(), *mine.parameters()], across, bucket_bytes=700, overlap=overlap)
    found = {"sizes": [sum(p.nbytes for p in bucket.parameters) for bucket in average.buckets], "error": 0.0}
    x = torch.randn(3, across.size, 5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for step in range(3):
        mine.zero_grad(set_to_none=step != 2)
        whole.zero_grad()
        h = mine[0](x[step, across.rank])
        h.register_hook(lambda g: found.__setitem__("started early", average.started))
        h = mine[1:](h)
        loss = h.square().mean()
        across.reset()
        loss.backward()
        found["started in backward"] = average.started
        average.finish()
        found["calls"], found["payload"] = dict(across.calls), sum(across.payload.values())
        whole(x[step].flatten(0, 1)).square().mean().backward()
        for p, q in zip(mine.parameters(), whole.parameters(), strict=True):
            found["error"] = max(found["error"], (p.grad - q.grad).abs().max().item())
    buffers = {bucket.buffer.untyped_storage().data_ptr() for bucket in average.buckets}
    found["in buckets"] = all(p.grad.untyped_storage().data_ptr() in buffers for p in mine.parameters())
    return found


def accumulated(comm):
    """Error after two micro-batches; calls during the first; error where a rank did not use a layer; messages."""
    import torch

    from labs_helpers.communication.gradient_average import GradientAverage

    _, across = on_ranks.groups(comm, "own", comm.size // 2)
    mine, whole = model(tied=False), model(tied=False)
    average = GradientAverage(mine.parameters(), across, bucket_bytes=700)
    x = torch.randn(2, across.size, 5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    messages = []
    try:
        average.finish()
    except RuntimeError as error:
        messages.append(str(error))
    with average.accumulate():
        (mine(x[0, across.rank]).square().mean() / 2).backward()
    calls = sum(across.calls.values())
    (mine(x[1, across.rank]).square().mean() / 2).backward()
    try:
        mine(x[1, across.rank]).square().mean().backward()
    except RuntimeError as error:
        messages.append(str(error))
        mine.zero_grad()
    average.finish()  # what the second backward pass left
    mine.zero_grad()
    with average.accumulate():
        (mine(x[0, across.rank]).square().mean() / 2).backward()
    (mine(x[1, across.rank]).square().mean() / 2).backward()
    average.finish()
    whole(x.flatten(0, 2)).square().mean().backward()
    error = max(
        (p.grad - q.grad).abs().max().item() for p, q in zip(mine.parameters(), whole.parameters(), strict=True)
    )

    mine.zero_grad(), whole.zero_grad()
    layers = mine[:2] if across.rank == 0 else mine  # the others are used on rank 1 alone
    layers(x[0, across.rank]).square().mean().backward()
    average.finish()
    for rank in range(across.size):
        (whole[:2] if rank == 0 else whole)(x[0, rank]).square().mean().div(across.size).backward()
    unused = max(
        (p.grad - q.grad).abs().max().item() for p, q in zip(mine.parameters(), whole.parameters(), strict=True)
    )
    average.remove()
    mine.zero_grad()
    mine(x[0, across.rank]).square().mean().backward()
    return error, calls, unused, messages, any(bucket.arrived for bucket in average.buckets)
