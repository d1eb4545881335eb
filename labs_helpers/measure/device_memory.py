"""GPU memory between two measurements: how much is still allocated, and how to release it."""

from __future__ import annotations

import gc
import sys

import torch


def release() -> None:
    """Free what earlier models still hold: reference cycles, compiled code, workspaces and the allocator's cache."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def allocated(device: torch.device) -> int:
    """Return the bytes of tensors on a GPU after Python has collected its cycles; 0 on a CPU."""
    for _ in range(3):  # objects that one collection frees may own C++ references that kept further cycles alive
        gc.collect()
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize()
    return int(torch.cuda.memory_allocated())


def reset_peak(device: torch.device) -> None:
    """Restart the peak counter after the queued work has finished."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
