"""Choose the kernel and the configuration for a product, with the reason in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from labs_helpers.gemm.configs import Config, default_config
from labs_helpers.gemm.kernels.hopper import (
    FEW_ROWS,
    HopperConfig,
    hopper_launch,
    hopper_matmul,
    why_not,
    why_not_even_copied,
    why_not_row,
)
from labs_helpers.gemm.kernels.padded import PaddedProduct, narrow
from labs_helpers.gemm.kernels.portable import portable_matmul
from labs_helpers.gemm.kernels.split_k import MOST_ROWS, SplitConfig, split_k_matmul
from labs_helpers.gemm.time_model import NEITHER, SECTOR, Choice
from labs_helpers.gemm.tuned_configs import time_model, tuned
from labs_helpers.measure.machine import prepare_triton, this_machine

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
MOST_KNOWN = 4096  # the largest number of plans to remember
NARROW_ROWS = 64  # up to this many rows, narrow operands are not copied
_known: dict[tuple[Any, ...] | None, Plan] = {}


@dataclass(frozen=True)
class Plan:
    """The kernel and the configuration that compute a product.

    kernel: 'hopper', 'portable' or 'split_k'. config: its configuration. why: the reason, in words. copied: the Hopper
    kernel multiplies copies of the operands that it cannot read. also: whether A, and B, are copied because the kernel
    reads them slowly. product: launches the kernel for operands with the same shapes and strides, and reuses their
    descriptors; None rebuilds the descriptors on every call. hopper: whether the Hopper kernel could take the operands,
    or copies of them.
    """

    kernel: str
    config: Config | HopperConfig | SplitConfig
    why: str
    copied: bool = False
    also: tuple[bool, bool] = NEITHER
    product: Callable[[Tensor, Tensor, Tensor], Tensor] | None = field(default=None, compare=False, repr=False)
    hopper: bool = False

    def launch(self, a: Tensor, b: Tensor, c: Tensor, tf32: bool = False) -> Tensor:
        """Compute ReLU(A·B + C), (M, N), for operands with the shapes and strides that the plan was made for."""
        if self.product is not None:
            return self.product(a, b, c)
        if isinstance(self.config, HopperConfig):
            if self.copied:
                return PaddedProduct(a, b, c, self.config, self.also)(a, b, c)
            return hopper_matmul(a, b, c, self.config)
        if isinstance(self.config, SplitConfig):
            return split_k_matmul(a, b, c, self.config, tf32)
        return portable_matmul(a, b, c, self.config, tf32)

    def with_config(self, config: Config | HopperConfig | SplitConfig) -> Plan:
        """Return a plan with `config` instead. Raises ValueError for a HopperConfig if that kernel cannot run."""
        kernel = {HopperConfig: "hopper", SplitConfig: "split_k"}.get(type(config), "portable")
        if kernel == "hopper" and not self.hopper:
            raise ValueError(f"config is for the Hopper kernel, but {self.why}")
        return replace(self, kernel=kernel, config=config, product=None)

    def __str__(self) -> str:
        return f"{self.kernel} kernel, {self.config}: {self.why}"


def plan(a: Tensor, b: Tensor, c: Tensor) -> Plan:
    """Return the plan that `fused_matmul(a, b, c)` will launch, with the same errors as fused_matmul.

    Plans are remembered by the operands' shapes, strides and dtypes, because checking three tensors takes 10 µs, as
    long as the kernel itself at 1024³.
    """
    try:
        # Written out, because a loop over the three tensors doubles the time.
        of_a = (a.shape, a.stride(), a.dtype, a.device, a.data_ptr() % 16)
        of_b = (b.shape, b.stride(), b.dtype, b.device, b.data_ptr() % 16)
        key = (of_a, of_b, c.shape, c.stride(), c.dtype, c.device, c.data_ptr() % 16)
    except (AttributeError, TypeError, RuntimeError):
        key = None  # not tensors, or tensors without memory; check_operands raises the error
    chosen = _known.get(key)
    if chosen is None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()  # otherwise a batch that grows by one row per step would fill it forever
        chosen = _known[key] = _decide(a, b, c, *check_operands(a, b, c))
    return chosen


def _decide(a: Tensor, b: Tensor, c: Tensor, M: int, N: int, K: int) -> Plan:
    architecture = this_machine().architecture
    reason = why_not(a, b, c, architecture)
    if reason is None:
        choice, how = _hopper_choice(a, b)
        if M <= MOST_ROWS and (split := _split_config(M, N, K, a.dtype, choice.ms)):
            return Plan("split_k", *split, hopper=True)
        if any(choice.copied):
            return _of_copies(a, b, c, choice, how)
        return Plan("hopper", choice.config, how, product=hopper_launch(a, b, c, choice.config), hopper=True)
    if why_not_even_copied(a, architecture) is None and (narrow(a) or narrow(b)):
        if M <= NARROW_ROWS and (split := _split_config(M, N, K, a.dtype, math.inf)):
            return Plan("split_k", split[0], f"{reason}; for {M} rows a copy of B costs more than slow loads of it")
        choice, how = _hopper_choice(a, b)
        return _of_copies(a, b, c, choice, f"{how}; of copies, for {reason}")
    return Plan("portable", default_config(M, N, K, a.dtype, architecture), reason)


def _of_copies(a: Tensor, b: Tensor, c: Tensor, choice: Choice, why: str) -> Plan:
    product = PaddedProduct(a, b, c, choice.config, choice.copied)
    return Plan("hopper", choice.config, why, copied=True, also=choice.copied, product=product, hopper=True)


def _hopper_choice(a: Tensor, b: Tensor) -> tuple[Choice, str]:
    """Return the Hopper kernel's configuration and copies, and the reason.

    The time model picks the configuration with the least predicted time. Without a model, the configuration of the
    nearest measured shape is used, by the number of tiles and of steps along K, with 0 ms, which ends the search.
    """
    machine, entries, (M, K), N = this_machine().label, tuned("hopper", a.dtype), a.shape, b.shape[1]
    unreadable = why_not_row(a) is not None, why_not_row(b) is not None
    same = next((e for e in entries if (e["M"], e["N"], e["K"]) == (M, N, K)), None)
    if same is not None:
        choice = Choice(HopperConfig(**same["config"]), 1, NEITHER, 0.0)
        return choice, f"tuned for this shape on {same['gpu']}"
    model = time_model("hopper_few_rows" if M <= FEW_ROWS else "hopper", a.dtype, machine, HopperConfig)
    if model:
        ragged = a.stride(0) % SECTOR > 0, b.stride(0) % SECTOR > 0
        found = model.choose((M, N, K), HopperConfig.parts, ragged, unreadable)
        config, how = replace(found.config, SPLITS=found.splits), f"{found.ms:.3g} ms predicted"
        copies = " and ".join(name for name, gone in zip("AB", found.copied, strict=True) if gone)
        how += f", copies of {copies} included" if copies else ""
        return found._replace(config=config), f"{how}, the least of {len(model.steps)} configurations'"
    entry = min(entries, key=lambda e: abs(math.log2(e["M"] * e["N"] / (M * N))) + abs(math.log2(e["K"] / K)))
    near = (entry["M"], entry["N"], entry["K"])
    choice = Choice(HopperConfig(**entry["config"]), 1, NEITHER, 0.0)
    return choice, f"tuned for the nearest shape, {near} on {entry['gpu']}"


def _split_config(M: int, N: int, K: int, dtype: torch.dtype, ms: float) -> tuple[SplitConfig, str] | None:
    """Return the split-K kernel's configuration and the reason, if its predicted time is below `ms`; else None."""
    model = time_model("split_k", dtype, this_machine().label, SplitConfig)
    if not ms or model is None:
        return None
    found = model.choose((M, N, K), SplitConfig.parts)
    if found.ms >= ms:
        return None
    return replace(found.config, SPLITS=found.splits), f"{found.ms:.3g} ms predicted, and {ms:.3g} by the Hopper kernel"


