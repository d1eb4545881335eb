"""Small models with the cases that wrappers must handle, and their training in one process. Pickled by value."""

import functools
import sys

import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the ranks do not know the tests' folders

WORDS, WIDTH, BATCH, LENGTH = 11, 6, 2, 3
EVERYTHING = "tied, frozen, sometimes unused, mixed dtypes, strides"
AT_ONCE = (("SGD", EVERYTHING), ("AdamW", EVERYTHING))
ONE_BY_ONE = tuple(zip(("SGD", "AdamW") * 3, ("plain", *EVERYTHING.split(", ")), strict=True))


def make(kind, seed=0):
    """Return a model that maps token numbers (BATCH, LENGTH) to logits."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(WORDS, WIDTH)
            self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
            self.convolution = nn.Conv2d(2, 2, 3, padding=1)
            self.norm = nn.BatchNorm1d(WIDTH)
            self.scale = nn.Parameter(torch.rand(()))
            self.head = nn.Linear(WIDTH, WORDS, bias=False)
            if "tied" in kind:
                self.head.weight = self.embedding.weight
                self.layers[2].bias = self.layers[0].bias
            if "frozen" in kind:
                self.norm.weight.requires_grad_(False)
                self.layers[1].weight.requires_grad_(False)
            if "mixed dtypes" in kind:
                self.layers[0].double(), self.layers[2].double()
            if "strides" in kind:
                self.convolution.to(memory_format=torch.channels_last)
                self.head.weight.data = self.head.weight.data.t().contiguous().t()

        def forward(self, x, skip=False):
            h = self.embedding(x)
            for number, layer in enumerate(self.layers):
                if not (skip and number == 1):
                    h = h + layer(h.to(layer.weight.dtype)).tanh().to(h.dtype)
            h = self.convolution(h.unflatten(-1, (2, -1)).transpose(1, 2)).transpose(1, 2).flatten(-2) * self.scale
            return self.head(self.norm(h.transpose(1, 2)).transpose(1, 2))

    torch.manual_seed(seed)
    return Model()


def batches(step, micro):
    """Return tokens and targets of one micro-batch for up to four ranks, (4, BATCH, LENGTH) each."""
    import torch

    generator = torch.Generator().manual_seed(10 * step + micro)
    return torch.randint(WORDS, (2, 4, BATCH, LENGTH), generator=generator)


def loss(model, kind, tokens, targets, rank, step):
    import torch

    skip = "sometimes unused" in kind and rank == step % 2
    logits = model(tokens[rank], skip)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets[rank].flatten())


# With a smaller eps, AdamW would make a step of the noise in a gradient of 0, such as a bias' before BatchNorm.
OPTIMIZERS = {"SGD": {"lr": 0.3, "momentum": 0.9, "weight_decay": 0.1}, "AdamW": {"lr": 0.02, "eps": 0.01}}
STEPS = 4


def training(parameters, optimizer, add_gradients):
    """Train four steps: the second has two micro-batches, the third clips, the fourth keeps its gradients' memory.

    add_gradients(step, micro, last): computes the means of all ranks' gradients.
    """
    import torch

    optimizer = getattr(torch.optim, optimizer)(parameters, **OPTIMIZERS[optimizer])
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=step != 3)
        micros = 2 if step == 1 else 1
        for micro in range(micros):
            add_gradients(step, micro, micro == micros - 1)
        if step == 2:
            norm = torch.nn.utils.clip_grad_norm_(parameters, 0.01)
            assert norm > 0.01
        optimizer.step()


def state(model):
    """Return the trained parameters, without BatchNorm's running averages, which differ between ranks."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@functools.cache
def on_one_process(kind, optimizer, ranks):
    """Train in one process that computes all ranks' gradients in turn; return the parameters."""
    model = make(kind)
    parameters = [p for p in model.parameters() if p.requires_grad]

    def add_gradients(step, micro, last):
        import torch

        if not last:
            return
        means = [torch.zeros_like(p) for p in parameters]
        for rank in range(ranks):
            model.zero_grad()
            for each in range(micro + 1):
                loss(model, kind, *batches(step, each), rank, step).backward()
            for mean, p in zip(means, parameters, strict=True):
                mean += 0 if p.grad is None else p.grad / ranks
        for p, mean in zip(parameters, means, strict=True):
            p.grad = mean

    training(parameters, optimizer, add_gradients)
    return state(model)


def on_ranks(ddp, kind, optimizer, rank, finish=True):
    """Train a wrapped model; return its parameters. finish: whether to call the wrapper's finish()."""
    from contextlib import nullcontext

    parameters = [p for p in ddp.parameters() if p.requires_grad]

    def add_gradients(step, micro, last):
        with nullcontext() if last else ddp.no_sync():
            loss(ddp, kind, *batches(step, micro), rank, step).backward()
            if finish:
                ddp.finish()

    training(parameters, optimizer, add_gradients)
    return state(ddp.module)
