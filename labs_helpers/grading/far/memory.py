"""Memory that a judge and an answer's process both know, as numbered blocks.

Every message carries the bytes that changed since the last one. An array that is written in place, a view of an
argument, and a result in an argument's own memory are therefore the same on both sides.

The judge keeps each block that it created until the answer no longer uses an array of it. So a check that asks whether
a tensor was released gets the same reply whether the answer runs in its process or in another.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

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
    """`size` bytes at address `start`, which `owner` keeps alive: a storage of PyTorch's, or an array of NumPy's.

    sent: the bytes that both sides last agreed on. objects: the arrays in this block by description, so that an array
    that comes back is the same object. shown: the beginning and end of the arrays that a judge has described; an answer
    gets zeros for the bytes around them, which may belong to another rank.
    """

    number: int
    start: int
    size: int
    owner: torch.UntypedStorage | np.ndarray[Any, Any]
    sent: bytes = b""
    objects: MutableMapping[str, Any] = field(default_factory=dict)
    shown: tuple[int, int] | None = None

    def content(self) -> bytes:
        whole = ctypes.string_at(self.start, self.size)
        low, high = self.shown or (0, self.size)
        return bytes(low) + whole[low:high] + bytes(self.size - high)

    def show(self, low: int, high: int) -> None:
        first, last = self.shown or (low, high)
        self.shown = min(first, low), max(last, high)

    def write(self, content: bytes) -> None:
        """Write the bytes that the other side has changed since both agreed."""
        if len(content) != self.size:
            raise Refused(f"{len(content)} bytes for a block of {self.size}")
        given, before = (np.frombuffer(one, np.uint8) for one in (content, self.sent))
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(self.start))
        np.copyto(memory, given, where=given != before)
        self.sent = content

    def is_in_use(self) -> bool:
        """Return True if an array still uses a storage that the block keeps."""
        return bool(torch._C._storage_Use_Count(self.owner._cdata) > 1)  # type: ignore[union-attr]

    def tensor(self, dtype: torch.dtype, offset: int, shape: list[int], strides: list[int]) -> torch.Tensor:
        """offset and strides: in bytes."""
        storage = self.owner
        if isinstance(storage, np.ndarray):
            storage = torch.from_numpy(np.asarray(_Bytes(self))).untyped_storage()
        item = dtype.itemsize
        place = (self.start - storage.data_ptr() + offset) // item
        return torch.empty(0, dtype=dtype).set_(storage, place, shape, [n // item for n in strides])


class _Bytes:
    """A block's bytes, in NumPy's array interface. An array created from it keeps the block's memory alive."""

    def __init__(self, block: Block) -> None:
        of_torch = isinstance(block.owner, torch.UntypedStorage)
        self.owner = torch.empty(0).set_(block.owner) if of_torch else block.owner  # type: ignore[arg-type]
        self.__array_interface__ = {
            "data": (block.start, False),
            "shape": (block.size,),
            "typestr": "|u1",
            "version": 3,
        }


