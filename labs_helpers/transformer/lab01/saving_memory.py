"""Show two ways to save memory that silently give wrong gradients: a checkpointed first layer, and unequal
micro-batches."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pandas
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


def checkpointed_first_layer() -> pandas.DataFrame:
    """Return the norms of both layers' gradients if the first of two is checkpointed (NaN for none), and torch's
    warnings.

    The reentrant way first runs the layer without autograd. Its output then needs a gradient only if its input does,
    and the first layer's input, which is data, does not.
    """
    rows = {}
    for name, use_reentrant in {
        "no checkpoint": None,
        "use_reentrant=True": True,
        "use_reentrant=False": False,
    }.items():
        first, second = _layers()
        x, y = _batch(32)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hidden = first(x) if use_reentrant is None else checkpoint(first, x, use_reentrant=use_reentrant)
            F.cross_entropy(second(hidden), y).backward()
        norms = [torch.nan if w.grad is None else w.grad.norm().item() for w in (first[0].weight, second.weight)]
        said = "; ".join(str(warning.message) for warning in caught)
        rows[name] = {"first layer's gradient": norms[0], "second layer's": norms[1], "warning": said}
    return pandas.DataFrame.from_dict(rows, orient="index")


def accumulated(sizes: Sequence[int], weighted: bool = False) -> float:
    """Return the error of a gradient accumulated over micro-batches of these sizes, relative to the whole batch's, in
    float64.

    By default each micro-batch's mean loss is divided by the number of micro-batches; weighted: it is multiplied by the
    micro-batch's share of the batch.
    """
    x, y = _batch(sum(sizes))
    whole = _gradient([(x, y)], [1.0])
    shares = [size / sum(sizes) if weighted else 1 / len(sizes) for size in sizes]
    parts = _gradient(list(zip(x.split(list(sizes)), y.split(list(sizes)), strict=True)), shares)
    return ((parts - whole).norm() / whole.norm()).item()


def accumulation() -> pandas.DataFrame:
    """Tabulate `accumulated` for equal and unequal micro-batches of 48 sequences, by the way of combining their
    means."""
    rows = {}
    for sizes in ((24, 24), (12, 12, 12, 12), (20, 20, 8)):
        rows[" + ".join(map(str, sizes))] = {
            "mean of means": accumulated(sizes),
            "weighted by size": accumulated(sizes, weighted=True),
        }
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("micro-batches")


def _layers() -> tuple[nn.Sequential, nn.Linear]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 32), nn.Tanh()).double(), nn.Linear(32, 10).double()


def _batch(size: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(size, 16, generator=generator, dtype=torch.float64)
    return x, torch.randint(10, (size,), generator=generator)


def _gradient(parts: Sequence[tuple[Tensor, Tensor]], shares: Sequence[float]) -> Tensor:
    """Return all parameters' gradients, added up over the parts, as one vector."""
    first, second = _layers()
    for (x, y), share in zip(parts, shares, strict=True):
        (share * F.cross_entropy(second(first(x)), y)).backward()
    return torch.cat([p.grad.flatten() for layer in (first, second) for p in layer.parameters() if p.grad is not None])
