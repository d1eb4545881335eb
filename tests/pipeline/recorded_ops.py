"""The CPU's twin of `CudaGraphs`: it records the operators of a function, and replays them into the same tensors.

Unlike a CUDA graph it also runs the function, and it keeps every tensor, so it does not show that memory is used again.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only


class RecordedOps:
    def capture(self, function: Callable[[], None]) -> Callable[[], None]:
        with _Recording() as recording:
            function()
        return recording.replay


class _Recording(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        self.calls.append((func, *_same_memory((args, kwargs or {}, results))))
        return results

    @torch.no_grad()
    def replay(self):
        for func, args, kwargs, results in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tree_leaves(results), tree_leaves(again), strict=True):
                if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


def _same_memory(values):
    """Return the values with tensors that share memory with theirs, and that autograd does not know."""
    return tree_map_only(Tensor, lambda tensor: tensor.data, values)