class Memory:
    """One side's view of the blocks.

    first: the number of the first block that this side creates, 0 for the judge and 1 for the answer; later numbers
    increase by 2. allocate(content, dtype, kind): returns a tensor with the bytes of a block that the other side has
    created. changed(content): is called for each block that the other side has changed. withheld: the other side gets
    random numbers in place of all contents, except whole numbers that this side created.
    """

    def __init__(
        self,
        first: int,
        allocate: Callable[[bytes, str, str], torch.Tensor],
        changed: Callable[[bytes], None] = lambda content: None,
    ) -> None:
        self.next, self.allocate, self.changed, self.withheld = first, allocate, changed, False
        self.blocks: dict[int, Block] = {}
        self.leaves: dict[int, tuple[torch.Tensor, int]] = {}  # with the id of the gradient that both sides know

    def is_own(self, number: int) -> bool:
        """Return True if this side creates blocks with such numbers."""
        return number % 2 == self.next % 2

    def releases(self, number: int) -> bool:
        """Return True if this side reports when it no longer uses an array of a block; an answer does so for the
        judge's blocks."""
        return self.next % 2 == 1 and not self.is_own(number)

    def described(self, array: np.ndarray[Any, Any] | torch.Tensor) -> dict[str, Any]:
        """Describe an array or a tensor by its place in a block; create a block if none contains it."""
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
        block = self._at(address + low, address + high) or self._new(array)
        if self.is_own(block.number) and self.next % 2 == 0:
            block.show(address + low - block.start, address + high - block.start)
        said |= {"block": block.number, "offset": address - block.start, "strides": strides}
        block.objects.setdefault(_key(said), array)
        return said

    def _at(self, low: int, high: int) -> Block | None:
        return next((b for b in self.blocks.values() if b.start <= low and high <= b.start + b.size), None)

    def block_of(self, storage: torch.UntypedStorage) -> Block | None:
        """Return the block in this storage that the other side created."""
        found = self._at(storage.data_ptr(), storage.data_ptr() + 1)
        return None if found is None or self.is_own(found.number) else found

    def _new(self, array: np.ndarray[Any, Any] | torch.Tensor) -> Block:
        if isinstance(array, torch.Tensor):
            storage = array.untyped_storage()
            size = torch._C.StorageBase.nbytes(storage)  # also of memory that a check shows as freed
            block = Block(self.next, storage.data_ptr(), size, storage)
        else:
            root = array
            while isinstance(root.base, np.ndarray):
                root = root.base
            start, end = np.lib.array_utils.byte_bounds(root)
            block = Block(self.next, start, end - start, root)
        self.blocks[self.next] = block
        self.next += 2
        return block

    def made(self, said: dict[str, Any]) -> np.ndarray[Any, Any] | torch.Tensor:
        """Return the array or tensor for a description. Raise Refused if it extends beyond its block."""
        kind, dtype, shape = said["kind"], said["dtype"], said["shape"]
        if dtype not in DTYPES or len(shape) > MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
            raise Refused("no array")
        if said["block"] is None:
            if 0 not in shape:
                raise Refused("an array without memory")
            return _of_kind(torch.empty(shape, dtype=DTYPES[dtype]), said)
        block, offset, strides = self.blocks[said["block"]], said["offset"], said["strides"]
        if (known := block.objects.get(_key(said))) is not None:
            if said.get("grad") and not self.is_own(block.number) and known.is_leaf:
                known.requires_grad_(True)  # the other side called requires_grad_() after its tensor came here
            return known
        item = DTYPES[dtype].itemsize
        numbers = [offset, *strides]
        if len(strides) != len(shape) or not all(type(n) is int and n % item == 0 for n in numbers):
            raise Refused("no array")
        low, high = _reach(shape, strides, item)
        if math.prod(shape) == 0 or offset + low < 0 or offset + high > block.size:
            raise Refused("an array beyond its memory")
        if kind == "ndarray":
            array: Any = np.ndarray(shape, dtype, np.asarray(_Bytes(block)), offset, strides)
            array.flags.writeable = bool(said.get("writeable", True))
        else:
            array = _of_kind(block.tensor(DTYPES[dtype], offset, shape, strides), said)
        block.objects[_key(said)] = array
        return array

    # what a message carries beside its values

    def news(self) -> tuple[dict[str, Any], bytes]:
        """Return (description, bytes) of the changes on this side: gradients, bytes of blocks, and blocks without
        arrays."""
        gradients, changes, contents = self._gradients(), [], []
        for block in self.blocks.values():
            content = block.content()
            if content != block.sent:
                first = next(iter(block.objects.values()), None)
                kind = "torch" if isinstance(first, torch.Tensor) else "numpy"
                dtype = str(first.dtype).removeprefix("torch.") if first is not None else "uint8"
                changes.append({"block": block.number, "size": block.size, "dtype": dtype, "kind": kind})
                given = not block.sent and self.is_own(block.number) and dtype.startswith(("int", "uint", "bool"))
                contents.append(_random(len(content), dtype) if self.withheld and not given else content)
                block.sent = content
        gone = [number for number, block in self.blocks.items() if self.releases(number) and not block.is_in_use()]
        for number in gone:
            del self.blocks[number]
        return {"memory": changes, "gradients": gradients, "gone": gone}, b"".join(contents)

    def take(self, told: dict[str, Any], content: bytes) -> None:
        """Apply the other side's `news`."""
        at = 0
        for said in told["memory"]:
            size = int(said["size"])
            self._take_block(said, content[at : at + size])
            at += size
        for of, given in told["gradients"]:
            leaf = self.made(of)
            assert isinstance(leaf, torch.Tensor)
            leaf.grad = None if given is None else self.made(given)  # type: ignore[assignment]
            self.leaves[id(leaf)] = (leaf, id(leaf.grad))
        for number in filter(self.is_own, told["gone"]):
            self.blocks.pop(number, None)

    def _take_block(self, said: dict[str, Any], content: bytes) -> None:
        number = said["block"]
        if number in self.blocks:
            self.blocks[number].write(content)
            self.changed(content)
            return
        if type(number) is not int or self.is_own(number) or said["dtype"] not in DTYPES:
            raise Refused("no block")
        tensor = self.allocate(content, said["dtype"], said["kind"])
        known: MutableMapping[str, Any] = WeakValueDictionary() if self.releases(number) else {}
        storage = tensor.untyped_storage()
        self.blocks[number] = Block(number, tensor.data_ptr(), len(content), storage, content, known)

    def _gradients(self) -> list[list[Any]]:
        """Return the leaves whose gradient was replaced: pairs of descriptions, with None for no gradient."""
        found = []
        for number, (leaf, known) in list(self.leaves.items()):
            if id(leaf.grad) != known:
                self.leaves[number] = (leaf, id(leaf.grad))
                found.append([self.described(leaf), None if leaf.grad is None else self.described(leaf.grad)])
        return found


def plain_memory(content: bytes, dtype: str, kind: str) -> torch.Tensor:
    """Return memory with this content, aligned as PyTorch aligns it."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).clone()


_DRAW = np.random.default_rng()


def _random(size: int, dtype: str) -> bytes:
    """Return random numbers from 0.5 to 1.5 that fill this many bytes."""
    of = DTYPES[dtype]
    numbers = torch.from_numpy(_DRAW.uniform(0.5, 1.5, -(-size // of.itemsize))).to(of)
    return ctypes.string_at(numbers.data_ptr(), size)


def _of_kind(tensor: torch.Tensor, said: dict[str, Any]) -> Any:
    if said["kind"] == "ndarray":
        return tensor.numpy() if said["dtype"] != "bfloat16" else tensor
    if said["kind"] == "Parameter":
        return torch.nn.Parameter(tensor, requires_grad=bool(said.get("grad")))
    return tensor.requires_grad_(True) if said.get("grad") and tensor.is_floating_point() else tensor


def _reach(shape: list[int], strides: list[int], item: int) -> tuple[int, int]:
    """Return the first byte of an array's elements and the byte after the last, relative to the address of its first
    element."""
    ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + item


def _key(said: dict[str, Any]) -> str:
    return repr([said[name] for name in ("kind", "dtype", "shape", "offset", "strides")])
