"""Which kernel takes a product, with which configuration, and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from labs_helpers.gemm.configs import Config, default_config
from labs_helpers.gemm.kernels.hopper import HopperConfig, hopper_launch, hopper_matmul, why_not, why_not_even_copied
from labs_helpers.gemm.kernels.padded import narrow, padded_matmul
from labs_helpers.gemm.kernels.portable import portable_matmul
from labs_helpers.gemm.kernels.split_k import SplitConfig, split_k_matmul, worth_splitting
from labs_helpers.gemm.tuned_configs import time_model, tuned
from labs_helpers.measure.machine import prepare_triton, this_machine

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
MOST_KNOWN = 4096  # plans
FEW_ROWS, MOST_ROWS = 64, 128  # for which narrow operands are not copied; for which K is split
_known: dict[tuple[Any, ...] | None, Plan] = {}


@dataclass(frozen=True)
class Plan:
    """`kernel` is 'hopper', 'portable' or 'split_k', `config` what it is launched with, `why` the reason in words;
    `copied`: the Hopper kernel gets copies of the operands that it cannot read. `product`: what launches it for
    operands that look like those the plan was made for, by what was worked out for them; None: worked out anew.
    `hopper`: the Hopper kernel could take the operands, or copies of them."""

    kernel: str
    config: Config | HopperConfig | SplitConfig
    why: str
    copied: bool = False
    product: Callable[[Tensor, Tensor, Tensor], Tensor] | None = field(default=None, compare=False, repr=False)
    hopper: bool = False

    def launch(self, a: Tensor, b: Tensor, c: Tensor, tf32: bool = False) -> Tensor:
        """ReLU(A·B + C) by this kernel with this configuration; returns (M, N). Operands as those it was made for."""
        if self.product is not None:
            return self.product(a, b, c)
        if isinstance(self.config, HopperConfig):
            return (padded_matmul if self.copied else hopper_matmul)(a, b, c, self.config)
        if isinstance(self.config, SplitConfig):
            return split_k_matmul(a, b, c, self.config, tf32)
        return portable_matmul(a, b, c, self.config, tf32)

    def with_config(self, config: Config | HopperConfig | SplitConfig) -> Plan:
        """The plan that launches `config` instead. ValueError for a HopperConfig where that kernel cannot run."""
        kernel = {HopperConfig: "hopper", SplitConfig: "split_k"}.get(type(config), "portable")
        if kernel == "hopper" and not self.hopper:
            raise ValueError(f"config is for the Hopper kernel, but {self.why}")
        return replace(self, kernel=kernel, config=config, product=None)

    def __str__(self) -> str:
        return f"{self.kernel} kernel, {self.config}: {self.why}"


def plan(a: Tensor, b: Tensor, c: Tensor) -> Plan:
    """What `fused_matmul(a, b, c)` will launch. Remembered for operands that look the same, because at 1024³ the
    kernel takes 10 µs and looking at three tensors as long.

    Raises as fused_matmul does.
    """
    try:
        # Written out: a loop over the three costs as much again.
        of_a = (a.shape, a.stride(), a.dtype, a.device, a.data_ptr() % 16)
        of_b = (b.shape, b.stride(), b.dtype, b.device, b.data_ptr() % 16)
        key = (of_a, of_b, c.shape, c.stride(), c.dtype, c.device, c.data_ptr() % 16)
    except (AttributeError, TypeError, RuntimeError):
        key = None  # not tensors, or tensors without memory: check_operands names what is wrong
    chosen = _known.get(key)
    if chosen is None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()  # a batch that grows by a row a step would fill it for ever
        chosen = _known[key] = _decide(a, b, c, *check_operands(a, b, c))
    return chosen


def _decide(a: Tensor, b: Tensor, c: Tensor, M: int, N: int, K: int) -> Plan:
    architecture = this_machine().architecture
    reason = why_not(a, b, c, architecture)
    if reason is None:
        config, how, ms = _hopper_config(M, N, K, a.dtype)
        if split := _split_config(M, N, K, a.dtype, ms):
            return Plan("split_k", *split, hopper=True)
        return Plan("hopper", config, how, product=hopper_launch(a, b, c, config), hopper=True)
    if why_not_even_copied(a, architecture) is None and (narrow(a) or narrow(b)):
        if M <= FEW_ROWS and (split := _split_config(M, N, K, a.dtype, math.inf)):
            return Plan("split_k", split[0], f"{reason}; for {M} rows a copy of B costs more than slow loads of it")
        config, how, _ = _hopper_config(M, N, K, a.dtype)
        return Plan("hopper", config, f"{how}; of copies, for {reason}", copied=True, hopper=True)
    return Plan("portable", default_config(M, N, K, a.dtype, architecture), reason)


def _hopper_config(M: int, N: int, K: int, dtype: torch.dtype) -> tuple[HopperConfig, str, float]:
    """The Hopper kernel's configuration, why that, and the ms predicted: what the time model predicts the least time
    of, or, without a model, that of the nearest measured shape, in tiles to share out and in steps along K. 0 ms where
    nothing else is to be looked for."""
    machine, entries = this_machine().label, tuned("hopper", dtype)
    same = next((e for e in entries if (e["M"], e["N"], e["K"]) == (M, N, K)), None)
    if same is not None:
        return HopperConfig(**same["config"]), f"tuned for this shape on {same['gpu']}", 0.0
    if model := time_model("hopper", dtype, machine, HopperConfig):
        config, _, ms = model.choose((M, N, K))
        return config, f"{ms:.3g} ms predicted, the least of {len(model.steps)} configurations'", ms
    entry = min(entries, key=lambda e: abs(math.log2(e["M"] * e["N"] / (M * N))) + abs(math.log2(e["K"] / K)))
    near = (entry["M"], entry["N"], entry["K"])
    return HopperConfig(**entry["config"]), f"tuned for the nearest shape, {near} on {entry['gpu']}", 0.0


def _split_config(M: int, N: int, K: int, dtype: torch.dtype, ms: float) -> tuple[SplitConfig, str] | None:
    """The split-K kernel's configuration, and why that, where it is predicted to take less than `ms`."""
    model = time_model("split_k", dtype, this_machine().label, SplitConfig)
    if M > MOST_ROWS or not ms or model is None:
        return None
    config, splits, less = model.choose((M, N, K), worth_splitting)
    if less >= ms:
        return None
    return replace(config, SPLITS=splits), f"{less:.3g} ms predicted, and {ms:.3g} by the Hopper kernel"


def check_operands(a: Tensor, b: Tensor, c: Tensor) -> tuple[int, int, int]:
    """(M, N, K) of valid operands; see fused_matmul for the errors."""
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
    prepare_triton()  # or say that it was not done before the kernels were imported
    here = this_machine()
    if not a.is_cuda and not here.interpreted:
        raise ValueError("a is on the CPU, and kernels are compiled for the GPU here: move a, b and c to 'cuda'")
    if a.dtype == torch.bfloat16 and not here.supports_bfloat16:
        why = "the interpreter multiplies its raw bits" if here.interpreted else "this GPU has no bfloat16"
        raise TypeError(f"a is bfloat16, and {why}: use float16 or float32")
    return M, N, K
