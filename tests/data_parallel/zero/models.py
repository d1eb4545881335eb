"""The model that the tests of ZeRO train, a small one with many special cases, and its training in one process.
Pickled by value."""

import sys

import cloudpickle
import torch
from torch import nn

from tests.tensor_parallel import ranks as on_ranks

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(on_ranks)


class Block(nn.Module):
    """Shapes that no number of ranks divides, a frozen weight, and two outputs."""

    def __init__(self, frozen=False):
        super().__init__()
        self.up, self.down = nn.Linear(6, 11), nn.Linear(11, 6)
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.down.weight.requires_grad_(not frozen)

    def forward(self, x, *, shift=None):
        h = torch.tanh(self.up(x if shift is None else x + shift))
        return x + self.scale * self.down(h), {"hidden": h}


class Net(nn.Module):
    """Tokens (B, L) → logits (B, L, 13): output and embedding share their weight; `spare` is used if asked; the first
    block twice; a parameter has no elements."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(13, 6)
        self.blocks = nn.ModuleList([Block(), Block(frozen=True), Block()])
        self.spare = Block()
        self.output = nn.Linear(6, 13)
        self.output.weight = self.embedding.weight
        self.nothing = nn.Parameter(torch.zeros(0, 6))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, tokens, spare=True):
        x = self.embedding(tokens)
        for block in (*self.blocks, self.blocks[0]):
            x, more = block(x, shift=x.mean(-1, keepdim=True))
        x = x + more["hidden"].mean(-1, keepdim=True)
        if spare:
            x, _ = self.spare(x)
        return self.output(x) + self.nothing.sum()


def data(step, ranks, passes=1):
    """[pass][rank] → (tokens, targets), (2, 5) each."""
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randint(13, (passes, ranks, 2, 2, 5), generator=generator)


def loss_of(model, batch, spare=True):
    return nn.functional.cross_entropy(model(batch[0], spare=spare).flatten(0, 1).float(), batch[1].flatten())


def param_groups(model):
    """Matrices with weight decay, all else without and at another rate."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim != 2]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": others, "lr": 0.03, "weight_decay": 0.0}]


OPTIMIZERS = {
    "SGD": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01}),
    "NAdam": (torch.optim.NAdam, {"lr": 0.01}),
}


def mean_backward(model, batches, ranks, **options):
    """p.grad: the mean over ranks of each one's gradient, added up in the order of the ranks. batches: [pass][rank]."""
    total = {p: None for p in model.parameters()}
    for rank in range(ranks):
        model.zero_grad()
        for one_pass in batches[:-1]:
            (loss_of(model, one_pass[rank]) / len(batches)).backward()
        (loss_of(model, batches[-1][rank], **options) / len(batches)).backward()
        for p in total:
            if p.grad is not None:
                part = p.grad * (1 / ranks)
                total[p] = part if total[p] is None else total[p] + part
    for p, gradient in total.items():
        p.grad = gradient


def largest_error(found, expected):
    """Of all tensors, relative to the largest number of each; 0.0 only if every bit is the same."""
    worst = 0.0
    for name, e in expected.items():
        f = found[name]
        if not torch.equal(f, e):
            difference = (f.double() - e.double()).abs().max() / e.double().abs().max().clamp_min(1e-30)
            worst = max(worst, difference.item(), 1e-30)
    return worst if found.keys() == expected.keys() else float("inf")


def by_entry(state):
    """{(parameter, key): tensor} of an optimizer's state dict."""
    return {(i, key): torch.as_tensor(v) for i, entries in state["state"].items() for key, v in entries.items()}


_groups = {}


def group_of(comm, size):
    """The process group of the first `size` ranks, or None on the others. Every rank calls it."""
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed as torch_communication

    if not dist.is_initialized():
        torch_communication.start(comm, "gloo")
    if size not in _groups:
        _groups[size] = dist.new_group(list(range(size)))
    return _groups[size] if comm.rank < size else None


def make(stage, model, optimizer="SGD", params=None, **settings):
    """stage: "1", "1 all_reduce", "2", "2 all_reduce", "3" or "3 kept"."""
    from labs_helpers.data_parallel import ZeRO1, ZeRO2, ZeRO3

    number, _, variant = stage.partition(" ")
    kind, options = OPTIMIZERS[optimizer]
    if number == "3":
        settings = {"units": Block, "reshard_after_forward": variant != "kept"} | settings
    else:
        settings = {"bucket_mb": 0.0015, "reduction": variant or "reduce_scatter"} | settings
    return {"1": ZeRO1, "2": ZeRO2, "3": ZeRO3}[number](model, kind, params, **(options | settings))
