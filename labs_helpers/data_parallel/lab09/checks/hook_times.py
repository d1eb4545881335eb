"""Detect hooks that run before all gradients of a module have arrived."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.utils.hooks import BackwardHook

from labs_helpers.practice.process_groups import ProcessRun, mark

EACH = "register_post_accumulate_grad_hook runs as each of them arrives"
FULL = (
    "register_full_backward_hook waits for the gradient of the module's input, but those of its parameters "
    f"may arrive later; {EACH}"
)
BEFORE = f"register_full_backward_pre_hook runs before the gradients of the module's parameters arrive; {EACH}"
EARLY = "you collect gradients before all of them have arrived: only the last to arrive may trigger it"
ANEW = f"{EARLY}, and the count must start over in every backward pass"
NO_GRADIENT = r"'NoneType' object has no attribute '(reshape|flatten|view|ravel|numel)'|but got NoneType"


def causes_of(noted: Sequence[str], *sentences: str) -> list:
    """Return rows for `on_ranks`: the sentences that a rank has noted as the cause of its error."""
    return [(lambda *_, why=why: why in noted, why) for why in sentences]


class Arrivals:
    """Track which gradients of `layers` have arrived in this backward pass. Create it before the answer's hooks."""

    def __init__(self, layers: Sequence[nn.Module], group: Any) -> None:
        self.missing: list[int] = [0] * len(layers)
        self.passes = 0
        self._group, self._layers = group, layers
        for m, layer in enumerate(layers):
            for p in layer.parameters():
                p.register_post_accumulate_grad_hook(lambda _, m=m: self._arrived(m))

    def _arrived(self, m: int) -> None:
        self.missing[m] -= 1
        mark(self._group, f"arrived {m}")

    def begin(self) -> None:
        self.missing = [len(list(layer.parameters())) for layer in self._layers]
        self.passes += 1

    def why(self, error: Exception) -> str:
        """Return why the backward pass failed if a gradient was read before it arrived, or ''."""
        if not re.search(NO_GRADIENT, f"{error}"):
            return ""
        module, codes = _of_module(error)
        if module is not None:
            m = next(m for m, layer in enumerate(self._layers) if module in layer.modules())
            hooks = module._backward_pre_hooks.values()
            before = any(getattr(hook, "__code__", None) in codes or id(hook) in codes for hook in hooks)
            return (BEFORE if before else FULL) if self.missing[m] else ""
        begun = [0 < left < len(list(one.parameters())) for left, one in zip(self.missing, self._layers, strict=True)]
        return (EARLY if self.passes == 1 else ANEW) if any(begun) else ""


def _of_module(error: Exception) -> tuple[nn.Module | None, set[Any]]:
    """Return the module whose full backward hook raised the error, and the code and objects (ids) on the way."""
    module, codes, trace = None, set(), error.__traceback__
    while trace is not None:
        codes |= {trace.tb_frame.f_code, id(trace.tb_frame.f_locals.get("self"))}
        for one in trace.tb_frame.f_locals.values():
            if isinstance(one, BackwardHook):
                module = one.module
        trace = trace.tb_next
    return module, codes


def sent_early(run: ProcessRun, rank: int, m: int, elements: int, gradients: int = 3) -> bool:
    """Return whether a rank starts a reduction of `elements` before all gradients of module `m` have arrived."""
    here = 0
    for event in (event for event in run.log if event.rank == rank):
        if event.call is None:
            here = 0 if event.what == "backward begins" else here + (event.what == f"arrived {m}")
        elif event.what == "start" and "reduce" in event.call.name and event.call.elements == elements:
            if here < gradients:
                return True
    return False
