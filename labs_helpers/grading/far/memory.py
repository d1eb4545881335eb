"""Blocks of memory that two processes know by number: with each message go the bytes that have changed since the last.

So an array that is written in place, a view of an argument and a result in an argument's own memory are on either side
what they are on the other.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.judged import Refused

DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128,
)}  # fmt: skip
MOST_DIMENSIONS = 16


@dataclass
class Block:
    """size bytes from `start` on. owner: keeps them alive. sent: their content when both sides last agreed. objects:
    the arrays that were made of it, by their descriptions, so that one that comes back is the same object."""

    number: int
    start: int
    size: int
    owner: Any
    sent: bytes = b""
    storage: Any = None
    objects: dict[str, Any] = field(default_factory=dict)

    def content(self) -> bytes:
        return ctypes.string_at(self.start, self.size) if self.size else b""

    def write(self, content: bytes) -> None:
        if len(content) != self.size:
            raise Refused(f"{len(content)} bytes for a block of {self.size}")
        ctypes.memmove(self.start, content, self.size)
        self.sent = content


class _Room:
    """A block's bytes as NumPy asks for them; an array of it keeps the block's owner alive."""

    def __init__(self, block: Block) -> None:
        self.owner = block.owner
        self.__array_interface__ = {
            "data": (block.start, False),
            "shape": (block.size,),
            "typestr": "|u1",
            "version": 3,
        }


class Memory:
    """first: this side's first number; the other side has the numbers between. allocate(content, dtype, kind): memory
    for a block that the other side has made, as (owner, address). changed: is told what the other side has changed."""

    def __init__(
        self,
        first: int,
        allocate: Callable[[bytes, str, str], tuple[Any, int]],
        changed: Callable[[bytes], None] = lambda content: None,
    ) -> None:
        self.next, self.allocate, self.changed = first, allocate, changed
        self.blocks: dict[int, Block] = {}
        self.leaves: dict[int, tuple[torch.Tensor, int]] = {}  # those that gradients are of, and which each had last

    def described(self, array: np.ndarray[Any, Any] | torch.Tensor) -> dict[str, Any]:
        """An array or a tensor as its place in a block, a new one if no block has it."""
        is_torch = isinstance(array, torch.Tensor)
        if is_torch:
            if array.grad_fn is not None:
                raise Refused("a tensor with a graph")
            if array.requires_grad:
                self.leaves.setdefault(id(array), (array, 0))
            if array.layout != torch.strided or array.device.type != "cpu" or array.is_conj() or array.is_neg():
                raise Refused(f"a tensor on {array.device}, {array.layout}")
            dtype, item = str(array.dtype).removeprefix("torch."), array.element_size()
            strides, address = [stride * item for stride in array.stride()], array.data_ptr()
        else:
            dtype, item, strides, address = str(array.dtype), array.itemsize, list(array.strides), array.ctypes.data
        if dtype not in DTYPES:
            raise Refused(f"an array of {dtype}")
        shape = [int(n) for n in array.shape]
        said = {"kind": type(array).__name__ if is_torch else "ndarray", "dtype": dtype, "shape": shape}
        if is_torch:
            said["grad"] = array.requires_grad
        else:
            said["writeable"] = bool(array.flags.writeable)
        if 0 in shape:
            return said | {"block": None}
        low, high = _reach(shape, strides, item)
        block = self._at(address + low, address + high)
        if block is None:
            block = self._new(array)
        said |= {"block": block.number, "offset": address - block.start, "strides": strides}
        block.objects.setdefault(_key(said), array)
        return said

    def _at(self, low: int, high: int) -> Block | None:
        return next((b for b in self.blocks.values() if b.start <= low and high <= b.start + b.size), None)

    def _new(self, array: np.ndarray[Any, Any] | torch.Tensor) -> Block:
        owner: Any = array
        if isinstance(array, torch.Tensor):
            storage = array.untyped_storage()
            owner, start, size = (array, storage), storage.data_ptr(), storage.nbytes()
        else:
            root = array
            while isinstance(root.base, np.ndarray):
                root = root.base
            start, end = np.lib.array_utils.byte_bounds(root)
            owner, size = (array, root), end - start
        block = self.blocks[self.next] = Block(self.next, start, size, owner)
        self.next += 2
        return block

    def made(self, said: dict[str, Any]) -> np.ndarray[Any, Any] | torch.Tensor:
        """The array or tensor of a description. Refused where it reaches beyond its block."""
        kind, dtype, shape = said["kind"], said["dtype"], said["shape"]
        if dtype not in DTYPES or len(shape) > MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
            raise Refused("no array")
        if said["block"] is None:
            if 0 not in shape:
                raise Refused("an array without memory")
            return _of_kind(torch.empty(shape, dtype=DTYPES[dtype]), said)
        block, offset, strides = self.blocks[said["block"]], said["offset"], said["strides"]
        if (known := block.objects.get(_key(said))) is not None:
            return known
        item = DTYPES[dtype].itemsize
        numbers = [offset, *strides]
        if len(strides) != len(shape) or not all(type(n) is int and n % item == 0 for n in numbers):
            raise Refused("no array")
        low, high = _reach(shape, strides, item)
        if math.prod(shape) == 0 or offset + low < 0 or offset + high > block.size:
            raise Refused("an array beyond its memory")
        if kind == "ndarray":
            array: Any = np.ndarray(shape, dtype, np.asarray(_Room(block)), offset, strides)
            array.flags.writeable = bool(said.get("writeable", True))
        else:
            array = _of_kind(self._tensor(block, DTYPES[dtype], offset, shape, strides), said)
        block.objects[_key(said)] = array
        return array

    @staticmethod
    def _tensor(block: Block, dtype: torch.dtype, offset: int, shape: list[int], strides: list[int]) -> torch.Tensor:
        if block.storage is None:
            owner = block.owner[1] if isinstance(block.owner, tuple) else block.owner
            if isinstance(owner, torch.UntypedStorage):
                block.storage = owner
            else:
                block.storage = torch.from_numpy(np.asarray(_Room(block))).untyped_storage()
        beyond = block.start - block.storage.data_ptr()
        item = dtype.itemsize
        return torch.empty(0, dtype=dtype).set_(
            block.storage, (beyond + offset) // item, shape, [stride // item for stride in strides]
        )

    def gradients(self) -> list[list[Any]]:
        """What the other side does not know of leaves' gradients: pairs of descriptions, None for no gradient."""
        found = []
        for number, (leaf, known) in list(self.leaves.items()):
            if id(leaf.grad) != known:
                self.leaves[number] = (leaf, id(leaf.grad))
                found.append([self.described(leaf), None if leaf.grad is None else self.described(leaf.grad)])
        return found

    def take_gradients(self, pairs: list[list[Any]]) -> None:
        for of, said in pairs:
            leaf = self.made(of)
            assert isinstance(leaf, torch.Tensor)
            gradient = None if said is None else self.made(said)
            leaf.grad = gradient  # type: ignore[assignment]
            self.leaves[id(leaf)] = (leaf, id(leaf.grad))

    def changes(self) -> Iterator[tuple[dict[str, Any], bytes]]:
        """What the other side does not know yet: a block's number, size, dtype and kind, and its bytes."""
        for block in self.blocks.values():
            content = block.content()
            if content != block.sent or not block.sent:
                first = next(iter(block.objects.values()), None)
                kind = "torch" if isinstance(first, torch.Tensor) else "numpy"
                dtype = str(first.dtype).removeprefix("torch.") if first is not None else "uint8"
                block.sent = content
                yield {"block": block.number, "size": block.size, "dtype": dtype, "kind": kind}, content

    def take(self, said: dict[str, Any], content: bytes) -> None:
        """Takes over what the other side's `changes` gave."""
        block = self.blocks.get(said["block"])
        if block is not None:
            block.write(content)
            self.changed(content)
            return
        if type(said["block"]) is not int or said["block"] % 2 == self.next % 2 or said["dtype"] not in DTYPES:
            raise Refused("no block")
        owner, start = self.allocate(content, said["dtype"], said["kind"])
        self.blocks[said["block"]] = Block(said["block"], start, len(content), owner, content)


def plain_memory(content: bytes, dtype: str, kind: str) -> tuple[Any, int]:
    """(owner, address) of memory with this content, aligned as PyTorch's is."""
    tensor = torch.frombuffer(bytearray(content), dtype=torch.uint8).clone()
    return (tensor, tensor.untyped_storage()), tensor.data_ptr()


def _of_kind(tensor: torch.Tensor, said: dict[str, Any]) -> Any:
    if said["kind"] == "ndarray":
        return tensor.numpy() if said["dtype"] != "bfloat16" else tensor
    if said["kind"] == "Parameter":
        return torch.nn.Parameter(tensor, requires_grad=bool(said.get("grad")))
    return tensor.requires_grad_(True) if said.get("grad") and tensor.is_floating_point() else tensor


def _reach(shape: list[int], strides: list[int], item: int) -> tuple[int, int]:
    """How far an array's elements lie from its first one's address: the first byte, and the one after the last."""
    ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + item


def _key(said: dict[str, Any]) -> str:
    return repr([said[name] for name in ("kind", "dtype", "shape", "offset", "strides")])