def check_operands(a: Tensor, b: Tensor, c: Tensor) -> tuple[int, int, int]:
    """Return (M, N, K) of valid operands; see fused_matmul for the errors."""
    operands = {"a": a, "b": b, "c": c}
    for name, tensor in operands.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}, not a torch.Tensor")
        if tensor.ndim != 2:
            raise ValueError(f"{name} has {tensor.ndim} dimensions, not 2: {tuple(tensor.shape)}")
        if tensor.numel() == 0:
            raise ValueError(f"{name} is empty: {tuple(tensor.shape)}")
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name} is {tensor.dtype}; float16, bfloat16 or float32 is needed")
    (M, K), N = a.shape, b.shape[1]
    if b.shape[0] != K:
        raise ValueError(f"b has {b.shape[0]} rows, but a has {K} columns: {tuple(a.shape)} · {tuple(b.shape)}")
    if tuple(c.shape) != (M, N):
        raise ValueError(f"c is {tuple(c.shape)}, but A·B is {(M, N)}; c.expand(M, N) repeats a row or a column")
    for name in ("b", "c"):
        if operands[name].dtype != a.dtype:
            raise TypeError(f"{name} is {operands[name].dtype}, but a is {a.dtype}: one dtype for all three")
        if operands[name].device != a.device:
            raise ValueError(f"{name} is on {operands[name].device}, but a is on {a.device}")
    prepare_triton()  # raises if Triton was imported before it was prepared
    here = this_machine()
    if not a.is_cuda and not here.interpreted:
        raise ValueError("a is on the CPU, and kernels are compiled for the GPU here: move a, b and c to 'cuda'")
    if a.dtype == torch.bfloat16 and not here.supports_bfloat16:
        why = "the interpreter multiplies its raw bits" if here.interpreted else "this GPU has no bfloat16"
        raise TypeError(f"a is bfloat16, and {why}: use float16 or float32")
    return M, N, K
