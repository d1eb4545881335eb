"""Training in which each rank calls different layers, under every wrapper, stage and option. Pickled by value.

All layers have the same shape, so a collective on the wrong tensor raises no error.
"""

import itertools
import random
import sys

import cloudpickle

from tests.data_parallel import wrapper_cases
from tests.data_parallel.zero import models

for _module in (sys.modules[__name__], models, wrapper_cases):
    cloudpickle.register_pickle_by_value(_module)

RANKS, WIDTH, STEPS = 3, 4, 3
SGD = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}


def _options(**values):
    return [dict(zip(values, choice, strict=True)) for choice in itertools.product(*values.values())]


BOTH = (False, True)
CONFIGURATIONS = [
    *((wrapper, options) for wrapper in wrapper_cases.WRAPPERS for options in _options(find_unused_parameters=BOTH)),
    *(
        (stage, options | where)
        for stage in ("1", "1 all_reduce", "2", "2 all_reduce")
        for where in ({"bucket_mb": 1e-6}, {"bucket_mb": 2e-4, "offload": "optimizer"})
        for options in _options(overlap_gather=BOTH, find_unused_parameters=BOTH)
    ),
    *(
        (stage, options)
        for stage in ("3", "3 kept")
        for options in _options(prefetch=BOTH, find_unused_parameters=BOTH, offload=(None, "optimizer", "parameters"))
    ),
    *(("gradient average", options) for options in _options(overlap=BOTH)),
]


def make_model():
    """A model of two units with five equal layers each.

    In every unit, two layers share a weight, one is frozen, and the unit reads the weight of one without calling it.
    """
    import torch
    from torch import nn

    class Unit(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(5))
            self.layers[3].weight = self.layers[0].weight
            self.layers[2].weight.requires_grad_(False)
            self.scale = nn.Parameter(torch.ones(WIDTH))

        def forward(self, x, chosen):
            for number in chosen:
                layer = self.layers[number]
                x = nn.functional.linear(x, layer.weight, layer.bias) if number == 4 else layer(x)
                x = torch.tanh(x)
            return x * self.scale

    torch.manual_seed(0)
    return nn.ModuleList(Unit() for _ in range(2)).double()


def losses(model, seed, step, rank):
    """Yield one loss per micro-batch, two in step 1. A rank calls any layers of each unit, in any order, or none."""
    import torch

    choose = random.Random(f"{seed} {step} {rank}")
    for _ in range(2 if step == 1 else 1):
        x = torch.tensor([[choose.uniform(-1, 1) for _ in range(WIDTH)] for _ in range(2)], dtype=torch.float64)
        for unit in model:
            x = unit(x, choose.sample(range(5), choose.randrange(6)))
        yield x.square().sum()


def expected(seed, find_unused):
    """Return the weights after the same steps in one process. Unused parameters get a gradient of 0 or None."""
    import torch

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), **SGD)
    for step in range(STEPS):
        means = {p: None if find_unused else torch.zeros_like(p) for p in model.parameters() if p.requires_grad}
        for rank in range(RANKS):
            model.zero_grad()
            for loss in losses(model, seed, step, rank):
                loss.backward()
            for p, mean in means.items():
                if p.grad is not None:
                    means[p] = p.grad / RANKS + (0 if mean is None else mean)
        for p, mean in means.items():
            p.grad = mean
        optimizer.step()
    return model.state_dict()


def trained(kind, options, seed, comm):
    """Return the largest error of this rank's weights after the steps."""
    import torch

    from labs_helpers.communication.gradient_average import GradientAverage
    from labs_helpers.communication.torch_distributed import TorchCommunication

    group = models.group_of(comm, RANKS)
    model = make_model()
    find_unused = options.get("find_unused_parameters", False)
    sharded = kind[0].isdigit()
    if sharded:
        units = {"units": list(model)} if kind[0] == "3" else {}
        wrapper = optimizer = models.make(kind, model, "SGD", group=group, **SGD, **units, **options)
        accumulate, finish = wrapper.no_sync, lambda: None
    else:
        if kind == "gradient average":
            wrapper = GradientAverage(model.parameters(), TorchCommunication(group), bucket_bytes=300, **options)
            accumulate = wrapper.accumulate
        else:
            wrapper = wrapper_cases.wrap(kind, model, group, **options)
            accumulate = wrapper.no_sync
        finish = wrapper.finish
        optimizer = torch.optim.SGD(model.parameters(), **SGD)
    for step in range(STEPS):
        with accumulate():
            passes = losses(model, seed, step, comm.rank)
            if step == 1:
                next(passes).backward()
        next(passes).backward()
        finish()
        optimizer.step()
        optimizer.zero_grad()
    if sharded:
        wrapper.remove()
    return models.largest_error(model.state_dict(), expected(seed, find_unused))
