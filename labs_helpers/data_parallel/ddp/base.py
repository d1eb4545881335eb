"""What the wrappers have in common: replicas that start equal, and the interface round their gradients' mean."""

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
    """A replica of `module` on every rank of `group`, each with data of its own; gradients are averaged by `finish()`.

        ddp = BucketedDDP(model)
        loss(ddp(x)).backward(); ddp.finish(); optimizer.step()

    group: a torch.distributed process group (default: all ranks; its backend is gloo for modules on CPUs, NCCL on GPUs)
    or a `Communication`, `.group`, which counts what is sent. Everybody has to have the same module (ValueError with
    the first difference), and starts from rank 0's parameters and buffers. Which parameters are trained is decided
    here: those with requires_grad, a tied weight once.

    A parameter that a rank has not used counts as 0 there, and one that no rank has used gets a gradient of zeros, for
    which an optimizer may still decay weight and momentum. With find_unused_parameters=True it keeps None, as on one
    process, for one more small all-reduce per step whose result the host waits for.

    Several backward passes before a step: all but the last within `no_sync()`, so that they are sent once. Clip and
    unscale gradients after `finish()`. Gradients have to be dense. Buffers are not averaged, see `broadcast_buffers`.
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
        """Within it, backward passes add to this rank's gradients, and `finish()` does nothing."""
        before, self.sending = self.sending, False
        try:
            yield
        finally:
            self.sending = before

    def finish(self) -> None:
        """Every trained parameter's .grad becomes the mean of all ranks'. To be called by every rank after backward."""
        if not self.sending:
            return
        used = [p.grad is not None for p in self.trained] if self.find_unused_parameters else []
        self._finish()
        if used:  # asked last: before, ranks that use different layers have started different numbers of collectives
            anywhere = torch.tensor(used, dtype=torch.uint8, device=self.group.device)
            for p, seen in zip(self.trained, self.group.all_reduce(anywhere, "max").tolist(), strict=True):
                if not seen:
                    p.grad = None

    @abstractmethod
    def _finish(self) -> None: ...

    def broadcast_buffers(self) -> None:
        """Gives every rank rank 0's buffers, such as the running averages of its own data that BatchNorm keeps: before
        an evaluation or a checkpoint."""
        broadcast(self.module.buffers(), self.group)

    def remove(self) -> None:
        """Leaves the module's gradients alone from here on: before it is wrapped again."""
        self.sending = False


def communication(group: Any) -> Communication:
    """A `Communication` as it is; a process group, or None for that of all ranks, in one."""
    return group if isinstance(group, Communication) else TorchCommunication(group or dist.group.WORLD)


def broadcast(tensors: Iterable[Tensor], group: Communication) -> None:
    """Writes rank 0's values into everybody's tensors, of any dtype and strides, each once."""
    for x in dict.fromkeys(tensors):
        dense = x.detach().permute(memory_order(x))
        sent = dense.contiguous()  # the memory itself, unless it has gaps
        if sent.numel():
            group.broadcast(sent.view(-1).view(torch.uint8))  # bytes: not every backend knows every dtype
        if sent is not dense:
            dense.copy_(sent)
