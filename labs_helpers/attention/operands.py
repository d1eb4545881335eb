"""Check the operands of an attention call, for the kernels and for the PyTorch reference; errors name the argument."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labs_helpers.measure.machine import prepare_triton, this_machine

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
HEAD_DIMS = range(16, 129)


def check_operands(q: Tensor, k: Tensor, v: Tensor, kernels: bool = True) -> None:
    """Raise an error unless flash_attention accepts q, k and v.

    kernels=False checks for the PyTorch reference, which also accepts float64, any head dim and any device. TypeError:
    not a tensor, an unsupported dtype, mixed dtypes. ValueError: wrong shapes or devices.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}, not a torch.Tensor")
        if tensor.ndim != 4:
            raise ValueError(
                f"{name} has {tensor.ndim} dimensions, not 4 (batch, heads, length, head dim): {tuple(tensor.shape)}"
            )
        if tensor.numel() == 0:
            raise ValueError(f"{name} is empty: {tuple(tensor.shape)}")
        if tensor.dtype not in DTYPES and (kernels or tensor.dtype != torch.float64):
            raise TypeError(f"{name} is {tensor.dtype}; float16, bfloat16 or float32 is needed")
    _same_kind("k", k, q)
    _same_kind("v", v, q)
    if v.shape != k.shape:
        raise ValueError(f"v is {tuple(v.shape)}, but k is {tuple(k.shape)}: each key has its value")
    (B, H, _, D), (key_batch, Hkv, _, key_dim) = q.shape, k.shape
    if key_batch != B:
        raise ValueError(f"k and v have batch {key_batch}, but q has batch {B}")
    if key_dim != D:
        raise ValueError(f"k and v have head dim {key_dim}, but q has head dim {D}")
    if H % Hkv:
        raise ValueError(f"q has {H} heads, which is no multiple of the {Hkv} heads of k and v")
    if kernels:
        _check_for_kernels(q)


def _check_for_kernels(q: Tensor) -> None:
    prepare_triton()  # raises an error if the kernels were imported before this call
    here, D = this_machine(), q.shape[-1]
    if D not in HEAD_DIMS:
        raise ValueError(f"q has head dim {D}; the kernels take {HEAD_DIMS[0]} to {HEAD_DIMS[-1]}")
    if not q.is_cuda and not (here.interpreted and q.device.type == "cpu"):
        if here.interpreted:
            raise ValueError(f"q is on {q.device}, where no kernel runs")
        where = "the CPU" if q.device.type == "cpu" else str(q.device)
        raise ValueError(f"q is on {where}, and kernels are compiled for the GPU here: move q, k and v to 'cuda'")
    if q.dtype == torch.bfloat16 and not here.supports_bfloat16:
        why = "the interpreter multiplies its raw bits" if here.interpreted else "this GPU has no bfloat16"
        raise TypeError(f"q is bfloat16, and {why}: use float16 or float32")


def check_gradient_operands(q: Tensor, o: Tensor, lse: Tensor, do: Tensor) -> None:
    """Raise an error unless o, lse and do match q, which has been checked before.

    o and do have q's shape and dtype. lse is (B, H, Lq), in float64 for float64 operands, else in float32.
    """
    statistics = torch.float64 if q.dtype == torch.float64 else torch.float32
    for name, tensor, shape, dtype in (
        ("o", o, q.shape, q.dtype),
        ("lse", lse, q.shape[:3], statistics),
        ("do", do, q.shape, q.dtype),
    ):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}, not a torch.Tensor")
        if tensor.shape != shape:
            raise ValueError(f"{name} is {tuple(tensor.shape)}, expected {tuple(shape)} for this q")
        if tensor.dtype != dtype:
            raise TypeError(f"{name} is {tensor.dtype}, expected {dtype}")
        if tensor.device != q.device:
            raise ValueError(f"{name} is on {tensor.device}, but q is on {q.device}")


def score_scale(scale: float | None, D: int) -> float:
    """Return `scale` as a float, or 1/sqrt(D) for None; TypeError unless it is a number, ValueError unless finite."""
    if scale is None:
        return D**-0.5
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise TypeError(f"scale is {scale!r}, not a number")
    if not math.isfinite(scale):
        raise ValueError(f"scale is {scale!r}; it has to be finite")
    return float(scale)


def _same_kind(name: str, tensor: Tensor, q: Tensor) -> None:
    if tensor.dtype != q.dtype:
        raise TypeError(f"{name} is {tensor.dtype}, but q is {q.dtype}: one dtype for all three")
    if tensor.device != q.device:
        raise ValueError(f"{name} is on {tensor.device}, but q is on {q.device}")
