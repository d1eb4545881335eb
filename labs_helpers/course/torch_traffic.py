"""Count the bytes that a chain of PyTorch operations moves through memory, operation by operation."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Operation:
    """One operation and its compulsory bytes: each input tensor is read once, and each new tensor is written once."""

    name: str
    bytes_read: int
    bytes_written: int

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass
class TorchTraffic(TorchDispatchMode):
    """`with TorchTraffic() as traffic:` records each operation that touches memory; views do not.

    The bytes are an upper bound of the traffic to DRAM, and exact for tensors larger than the caches.
    """

    operations: list[Operation] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    @property
    def bytes(self) -> int:
        return sum(operation.bytes for operation in self.operations)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Avoid torch._dynamo, whose import takes longer than most checks. Nothing is compiled here."""
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        # matmul ends in an _unsafe_view, whose schema does not mark it as a view.
        is_view = function.overloadpacket.__name__ == "_unsafe_view" or any(
            r.alias_info is not None and not r.alias_info.is_write for r in function._schema.returns
        )
        if not is_view:
            read, written = _bytes([*args, *(kwargs or {}).values()]), _bytes(result)
            self.operations.append(Operation(function.overloadpacket.__name__, read, written))
        return result


def _bytes(values) -> int:
    return sum(t.numel() * t.element_size() for t in tree_leaves(values) if isinstance(t, torch.Tensor))
