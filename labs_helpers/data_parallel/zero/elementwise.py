"""Check that an optimizer updates each element independently, so that it can work on pieces of tensors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def check_elementwise(optimizer: type[torch.optim.Optimizer], options: Mapping[str, Any], device: torch.device) -> None:
    """Step a small matrix both whole and in two pieces, and compare the results.

    Raise ValueError if they differ, or if the optimizer fails on a piece. It then needs whole matrices (Muon,
    Adafactor, LAMB, Shampoo) or all parameters (LBFGS), which shards cannot provide.
    """
    generator = torch.Generator().manual_seed(0)
    start, *gradients = torch.randn(4, 4, 6, generator=generator, dtype=torch.float64).to(device)
    known = inspect.signature(optimizer).parameters
    options = {name: value for name, value in options.items() if name in known and name != "params"}
    if "lr" in known:
        options["lr"] = 0.1  # a rate of 0 would hide all differences

    def stepped(split: bool) -> Tensor:
        def parts(x: Tensor) -> list[Tensor]:
            return [part.clone() for part in x.flatten().split([10, 14])] if split else [x.clone()]

        parameters = [nn.Parameter(part) for part in parts(start)]
        one = optimizer(parameters, **options)
        for gradient in gradients:
            for p, part in zip(parameters, parts(gradient), strict=True):
                p.grad = part
            one.step()
        return torch.cat([p.detach().flatten() for p in parameters])

    name = getattr(optimizer, "__name__", repr(optimizer))
    try:
        whole, pieces = stepped(split=False), stepped(split=True)
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        raise ValueError(f"{name} cannot step pieces of a tensor: {error}") from error
    if not torch.allclose(whole, pieces, rtol=1e-6, atol=1e-9):
        raise ValueError(f"{name} does not update each element independently, so it needs whole tensors")
