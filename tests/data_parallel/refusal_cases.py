"""The error cases that test_wrappers.py runs on four ranks: different models, and mistakes in a training loop."""

import sys

import cloudpickle

from tests.data_parallel import models, wrapper_cases

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(wrapper_cases)

WORLD = "4"


def _message(call, kind=ValueError):
    try:
        call()
    except kind as error:
        return str(error)
    return "no error"


def refused(comm):
    """Return the message for each difference on the last rank."""
    import torch
    from torch import nn

    from labs_helpers.data_parallel import BucketedDDP

    group, rank, size = wrapper_cases._groups[WORLD]
    other = rank == size - 1

    def model(
        width=6, dtype=torch.float32, frozen=False, more=False, name="second", tied=False, turned=False, flag=True
    ):
        model = nn.Module()
        model.first = nn.Linear(4, 4)
        setattr(model, name, nn.Linear(4, width, dtype=dtype))
        getattr(model, name).weight.requires_grad_(not frozen)
        if flag:
            model.register_buffer("flag", torch.tensor(True))
        if more:
            model.third = nn.Linear(2, 2)
        if tied:
            model.second.bias = model.first.bias
        if turned:
            model.second.weight.data = model.second.weight.data.t().contiguous().t()
        return model

    differences = {
        "shape": ({}, {"width": 7}),
        "dtype": ({}, {"dtype": torch.float16}),
        "frozen": ({}, {"frozen": True}),
        "number": ({}, {"more": True}),
        "fewer": ({"more": True}, {}),
        "name": ({}, {"name": "other"}),
        "tied": ({"width": 4}, {"width": 4, "tied": True}),
        "strides": ({}, {"turned": True}),
        "buffer": ({}, {"flag": False}),
    }
    messages = {
        name: _message(lambda one=one, two=two: BucketedDDP(model(**(two if other else one)), group))
        for name, (one, two) in differences.items()
    }
    messages["settings"] = _message(lambda: BucketedDDP(model(), group, bucket_mb=25 + other))
    messages["wrapper"] = _message(lambda: wrapper_cases.wrap("naive" if other else "flat", model(), group))
    messages["two of four"] = _message(lambda: BucketedDDP(model(width=5 + rank // 2), group))
    messages["nothing"] = _message(lambda: BucketedDDP(model(), group))
    return messages


def broadcast(comm):
    """Return the tensors that differ from rank 0's after wrapping, and after `broadcast_buffers`."""
    import torch
    from torch import nn

    from labs_helpers.data_parallel import NaiveDDP

    group, rank, _ = wrapper_cases._groups[WORLD]

    def model(seed):
        generator = torch.Generator().manual_seed(seed)
        model = nn.Linear(3, 3)
        for number, dtype in enumerate((torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8)):
            model.register_buffer(f"b{number}", torch.randint(100, (2, 3), generator=generator).to(dtype))
        model.register_buffer("scalar", torch.tensor(seed))
        model.register_buffer("truth", torch.tensor([seed % 2 == 0] * 3), persistent=False)
        model.register_buffer("complex", torch.tensor([seed * 1j]))
        model.register_buffer("turned", torch.randn(3, 2, generator=generator).t())
        model.register_buffer("gaps", torch.randn(4, 4, generator=generator)[::2, ::2])
        model.register_buffer("empty", torch.zeros(0))
        model.weight.data = torch.randn(3, 3, generator=generator).t()
        model.bias.data = torch.randn(3, generator=generator).requires_grad_(False)
        return model.requires_grad_(False)

    def different(mine, other):
        named = [*mine.named_parameters(), *mine.named_buffers()]
        whole = dict([*other.named_parameters(), *other.named_buffers()])
        return [name for name, x in named if not torch.equal(x, whole[name])]

    mine = model(rank)
    if rank == 1:
        assert len(different(mine, model(0))) == 12
    ddp = NaiveDDP(mine, group)
    first = different(mine, model(0))
    mine.scalar += rank
    ddp.broadcast_buffers()
    return first, different(mine, model(0))


def mistakes(comm):
    """Return the messages, and whether a module can be wrapped again."""
    import torch
    from torch import nn

    group, rank, size = wrapper_cases._groups["2 + 2"]
    model = nn.Linear(3, 3)
    x = torch.full((3,), float(rank))
    messages = {}
    for wrapper in ("overlapped", "bucketed"):
        ddp = wrapper_cases.wrap(wrapper, model, group)
        model.zero_grad()
        ddp(x).sum().backward()
        messages[wrapper] = _message(lambda ddp=ddp: ddp(x).sum().backward(), RuntimeError)
        messages["twice", wrapper] = _message(lambda: wrapper_cases.wrap("overlapped", model, group), RuntimeError)
        ddp.finish()
        ddp.remove()
    for wrapper in wrapper_cases.WRAPPERS:
        ddp = wrapper_cases.wrap(wrapper, model, group)
        model.zero_grad()
        ddp(x).sum().backward()
        ddp.finish()
        messages["again", wrapper] = model.weight.grad[0].tolist() == [sum(range(size)) / size] * 3
        ddp.remove()
        model.zero_grad()
        ddp(x).sum().backward()
        ddp.finish()
        messages["removed", wrapper] = model.weight.grad[0].tolist() == [float(rank)] * 3
    return messages


def finished_by_bucket(comm):
    """Train with one optimizer per bucket; return the difference, and the order in which buckets finish."""
    import torch

    group, rank, size = wrapper_cases._groups[WORLD]
    results, orders = [], []
    for by_bucket in (False, True):
        ddp = wrapper_cases.wrap("bucketed", models.make("plain"), group)
        lists = [bucket.parameters for bucket in ddp.buckets] if by_bucket else [ddp.trained]
        optimizers = [torch.optim.AdamW(some, **models.OPTIMIZERS["AdamW"]) for some in lists]
        for step in range(3):
            ddp.zero_grad()
            models.loss(ddp, "plain", *models.batches(step, 0), rank, step).backward()
            if by_bucket:
                with ddp.no_sync():
                    assert list(ddp.finished()) == []
                orders.append([])
                for number in ddp.finished():
                    optimizers[number].step()
                    orders[-1].append(number)
            else:
                ddp.finish()
                optimizers[0].step()
        results.append(models.state(ddp.module))
    return wrapper_cases.largest(*results), orders, len(ddp.buckets)


def dies(comm):
    """Kill rank 1 in its second step, in the middle of backward."""
    import os
    import signal

    from labs_helpers.communication import torch_distributed as torch_communication
    from labs_helpers.data_parallel import BucketedDDP

    torch_communication.start(comm, "gloo")
    model = models.make("plain")
    ddp = BucketedDDP(model, bucket_mb=300 / 2**20)
    for step in range(3):
        ddp.zero_grad()
        value = models.loss(ddp, "plain", *models.batches(step, 0), comm.rank, step)
        if comm.rank == 1 and step == 1:
            model.layers[1].weight.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        value.backward()
        ddp.finish()


CASES = {"refused": refused, "broadcast": broadcast, "mistakes": mistakes, "finished": finished_by_bucket}
