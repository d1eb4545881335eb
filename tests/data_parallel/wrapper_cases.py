"""The functions that test_wrappers.py runs on four ranks, in groups of one to four. Pickled by value."""

import sys

import cloudpickle

from tests.data_parallel import models
from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(models)

# How the four ranks are divided into groups, which work at the same time.
DIVISIONS = {"4": [[0, 1, 2, 3]], "2 + 2": [[0, 2], [1, 3]], "1 + 3": [[0], [1, 2, 3]]}
WRAPPERS = ("naive", "flat", "overlapped", "coalesced", "bucketed", "one bucket")
_groups = {}


def connect(comm):
    """Start gloo and make the groups, once per process."""
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed as torch_communication
    from labs_helpers.data_parallel.ddp.nccl_group import new_overlapping_group

    torch_communication.start(comm, "gloo")
    for division, groups in DIVISIONS.items():
        for members in groups:
            group = new_overlapping_group(members)
            if comm.rank in members:
                _groups[division] = (group, members.index(comm.rank), len(members))
    return dist.get_world_size()


def wrap(name, module, group, **options):
    from labs_helpers.data_parallel import BucketedDDP, FlatDDP, NaiveDDP, OverlappedDDP

    small = {"bucket_mb": 300 / 2**20, "first_bucket_mb": 100 / 2**20}
    make, settings = {
        "naive": (NaiveDDP, {}),
        "flat": (FlatDDP, {}),
        "overlapped": (OverlappedDDP, {}),
        "coalesced": (OverlappedDDP, {"coalesce_mb": 300 / 2**20}),
        "bucketed": (BucketedDDP, small),
        "one bucket": (BucketedDDP, {"first_bucket_mb": 25.0}),
    }[name]
    return make(module, group, **settings, **options)


def trainings(wrapper, size):
    """List (optimizer, kind of model): all difficulties together, and each alone, to locate an error."""
    return models.AT_ONCE + (models.ONE_BY_ONE if size == 4 and wrapper in ("overlapped", "bucketed") else ())


def trained(division, wrapper, comm):
    """Return, by optimizer and kind of model, the largest differences from one process and between the ranks."""
    group, rank, size = _groups[division]
    results = {}
    for optimizer, kind in trainings(wrapper, size):
        ddp = wrap(wrapper, models.make(kind, seed=rank), group)  # what rank 0 has, counts
        mine = models.on_ranks(ddp, kind, optimizer, rank)
        expected = models.on_one_process(kind, optimizer, size)
        results[optimizer, kind] = (largest(mine, expected), spread(mine, ddp.group))
    return results


def against_torch(division, comm):
    """Return, by kind and wrapper, the largest difference from DistributedDataParallel with a single bucket."""
    from torch.nn.parallel import DistributedDataParallel

    group, rank, _ = _groups[division]
    results = {}
    for kind in ("tied", "sometimes unused"):
        unused = {"find_unused_parameters": kind == "sometimes unused"}
        theirs = DistributedDataParallel(models.make(kind), process_group=group, **unused)
        expected = models.on_ranks(theirs, kind, "AdamW", rank, finish=False)
        for wrapper in WRAPPERS:
            mine = models.on_ranks(wrap(wrapper, models.make(kind), group, **unused), kind, "AdamW", rank)
            results[kind, wrapper] = largest(mine, expected)
    return results


def exact(division, wrapper, comm):
    """Return the error with integers (exact in any order), and the cases of no user, one user, and float16."""
    import torch
    from torch import nn

    group, rank, size = _groups[division]
    torch.manual_seed(1)
    x = torch.randint(-4, 5, (size, 5, 8)).double()
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).double()
    model.unused = nn.Parameter(torch.ones(3))
    for p in model.parameters():
        p.data = torch.randint(-4, 5, p.shape).to(p.dtype)
    whole = [p.detach().clone().requires_grad_() for p in model.parameters() if p is not model.unused]
    ddp = wrap(wrapper, model, group, find_unused_parameters=True)
    ddp(x[rank]).sum().backward()
    ddp.finish()
    weight, bias, weight2, bias2 = whole
    (((x.flatten(0, 1) @ weight.T + bias).relu() @ weight2.T + bias2).sum()).backward()
    found = [p.grad for p in model.parameters() if p is not model.unused]
    results = {"error": max((g - p.grad / size).abs().max().item() for g, p in zip(found, whole, strict=True))}
    results["unused keeps None"] = model.unused.grad is None
    zeros = wrap(wrapper, nn.ParameterList([torch.ones(2), torch.ones(3)]), group)
    if rank == 0:  # the others have nothing at all to say
        zeros.module[0].sum().backward()
    zeros.finish()
    mean = torch.tensor(1.0) / size
    results["one rank alone"] = bool((zeros.module[0].grad == mean).all() and (zeros.module[1].grad == 0).all())
    half = wrap(wrapper, nn.ParameterList([torch.ones(3).half()]), group)
    (half.module[0] * 40_000).sum().backward()
    half.finish()
    results["no overflow"] = half.module[0].grad.allclose(torch.tensor(40_000.0).half(), rtol=1e-3)
    return results


