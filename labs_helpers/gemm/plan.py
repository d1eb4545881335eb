"""Which kernel takes a product, with which configuration, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from labs_helpers.gemm.configs import Config, default_config
from labs_helpers.gemm.kernels.hopper import HopperConfig, hopper_matmul, why_not, why_not_even_copied
from labs_helpers.gemm.kernels.padded import copies_pay, padded_matmul
from labs_helpers.gemm.kernels.portable import portable_matmul
from labs_helpers.gemm.kernels.split_k import SplitConfig, split_k_matmul
from labs_helpers.gemm.tuned_configs import time_model, tuned
from labs_helpers.measure.machine import prepare_triton, this_machine

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_known: dict[tuple[Any, ...] | None, Plan] = {}


@dataclass(frozen=True)
class Plan:
    """`kernel` is 'hopper', 'portable' or 'split_k', `config` what it is launched with, `why` the reason in words;
    `copied`: the Hopper kernel gets copies of the operands that it cannot read."""

    kernel: str
    config: Config | HopperConfig | SplitConfig
    why: str
    copied: bool = False

    def launch(self, a: Tensor, b: Tensor, c: Tensor, tf32: bool = False) -> Tensor:
        """ReLU(A·B + C) by this kernel with this configuration; returns (M, N). Operands as those it was made for."""
        if isinstance(self.config, HopperConfig):
            return (padded_matmul if self.copied else hopper_matmul)(a, b, c, self.config)
        if isinstance(self.config, SplitConfig):
            return split_k_matmul(a, b, c, self.config, tf32)
        return portable_matmul(a, b, c, self.config, tf32)

    def with_config(self, config: Config | HopperConfig | SplitConfig) -> Plan:
        """The plan that launches `config` instead. ValueError for a HopperConfig where that kernel cannot run."""
        kernel = {HopperConfig: "hopper", SplitConfig: "split_k"}.get(type(config), "portable")
        if kernel == "hopper" and self.kernel != "hopper":
            raise ValueError(f"config is for the Hopper kernel, but {self.why}")
        return replace(self, kernel=kernel, config=config)

    def __str__(self) -> str:
        return f"{self.kernel} kernel, {self.config}: {self.why}"


def plan(a: Tensor, b: Tensor, c: Tensor) -> Plan:
    """What `fused_matmul(a, b, c)` will launch. Remembered for operands that look the same, because at 1024³ the
    kernel takes 10 µs and looking at three tensors as long.

    Raises as fused_matmul does.
    """
    try:
        key = tuple((t.shape, t.stride(), t.dtype, t.device, t.data_ptr() % 16) for t in (a, b, c))
    except (AttributeError, TypeError, RuntimeError):
        key = None  # not tensors, or tensors without memory: check_operands names what is wrong
    if key is None or key not in _known:
        chosen = _decide(a, b, c, *check_operands(a, b, c))
        _known[key] = chosen
    return _known[key]


def _decide(a: Tensor, b: Tensor, c: Tensor, M: int, N: int, K: int) -> Plan:
    architecture = this_machine().architecture
    reason = why_not(a, b, c, architecture)
    copied = reason is not None and why_not_even_copied(a, architecture) is None and copies_pay(a, b, c)
    if reason is None or copied:
        config, how = _hopper_config(M, N, K, a.dtype)
        return Plan("hopper", config, f"{how}; of copies, for {reason}" if copied else how, copied)
    return Plan("portable", default_config(M, N, K, a.dtype, architecture), reason)


def _hopper_config(M: int, N: int, K: int, dtype: torch.dtype) -> tuple[HopperConfig, str]:
    """The Hopper kernel's configuration, and why that: what the time model predicts the least time of, or, without a
    model, that of the nearest measured shape, in tiles to share out and in steps along K."""
    machine, entries = this_machine().label, tuned("hopper", dtype)
    same = next((e for e in entries if (e["M"], e["N"], e["K"]) == (M, N, K)), None)
    if same is not None:
        return HopperConfig(**same["config"]), f"tuned for this shape on {same['gpu']}"
    if model := time_model("hopper", dtype, machine, HopperConfig):
        config = model.choose((M, N, K))
        ms = model.predict(config, (M, N, K))
        return config, f"{ms:.3g} ms predicted, the least of {len(model.steps)} configurations'"
    entry = min(entries, key=lambda e: abs(math.log2(e["M"] * e["N"] / (M * N))) + abs(math.log2(e["K"] / K)))
    near = (entry["M"], entry["N"], entry["K"])
    return HopperConfig(**entry["config"]), f"tuned for the nearest shape, {near} on {entry['gpu']}"


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
