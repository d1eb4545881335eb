"""The functions that test_parallel_transformer.py runs on four ranks. Each returns errors or counts, and asserts
nothing.

A model is compared with lab 01's, which every rank computes from the same seed. Pickled by value.
"""

import dataclasses
import sys

import cloudpickle

from tests.tensor_parallel import ranks as on_ranks
from tests.transformer import independent

cloudpickle.register_pickle_by_value(sys.modules[__name__])
for module in (on_ranks, independent):
    cloudpickle.register_pickle_by_value(module)

BATCH, LENGTH = 4, 8  # BATCH: of all data-parallel ranks together
CONFIG = dataclasses.replace(
    independent.GROUPED, vocabulary=60, width=64, heads=8, kv_heads=4, hidden=80, norm_eps=1e-2, tied=True
)
UNTIED = dataclasses.replace(CONFIG, tied=False, layers=1)


def largest(found, expected):
    """The largest error of all tensors, each against its own largest value."""
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    return max(((found[n] - e).abs().max() / e.abs().max().clamp_min(1e-30)).item() for n, e in expected.items())


def gradients_of(model):
    from labs_helpers.tensor_parallel.sharded_gradients import Gradient
    from labs_helpers.tensor_parallel.state import split_dims

    dims = split_dims(model)
    return [Gradient(p.grad, dims[name] is not None) for name, p in model.named_parameters()]


def full_model(config, dtype, attention=None):
    """(the model, its loss, its gradients by name, tokens, targets), the same on every rank."""
    import torch
    import torch.nn.functional as F

    from labs_helpers.transformer import Transformer
    from labs_helpers.transformer.attentions import plain

    model = independent.randomised(Transformer(config, attention or plain)).to(dtype)
    tokens, targets = torch.randint(
        config.vocabulary, (2, BATCH, LENGTH), generator=torch.Generator().manual_seed(1)
    ).unbind(0)
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    loss.backward()
    return model, loss.item(), {name: p.grad.clone() for name, p in model.named_parameters()}, tokens, targets


