"""The functions that test_on_gpus.py runs, with one rank per GPU over NCCL. Pickled by value."""

import gc
import sys

import cloudpickle

from tests.data_parallel.zero import models

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(models)

STEPS = 4


def start(comm):
    import torch
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed as torch_communication

    torch.cuda.set_device(comm.rank)
    if not dist.is_initialized():
        torch_communication.start(comm, "nccl")
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.device("cuda", comm.rank)


def requested():
    """Bytes of the GPU's memory that tensors have asked for; the allocator may have given each up to 1 MB more."""
    import torch

    torch.cuda.synchronize()
    return torch.cuda.memory_stats().get("requested_bytes.all.current", 0)


def trained(stage, settings, comm):
    """Errors of weights and optimizer's states against one process on the CPU, in float64; where what is held lies."""
    import torch

    from labs_helpers.data_parallel import clip_gradients
    from labs_helpers.data_parallel.zero.memory import held_bytes
    from labs_helpers.data_parallel.zero.state import load_whole_state, whole_state

    device = start(comm)
    kind, options = models.OPTIMIZERS["AdamW"]
    alone = models.Net().double()
    plain = kind(models.param_groups(alone), **options)
    model = models.Net(seed=comm.rank).double()
    if "device" in settings:
        settings = {**settings, "device": device}
    else:
        model.to(device)
    zero = models.make(stage, model, "AdamW", models.param_groups(model), find_unused_parameters=True, **settings)
    norms = []
    for step in range(STEPS):
        batches = models.data(step, comm.size)
        models.mean_backward(alone, batches, comm.size, spare=step != 2)
        expected = torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.7)
        plain.step()
        models.loss_of(model, batches[0][comm.rank].to(device), spare=step != 2).backward()
        norms.append(abs(clip_gradients(zero, 0.7).item() / expected.item() - 1))
        zero.step()
        zero.zero_grad()
        if step == 1:
            load_whole_state(zero, whole_state(zero))
    state = whole_state(zero)
    pinned = [b.owned.home.is_pinned() for b in zero.buckets if b.trained] if settings.get("offload") else [True]
    return {
        "weights": models.largest_error(state["model"], alone.state_dict()),
        "states": models.largest_error(models.by_entry(state["optimizer"]), models.by_entry(plain.state_dict())),
        "norms": max(norms),
        "on the GPU": held_bytes(zero, "cuda"),
        "held": held_bytes(zero),
        "pinned": all(pinned),
    }


def large(stage, settings, comm):
    """Blocks large enough for collectives to run beside the computation: bfloat16, fused AdamW, three steps with and
    without overlap, bit for bit; bytes allocated after a step, and held."""
    import torch
    from torch import nn

    from labs_helpers.data_parallel import ZeRO1, ZeRO2, ZeRO3
    from labs_helpers.data_parallel.zero.memory import held_bytes
    from labs_helpers.data_parallel.zero.state import whole_state

    device = start(comm)

    def run(**more):
        gc.collect()  # a model and its ZeRO hold each other
        before = requested()
        torch.manual_seed(0)
        blocks = [nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(12)]
        model = nn.Sequential(nn.Linear(64, 1024), *blocks).to(device)
        stages = {"1": ZeRO1, "2": ZeRO2, "3": ZeRO3}
        units = {"units": blocks} if stage == "3" else {"bucket_mb": 8}
        options = {"lr": 1e-3, "fused": True, "compute_dtype": torch.bfloat16}
        zero = stages[stage](model, torch.optim.AdamW, **options, **units, **settings, **more)
        for step in range(3):
            generator = torch.Generator(device).manual_seed(10 * step + comm.rank)
            x = torch.randn(512, 64, device=device, dtype=torch.bfloat16, generator=generator)
            model(x).float().square().mean().backward()
            zero.step()
            zero.zero_grad()
        weights = whole_state(zero)["model"]
        del x
        return weights, requested() - before, sum(held_bytes(zero, "cuda").values())

    plain, _, _ = run(**({"prefetch": False} if stage == "3" else {"overlap_gather": False}))
    # Each run leaves cuBLAS workspaces for the streams that it was the first to use, so the third one is looked at.
    run(**({"prefetch": True} if stage == "3" else {"overlap_gather": True}))
    overlapped, allocated, held = run(**({"prefetch": True} if stage == "3" else {"overlap_gather": True}))
    return {"same": models.largest_error(overlapped, plain), "allocated": allocated, "held": held}


def dropped(comm):
    """Bytes that are allocated on the GPU after each of 20 wrappers that were trained and dropped, above what one of
    each kind has left: workspaces, and no models."""
    import torch
    from torch import nn

    from labs_helpers.data_parallel import BucketedDDP, OverlappedDDP

    device = start(comm)
    kinds = ["overlapped", "coalesced", "bucketed", "1", "1 all_reduce", "2", "3"]

    def train(kind):
        blocks = [nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(4)]
        model = nn.Sequential(*blocks).to(device)
        if kind[0].isdigit():
            own = {"units": blocks} if kind == "3" else {"overlap_gather": True, "bucket_mb": 8}
            wrapper = optimizer = models.make(kind, model, "AdamW", **own)
        else:
            make = BucketedDDP if kind == "bucketed" else OverlappedDDP
            wrapper = make(model, **({"coalesce_mb": 8} if kind == "coalesced" else {}))
            optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            model(torch.randn(64, 1024, device=device)).square().mean().backward()
            if not kind[0].isdigit():
                wrapper.finish()
            optimizer.step()
            optimizer.zero_grad()

    left = []
    for number in range(len(kinds) + 20):
        kind = kinds[number % len(kinds)]
        train(kind)
        if kind == "3":  # its model and it hold each other
            gc.collect()
        left.append(requested())
    return [after - left[len(kinds) - 1] for after in left[len(kinds) :]]
