"""Launch the kernel that rotates and stores."""

from __future__ import annotations

from torch import Tensor

from labs_helpers.serving.kernels.rotate_kernel import rotate_kernel


def launch_rotate(
    qkv: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, block: Tensor, k: Tensor, v: Tensor
) -> None:
    """See `chunks.rotate_and_store`. All tensors are contiguous; k and v are layers of a `PagedCache`."""
    Hkv, size, D = k.shape[1:]
    heads, half = qkv.shape[1] // D, D // 2
    sizes = {"HALF": half, "BLOCK_H": 1 << (heads - 1).bit_length(), "BLOCK_D": 1 << (half - 1).bit_length()}
    rotate_kernel[(len(qkv),)](
        qkv, cos, sin, positions, block, k, v, heads - 2 * Hkv, Hkv, size, *k.stride()[:3], **sizes
    )
