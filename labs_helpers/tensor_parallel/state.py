"""Slice a whole model's tensors into each rank's parts, and gather them again, for checkpoints and changes of layout.

The functions also work for an optimizer's state, whose tensors have the parameters' shapes.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from labs_helpers.communication import Communication


def split_dims(model: nn.Module) -> dict[str, int | None]:
    """Map each parameter's name to the dimension along which it is split, or to None if it is whole on every rank."""
    return {
        f"{path}.{name}".lstrip("."): getattr(module, "splits", {}).get(name)
        for path, module in model.named_modules()
        for name, _ in module.named_parameters(recurse=False)
    }


def slice_state(model: nn.Module, full: Mapping[str, Tensor], group: Communication) -> dict[str, Tensor]:
    """Return a copy of this rank's part of each tensor in `full`, by parameter name.

    Raises ValueError for missing or additional names, or if the group does not divide a dimension.
    """
    dims = split_dims(model)
    _check_names(dims, full)
    parts = {name: full[name] if dim is None else group.part(full[name], dim) for name, dim in dims.items()}
    return {name: part.detach().clone() for name, part in parts.items()}


def gather_state(model: nn.Module, mine: Mapping[str, Tensor], group: Communication) -> dict[str, Tensor]:
    """Return each whole tensor on every rank of the group, the inverse of `slice_state`.

    mine: model.state_dict(), or other tensors with the same names. Raises ValueError for missing or additional names.
    """
    dims = split_dims(model)
    _check_names(dims, mine)
    return {
        name: mine[name].detach().clone() if dim is None else group.all_gather(mine[name], dim)
        for name, dim in dims.items()
    }


def _check_names(dims: Mapping[str, int | None], tensors: Mapping[str, Tensor]) -> None:
    if different := sorted(dims.keys() ^ tensors.keys()):
        raise ValueError(f"the model's parameters and these tensors differ in {', '.join(different)}")
