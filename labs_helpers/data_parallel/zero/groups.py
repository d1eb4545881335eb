"""Parameters and groups of an optimizer, and which of them are trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn


class ParameterGroups:
    """The `params` of a torch.optim optimizer, with the model's whole parameters.

    names: name of each parameter, in the model's order; a tied weight appears once. members: the parameters of each
    group, including frozen ones, because a state dict numbers them too.
    """

    def __init__(self, model: nn.Module) -> None:
        self.names = {p: name for name, p in model.named_parameters()}
        self.members: list[list[nn.Parameter]] = []
        self.trained: set[nn.Parameter] = set()

    def add_all(self, params: Iterable[Any] | None) -> list[dict[str, Any]]:
        """Return the checked groups. params: parameters, (name, parameter) pairs, or groups; None: the whole model."""
        everything = self.names if params is None else params
        given: list[Any] = [params] if isinstance(params, torch.Tensor) else _in_order(everything)
        if not given:
            raise ValueError("there are no parameters to optimize")
        if not isinstance(given[0], dict):
            given = [{"params": given}]
        return [self.add(param_group) for param_group in given]

    def add(self, param_group: Mapping[str, Any]) -> dict[str, Any]:
        """Add a group and return it with "params" as a list. Raise ValueError for a foreign or repeated parameter."""
        given = param_group["params"]
        given = [given] if isinstance(given, torch.Tensor) else _in_order(given)
        members: list[nn.Parameter] = [p[1] if isinstance(p, tuple) else p for p in given]
        before = set(self.all)
        for p in members:
            if p not in self.names:
                raise ValueError(f"a tensor of shape {tuple(p.shape)} is not a parameter of the model")
            if p in before:
                raise ValueError(f"{self.names[p]} is in two groups, or twice in one")
            before.add(p)
        self.members.append(members)
        self.trained.update(p for p in members if p.requires_grad)
        return {**param_group, "params": members}

    @property
    def all(self) -> list[nn.Parameter]:
        """All parameters, group by group, in the order in which a state dict numbers them."""
        return [p for members in self.members for p in members]

    def check_frozen(self) -> None:
        """Raise RuntimeError if a parameter is trained that was frozen when it was added."""
        for p in self.all:
            if p.requires_grad and p not in self.trained:
                raise RuntimeError(f"{self.names[p]} was frozen when it was added, so its gradient was not averaged")


def _in_order(given: Iterable[Any]) -> list[Any]:
    if isinstance(given, set | frozenset):
        raise TypeError("a set of parameters has a different order on each rank: pass a list")
    return list(given)
