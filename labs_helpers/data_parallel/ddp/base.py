"""The base class of the wrappers: it makes replicas start equal, and defines how their gradients are averaged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from labs_helpers.communication import Communication
from labs_helpers.communication.buckets import memory_order, trained_parameters
from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.data_parallel.same_model import require_same_model


class DDP(nn.Module, ABC):
    """Wrap a replica of `module` on every rank of `group`; `finish()` averages the ranks' gradients.

        ddp = BucketedDDP(model)
        loss(ddp(x)).backward(); ddp.finish(); optimizer.step()

    group: a torch.distributed process group (default: all ranks; its backend is gloo for modules on CPUs, NCCL on GPUs)
    or a `Communication`; `.group` is a Communication, which counts the bytes sent. All ranks need the same module
    (ValueError with the first difference), and start from rank 0's parameters and buffers. The constructor decides
    which parameters are trained: those with requires_grad, a tied weight once.

    A parameter that a rank has not used counts as 0 there. If no rank has used it, it receives a gradient of zeros, and
    an optimizer may still apply weight decay and momentum to it. With find_unused_parameters=True, its .grad remains
    None, as on a single process; this costs one more small all-reduce per step, and the host waits for its result.

    To accumulate over several backward passes, run all but the last one in `no_sync()`, so that the gradients are sent
    once. Clip and unscale gradients after `finish()`. Gradients must be dense. Buffers are not averaged; see
    `broadcast_buffers`.
    """

    def __init__(
        self, module: nn.Module, group: Any = None, *, find_unused_parameters: bool = False, settings: str = ""
    ) -> None:
        super().__init__()
        self.module = module
        self.group = communication(group)
        self.find_unused_parameters = find_unused_parameters
        self.trained = trained_parameters(module.parameters())
        settings = f"{type(self).__name__}({settings}), find_unused_parameters={find_unused_parameters}"
        require_same_model(module, self.group, settings)
        broadcast([*module.parameters(), *module.buffers()], self.group)
        self.sending = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Return a context in which backward only adds to this rank's gradients, and `finish()` does nothing."""
        before, self.sending = self.sending, False
        try:
            yield
        finally:
            self.sending = before

    def finish(self) -> None:
        """Replace every trained .grad by the mean over the ranks. Every rank calls this after backward."""
        if not self.sending:
            return
        used = [p.grad is not None for p in self.trained] if self.find_unused_parameters else []
        self._finish()
        if used:  # last: until here, ranks with different used layers have started different numbers of collectives
            anywhere = torch.tensor(used, dtype=torch.uint8, device=self.group.device)
            for p, seen in zip(self.trained, self.group.all_reduce(anywhere, "max").tolist(), strict=True):
                if not seen:
                    p.grad = None

    @abstractmethod
    def _finish(self) -> None: ...

    def broadcast_buffers(self) -> None:
        """Copy rank 0's buffers to every rank, for example before an evaluation or a checkpoint.

        Buffers may differ because they depend on a rank's own data, like BatchNorm's running averages.
        """
        broadcast(self.module.buffers(), self.group)

    def remove(self) -> None:
        """Stop averaging the module's gradients; call this before you wrap the module again."""
        self.sending = False


def communication(group: Any) -> Communication:
    """Return `group` as a `Communication`: unchanged, or wrapping a process group (None: the group of all ranks)."""
    return group if isinstance(group, Communication) else TorchCommunication(group or dist.group.WORLD)


def broadcast(tensors: Iterable[Tensor], group: Communication) -> None:
    """Write rank 0's values into every rank's tensors, each once. They may have any dtype and strides."""
    for x in dict.fromkeys(tensors):
        dense = x.detach().permute(memory_order(x))
        sent = dense.contiguous()  # the same memory, or a copy if it has gaps
        if sent.numel():
            group.broadcast(sent.view(-1).view(torch.uint8))  # as bytes, because no backend supports every dtype
        if sent is not dense:
            dense.copy_(sent)
