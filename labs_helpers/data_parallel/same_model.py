"""Reject models that differ between ranks, before a collective mixes up their tensors or hangs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import torch
from torch import Tensor, nn

from labs_helpers.communication import Communication
from labs_helpers.launch.stuck import name_ranks

NOTHING = "nothing more"


def require_same_model(module: nn.Module, group: Communication, settings: str = "") -> None:
    """Raise ValueError on every rank, with the first difference, unless all ranks have the same model and `settings`.

    Compares the names, order, shapes, strides, dtypes, requires_grad and ties of parameters and buffers, but no values.
    Every rank of the group calls this.
    """
    if difference := first_difference([f"settings {settings}", *describe(module)], group):
        number, count, told = difference
        where = "in its settings" if number == 0 else f"at tensor {number} of {count - 1}"
        raise ValueError(f"the model differs between ranks, first {where}:\n{told}")


def first_difference(lines: Sequence[str], group: Communication) -> tuple[int, int, str] | None:
    """Return the first line that differs between ranks, or None if there is no difference.

    Returns (the line's number, the largest number of lines on any rank, each rank's line as text). Every rank calls
    this with its own lines. It costs one all-gather of 32 bytes, and the host waits for the result; the ranks exchange
    their lines only if they differ.
    """
    mine = "\n".join(lines).encode()
    digests = group.all_gather(_tensor(hashlib.sha256(mine).digest(), group))
    if torch.equal(digests, digests[:32].repeat(group.size)):
        return None
    everyone = [text.decode().split("\n") for text in _gather_bytes(mine, group)]
    for number, at_number in enumerate(zip_longest(*everyone, fillvalue=NOTHING)):
        ranks: dict[str, list[int]] = {}
        for rank, line in enumerate(at_number):
            ranks.setdefault(line, []).append(rank)
        if len(ranks) > 1:
            told = "\n".join(f"  {name_ranks(those)}: {line}" for line, those in ranks.items())
            return number, max(map(len, everyone)), told
    return None


def describe(module: nn.Module) -> Iterator[str]:
    """Yield one line per parameter and buffer, like "parameter 'layer.weight' (4, 6) torch.float32, trained"."""
    names: dict[Tensor, str] = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        line = f"parameter '{name}' {_layout(p)}, {'trained' if p.requires_grad else 'frozen'}"
        yield f"{line}, tied to '{names[p]}'" if p in names else line
        names.setdefault(p, name)
    for name, buffer in module.named_buffers(remove_duplicate=False):
        yield f"buffer '{name}' {_layout(buffer)}"


def _layout(x: Tensor) -> str:
    strides = "" if x.is_contiguous() else f", strides {x.stride()}"
    return f"{tuple(x.shape)} {x.dtype}{strides}"


def _gather_bytes(mine: bytes, group: Communication) -> list[bytes]:
    """Return every rank's bytes, which may differ in length."""
    lengths = group.all_gather(torch.tensor([len(mine)], device=group.device)).tolist()
    padded = _tensor(mine.ljust(max(lengths), b"\0"), group)
    parts = group.all_gather(padded[None]).cpu()
    return [part[:length].numpy().tobytes() for part, length in zip(parts, lengths, strict=True)]


def _tensor(data: bytes, group: Communication) -> Tensor:
    return torch.tensor(list(data), dtype=torch.uint8, device=group.device)
