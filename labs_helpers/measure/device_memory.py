"""A GPU's memory between two measurements: what is still allocated there, and how to let go of it."""

from __future__ import annotations

import gc
import sys

import torch


def release() -> None:
    """Free what the models of before still hold: cycles, compiled code, workspaces, the allocator's store."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def allocated(device: torch.device) -> int:
    """Return the bytes of tensors on a GPU, once Python has collected its cycles; 0 on a CPU."""
    for _ in range(3):  # what one collection frees may have kept further cycles from C++, which Python does not see
        gc.collect()
    if device.type != "cuda":
        return 0
    torch.cuda.synchronize()
    return int(torch.cuda.memory_allocated())


def reset_peak(device: torch.device) -> None:
    """Begin to watch for the peak anew, once what is queued is done."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
