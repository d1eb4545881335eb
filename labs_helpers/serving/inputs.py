"""The numbers that a decoding step takes from the host, in one piece of memory that one copy brings to the device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from labs_helpers.serving.request import Request

FIELDS = {  # of a row; `source` is an index into `tokens`
    "source": torch.int64,
    "length": torch.int32,
    "top_k": torch.int32,
    "u": torch.float32,
    "temperature": torch.float32,
    "top_p": torch.float32,
}
MOST_K = torch.iinfo(FIELDS["top_k"]).max
COLDEST, HOTTEST = 1e-6, 1e30  # temperatures; logits divided by less overflow float32


class Inputs:
    """Inputs of up to `rows` rows with tables of up to `width` blocks.

    tokens: (3 · rows,) of int64 on the device: those that the latest decoding rows and chunks sampled, `rows` each, and
    those that the host knows. So a step can continue a token that the host has not seen yet. `fill` uses two memories
    in turns, because the copy of one may still wait in the GPU's queue when the next is filled. further: the names of
    other inputs, float32, and how many numbers of each a row has.
    """

    def __init__(
        self, rows: int, width: int, device: torch.device, further: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        self.rows, on_gpu = rows, device.type == "cuda"
        shapes: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {"tokens": (torch.int64, (3 * rows,))}
        shapes |= {name: (dtype, (rows,)) for name, dtype in FIELDS.items()}
        shapes |= {name: (torch.float32, (rows, count)) for name, count in further.items()}
        shapes["table"] = (torch.int32, (rows, width))
        places, self._size = {}, 0
        for name, (dtype, shape) in shapes.items():
            places[name] = self._size, dtype, shape
            self._size += -(-math.prod(shape) * dtype.itemsize // 16) * 16  # kernels like alignment
        self._sampled, self._table = 8 * 2 * rows, places["table"][0]

        def views(memory: Tensor) -> dict[str, Tensor]:
            return {
                name: memory[start : start + math.prod(shape) * dtype.itemsize].view(dtype).view(shape)
                for name, (start, dtype, shape) in places.items()
            }

        self._memory = torch.zeros(self._size, dtype=torch.uint8, device=device)
        self.on_device = views(self._memory)
        hosts = [torch.zeros(self._size, dtype=torch.uint8, pin_memory=on_gpu) for _ in range(2)]
        self._hosts = [(host, {name: view.numpy() for name, view in views(host).items()}) for host in hosts]
        self._results = [torch.zeros(2 * rows, dtype=torch.int64, pin_memory=on_gpu) for _ in range(2)]

    @property
    def tokens(self) -> Tensor:
        return self.on_device["tokens"]

    def fill(self, requests: list[Request], rows: int, further: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Copy the inputs of a step for these requests to the device; the rest of the `rows` rows is padding."""
        self._hosts.reverse()
        memory, arrays = self._hosts[0]
        for name, values in {**values_of(requests), **further}.items():
            arrays[name][: len(requests)] = values
            arrays[name][len(requests) : rows] = 0
        arrays["table"][:rows] = 0
        for row, request in enumerate(requests):
            blocks, known, at = request.table.blocks, request.tokens, request.computed - 1
            arrays["table"][row, : len(blocks)] = blocks
            if at < len(known):
                arrays["source"][row] = 2 * self.rows + row
                arrays["tokens"][2 * self.rows + row] = known[at]
            else:  # the latest pass has sampled it
                arrays["source"][row] = request.row
        part = slice(self._sampled, self._table + arrays["table"][:rows].nbytes)
        self._memory[part].copy_(memory[part], non_blocking=True)

    def clear(self) -> None:
        """Make all rows padding, on the device, but keep the sampled tokens."""
        self._memory[self._sampled :].zero_()

    def fetch(self) -> Tensor:
        """Start to copy the sampled tokens to the host, and return where they will be; the next call but one uses this
        memory again."""
        self._results.reverse()
        return self._results[0].copy_(self.tokens[: 2 * self.rows], non_blocking=True)


def values_of(requests: list[Request]) -> dict[str, list[Any]]:
    """Return the inputs that a request's state gives, by field. The token to sample has the number `sampled` − 1,
    since the plan has counted it; so has the token's position. A number that its field cannot hold becomes one that
    chooses the same tokens."""
    return {
        "length": [request.computed - 1 for request in requests],
        "top_k": [min(request.how.top_k or 0, MOST_K) for request in requests],
        "u": [request.numbers[request.sampled - 1] for request in requests],
        "temperature": [_temperature(request.how.temperature) for request in requests],
        "top_p": [request.how.top_p for request in requests],
    }


def _temperature(given: float) -> float:
    return min(given, HOTTEST) if given >= COLDEST else 0.0