def against_unsharded(config, dtype_name, way, tp, options, comm):
    """Errors of the loss, the gradients and the state gathered back; what was sent, and what the formula says."""
    import torch

    from labs_helpers.communication.gradient_average import GradientAverage
    from labs_helpers.tensor_parallel import ParallelTransformer, traffic
    from labs_helpers.tensor_parallel.sharded_gradients import clip_gradients, sum_partial_gradients
    from labs_helpers.tensor_parallel.state import gather_state

    group, across = on_ranks.groups(comm, way, tp)
    dtype = getattr(torch, dtype_name)
    full, loss, gradients, tokens, targets = full_model(config, dtype)
    model = ParallelTransformer.from_full(config, full.state_dict(), group, **options)
    state = gather_state(model, model.state_dict(), group)
    average = GradientAverage(model.parameters(), across, bucket_bytes=30_000)
    mine = slice(across.rank * BATCH // across.size, (across.rank + 1) * BATCH // across.size)
    group.reset(), across.reset()
    my_loss = model.loss(tokens[mine], targets[mine])
    forward = dict(group.calls)
    my_loss.backward()
    average.finish()
    if model.sequence_parallel:
        sum_partial_gradients(model, group)
    sent = group.bytes_sent + across.bytes_sent, group.messages_sent, sum(across.payload.values())
    backward = {name: calls - forward.get(name, 0) for name, calls in group.calls.items()}
    rows = traffic.step_traffic(
        config, BATCH // across.size, LENGTH, tp, across.size, full.norm.weight.itemsize, **options
    )
    by_formula = (
        traffic.bytes_sent(rows, tp, across.size),
        traffic.messages_sent([row for row in rows if row.group == "tp"], tp),
        sum(row.payload for row in rows if row.group == "dp"),
    )
    found = gather_state(model, {name: p.grad for name, p in model.named_parameters()}, group)
    whole_loss = across.all_reduce(my_loss.detach()).item() / across.size
    norm = clip_gradients(gradients_of(model), group, 0.1)
    expected_norm = torch.nn.utils.clip_grad_norm_(full.parameters(), 0.1).item()
    clipped = gather_state(model, {name: p.grad for name, p in model.named_parameters()}, group)
    return {
        "loss": abs(whole_loss - loss) / loss,
        "gradients": largest(found, gradients),
        "clipped": max(
            abs(norm / expected_norm - 1), largest(clipped, {name: p.grad for name, p in full.named_parameters()})
        ),
        "state": largest(state, full.state_dict()),
        "sent": sent,
        "by formula": by_formula,
        "forward": forward,
        "backward": backward,
        "buckets": len(average.buckets),
        "parameters": sum(p.numel() for p in model.parameters()) == traffic.parameters_per_rank(config, tp),
    }


def freed(comm):
    """By scheme, how much is left of a sharded model that was trained and dropped, and of what averaged its
    gradients."""
    import torch

    from labs_helpers.communication.gradient_average import GradientAverage
    from labs_helpers.tensor_parallel import ParallelTransformer
    from labs_helpers.transformer import Transformer

    tokens = torch.randint(CONFIG.vocabulary, (2, BATCH, LENGTH))

    def train(way, options):
        group, across = on_ranks.groups(comm, way, 2)
        model = ParallelTransformer.from_full(CONFIG, Transformer(CONFIG).state_dict(), group, **options)
        average = GradientAverage(model.parameters(), across)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            model.loss(*tokens).backward()
            average.finish()
            optimizer.step()
        return [average, *model.modules(), *model.parameters()]

    schemes = ({}, {"sequence_parallel": True}, {"scheme": "naive"})
    return {
        (way, str(options)): on_ranks.left_over(lambda way=way, options=options: train(way, options))
        for way in ("own", "torch")
        for options in schemes
    }


def compiled_blocks(comm):
    """Largest errors of loss and gradients of a model whose blocks are compiled against the same model uncompiled: each
    one graph, all-reduces and all; and with sequence parallelism, whose collectives end a graph each and are counted.
    On the first two ranks."""
    import torch

    from labs_helpers.tensor_parallel import ParallelTransformer

    group, _ = on_ranks.groups(comm, "torch", 2)
    if comm.rank >= 2:  # a second group would compile the same: seconds on each rank
        return 0.0
    full, _, _, tokens, targets = full_model(UNTIED, torch.float64)
    worst = 0.0
    for sequence_parallel in (False, True):
        found, outside = [], []
        for compiled in (False, True):
            model = ParallelTransformer.from_full(UNTIED, full.state_dict(), group, sequence_parallel=sequence_parallel)
            group.reset()
            for block in model.blocks if compiled else ():
                block.compile(backend="aot_eager", fullgraph=not sequence_parallel, dynamic=False)
            loss = model.loss(tokens, targets)
            loss.backward()
            found.append([loss.detach(), *(p.grad for p in model.parameters())])
            outside.append((group.calls["all_gather"], group.calls["reduce_scatter"]))
        assert outside[0] == outside[1] and (min(outside[1]) > 0) == sequence_parallel, outside
        worst = max(worst, *((a - b).abs().max().item() for a, b in zip(*found, strict=True)))
    return worst


def against_dtensor(comm):
    """Errors of loss and gradients against torch.distributed.tensor.parallel, 2 × 2 ranks, the data not split."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    from labs_helpers.tensor_parallel import ParallelTransformer
    from labs_helpers.tensor_parallel.state import gather_state

    group, _ = on_ranks.groups(comm, "torch", 2)
    full, _, _, tokens, targets = full_model(UNTIED, torch.float64)
    state = {name: tensor.clone() for name, tensor in full.state_dict().items()}
    model = ParallelTransformer.from_full(UNTIED, state, group)
    loss = model.loss(tokens, targets)
    loss.backward()
    found = gather_state(model, {name: p.grad for name, p in model.named_parameters()}, group)

    full.zero_grad()
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))["tp"]
    plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "output": ColwiseParallel(output_layouts=Replicate()),
    }
    for name in ("attention.wq", "attention.wk", "attention.wv", "mlp.gate", "mlp.up"):
        plan[f"blocks.*.{name}"] = ColwiseParallel()
    for name in ("attention.wo", "mlp.down"):
        plan[f"blocks.*.{name}"] = RowwiseParallel()
    # `logits` reads output.weight; as a module call its hooks gather the result.
    full.logits = lambda x: full.output(full.norm(x))
    parallelize_module(full, mesh, plan)
    theirs = F.cross_entropy(full(tokens).flatten(0, 1), targets.flatten())
    theirs.backward()
    expected = {
        name: p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad for name, p in full.named_parameters()
    }
    return abs(loss.item() - theirs.item()), largest(found, expected)


def training_on_two_layouts(comm):
    """Six steps of AdamW, three as dp 2 × tp 2 and three as 1 × 4 from the gathered state: errors of losses, weights.

    Attention is PyTorch's here, and the second layout computes each block twice (checkpointing).
    """
    import torch
    import torch.nn.functional as F

    from labs_helpers.communication.gradient_average import GradientAverage
    from labs_helpers.tensor_parallel import ParallelTransformer
    from labs_helpers.tensor_parallel.sharded_gradients import clip_gradients
    from labs_helpers.tensor_parallel.state import gather_state, slice_state
    from labs_helpers.transformer.attentions import sdpa
    from labs_helpers.transformer.train import adamw

    full, _, _, tokens, targets = full_model(CONFIG, torch.float64, sdpa)
    state = {name: tensor.clone() for name, tensor in full.state_dict().items()}
    optimizer, losses = adamw(full, 1e-2), []
    for _ in range(6):
        optimizer.zero_grad()
        losses.append(F.cross_entropy(full(tokens).flatten(0, 1), targets.flatten()))
        losses[-1].backward()
        torch.nn.utils.clip_grad_norm_(full.parameters(), 0.5)
        optimizer.step()

    moments, errors = {}, []
    for turn, tp in enumerate((2, 4)):
        group, across = on_ranks.groups(comm, "own", tp)
        model = ParallelTransformer.from_full(CONFIG, state, group, sdpa)
        model.segments = [1] * CONFIG.layers if turn else []
        average, optimizer = GradientAverage(model.parameters(), across), adamw(model, 1e-2)
        for key, whole in moments.items():
            parts = slice_state(model, whole, group)
            for name, p in model.named_parameters():
                optimizer.state[p][key] = parts[name]
                optimizer.state[p]["step"] = torch.tensor(3.0)
        mine = slice(across.rank * BATCH // across.size, (across.rank + 1) * BATCH // across.size)
        for step in range(3):
            optimizer.zero_grad()
            loss = model.loss(tokens[mine], targets[mine])
            loss.backward()
            average.finish()
            clip_gradients(gradients_of(model), group, 0.5)
            optimizer.step()
            mean = across.all_reduce(loss.detach()) / across.size
            errors.append((mean - losses[3 * turn + step]).abs().item())
        state = gather_state(model, model.state_dict(), group)
        for key in ("exp_avg", "exp_avg_sq"):
            moments[key] = gather_state(model, {n: optimizer.state[p][key] for n, p in model.named_parameters()}, group)
    return max(errors), largest(state, full.state_dict()), (losses[0] - losses[-1]).item()


def bfloat16(comm):
    """Relative error of a sharded model's loss and gradients in bfloat16, against float64's of the same weights."""
    import torch

    from labs_helpers.tensor_parallel import ParallelTransformer
    from labs_helpers.tensor_parallel.state import gather_state

    results = []
    for way in on_ranks.WAYS:
        group, _ = on_ranks.groups(comm, way, 4)
        full, loss, gradients, tokens, targets = full_model(CONFIG, torch.float64)
        half = {name: tensor.bfloat16() for name, tensor in full.state_dict().items()}
        model = ParallelTransformer.from_full(CONFIG, half, group)
        mine = model.loss(tokens, targets)
        mine.backward()
        found = gather_state(model, {name: p.grad.double() for name, p in model.named_parameters()}, group)
        norms = [torch.cat([t.flatten() for t in g.values()]) for g in (found, gradients)]
        results.append((abs(mine.item() / loss - 1), ((norms[0] - norms[1]).norm() / norms[1].norm()).item()))
    return results
