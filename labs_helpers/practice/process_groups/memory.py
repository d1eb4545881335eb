"""The memory of a tensor as a collective sees it, and the layouts that a collective refuses."""

from __future__ import annotations

from torch import Tensor

CANNOT_READ = (
    "NCCL refuses a tensor with gaps, gloo takes what lies in the gaps; send x.contiguous() and receive into a "
    "contiguous tensor"
)


def dense(name: str, x: Tensor) -> Tensor:
    """Return x's elements in memory order, (n,), without autograd and its version counter.

    ValueError: a slice with gaps. A transposed tensor has none: all ranks send it in memory order.
    """
    _on_cpu(name, x)
    if not (x.is_contiguous() or _has_no_gaps(x)):
        raise ValueError(
            f"{name}: tensors must be contiguous; this one has shape {tuple(x.shape)}, strides {x.stride()}: "
            f"{CANNOT_READ}"
        )
    return x.data.as_strided((x.numel(),), (1,), x.storage_offset())


def contiguous(name: str, x: Tensor) -> Tensor:
    """Return the same for a tensor that is split or joined along its first dimension. ValueError: not contiguous."""
    _on_cpu(name, x)
    if not x.is_contiguous():
        raise ValueError(
            f"{name}: tensors must be contiguous; this one has shape {tuple(x.shape)}, strides {x.stride()}: "
            f"{CANNOT_READ}"
        )
    return x.data.view(-1)


def _has_no_gaps(x: Tensor) -> bool:
    expected = 1
    for stride, n in sorted((stride, n) for stride, n in zip(x.stride(), x.shape, strict=True) if n > 1):
        if stride != expected:
            return False
        expected *= n
    return True


def _on_cpu(name: str, x: Tensor) -> None:
    if x.device.type != "cpu" or x.is_sparse:
        raise ValueError(f"{name}: practice ranks have dense tensors on the CPU, not {x.layout} on {x.device}")