def compressed(comm):
    """Return, by hook and wrapper, the largest differences between the four ranks and from their start."""
    from labs_helpers.data_parallel.compression.int8 import Int8
    from labs_helpers.data_parallel.compression.power_sgd import PowerSGD
    from labs_helpers.data_parallel.compression.top_k import TopK

    group, rank, _ = _groups["4"]
    results = {}
    for hook in (lambda: TopK(0.1), Int8, PowerSGD):
        for wrapper in ("flat", "bucketed"):
            ddp = wrap(wrapper, models.make(models.EVERYTHING), group, hook=hook())
            mine = models.on_ranks(ddp, models.EVERYTHING, "SGD", rank)
            change = largest(mine, models.state(models.make(models.EVERYTHING)))
            results[repr(ddp.hook), wrapper] = (spread(mine, ddp.group), change)
    return results


def freed(wrapper, comm):
    """Train a wrapped model and drop it; return how much remains, by the reference that is kept."""
    from labs_helpers.data_parallel.compression.power_sgd import PowerSGD

    group, rank, _ = _groups["4"]
    kept = []

    def train(keep_loss=False, **options):
        ddp = wrap(wrapper, models.make(models.EVERYTHING), group, **options)
        models.on_ranks(ddp, models.EVERYTHING, "AdamW", rank)
        if keep_loss:  # its graph holds the parameters, as any does
            kept.append(models.loss(ddp, "", *models.batches(0, 0), rank, 0))
            kept[-1].backward()
            ddp.finish()
            return [ddp, ddp.module]
        return [ddp, ddp.module, *ddp.parameters()]

    found = {"nothing": on_ranks.left_over(train), "the loss": on_ranks.left_over(lambda: train(keep_loss=True))}
    if wrapper in ("flat", "bucketed", "one bucket"):
        hook = PowerSGD()
        found["the hook"] = on_ranks.left_over(lambda: train(hook=hook))
    return found


def counted(wrapper, comm):
    """Return calls, bytes, the messages started before the first layer's gradient arrived, and gradients' addresses."""
    import torch
    from torch import nn

    group, _, _ = _groups["2 + 2"]
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(4)])
    ddp = wrap(wrapper, model, group)
    ddp.group.reset()
    seen = {"sizes": [sum(p.nbytes for p in b.parameters) for b in getattr(ddp, "buckets", [])]}
    places = []
    for step in range(3):
        ddp.zero_grad(set_to_none=step == 1)
        h = model[0](torch.ones(2, 8))
        h.register_hook(lambda _: seen.__setitem__("started", sum(ddp.group.calls.values())))
        model[1:](h).sum().backward()
        ddp.finish()
        places.append([p.grad.data_ptr() for p in model.parameters()])
        if step == 0:
            seen["calls"], seen["payload"] = dict(ddp.group.calls), dict(ddp.group.payload)
            seen["bytes sent"] = ddp.group.bytes_sent
            seen["started early"] = seen.pop("started")
    seen["kept in place"] = places[0] == places[1] == places[2]
    return seen


def largest(mine, other):
    return max((mine[name] - other[name]).abs().max().item() for name in mine)


def spread(mine, group):
    """Return the largest difference between the ranks of the group."""
    import torch

    flat = torch.cat([x.flatten().double() for x in mine.values()])
    return (group.all_gather(flat[None]) - flat).abs().max().item()
