"""The meter counts a kernel's loads and stores, element by element, in Triton's interpreter.

The interpreter performs every load and store in Python, so these counts are exact on any machine: traffic, tiles
computed twice, elements never written, and accesses outside a tensor.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from labs_helpers.compile.launches import Launch, record_launches
from labs_helpers.course.pointers import parameter_of


class StrayAccess(Exception):
    """A load or store outside every tensor that was passed to the kernel."""

    def __init__(self, kind, tensor, where, program, line_number, line):
        self.kind, self.tensor, self.where, self.program = kind, tensor, where, program
        self.line_number, self.line = line_number, line
        at = f"\n  line {line_number}: {line}" if line else ""
        super().__init__(f"{kind} outside {tensor}: {where}, program {program}{at}")


@dataclass
class Storage:
    """One block of memory, with the number of loads and stores of each element."""

    address: int
    itemsize: int
    inside: np.ndarray  # bool: whether the element belongs to a tensor that was passed
    loads: np.ndarray
    stores: np.ndarray
    writers: np.ndarray
    last_writer: np.ndarray
    views: dict = field(default_factory=dict)  # (offset, shape, strides) → first parameter name

    @property
    def end(self) -> int:
        return self.address + self.inside.size * self.itemsize

    def name_element(self, index: int) -> tuple[str, str]:
        """Return (the tensor's name, 'row 3, column 40 of 37×40') for the element `index`, relative to the nearest
        view."""
        (offset, shape, strides), name = min(
            self.views.items(), key=lambda view: abs(index - view[0][0]) if index >= view[0][0] else float("inf")
        )
        position = []
        rest, size = index - offset, "×".join(map(str, shape))
        if rest < 0:
            return name, f"{_before(-rest)} ({size})"
        for stride in sorted({s for s in strides if s > 0}, reverse=True):
            position.append((stride, *divmod(rest, stride)))
            rest = rest % stride
        steps = {stride: count for stride, count, _ in position}
        coordinates = [steps.get(stride, 0) for stride in strides]
        if len(shape) == 2:
            return name, f"row {coordinates[0]}, column {coordinates[1]} of {size}"
        return name, f"element {', '.join(map(str, coordinates))} of {size}"


@dataclass(frozen=True)
class Counts:
    """One tensor's counts; each is an array with the tensor's shape, and bytes are in bytes. `writers`: the number
    of programs that stored to an element. `last_writer`: the number of the last of them, −1 if there is none."""

    name: str
    itemsize: int
    loads: np.ndarray
    stores: np.ndarray
    writers: np.ndarray
    last_writer: np.ndarray

    @property
    def bytes_loaded(self) -> int:
        return int(self.loads.sum()) * self.itemsize

    @property
    def bytes_stored(self) -> int:
        return int(self.stores.sum()) * self.itemsize


class Meter:
    """What `metered()` records: the `launches`, and the counts of each tensor that a launch got."""

    def __init__(self):
        self.launches: list[Launch] = []
        self.storages: dict[int, Storage] = {}
        self.program = -1
        self.accesses = 0  # number of block loads and stores by the programs

    def of(self, tensor) -> Counts:
        """Return the counts of `tensor`, all zero if no kernel got it."""
        storage = self.storages.get(tensor.untyped_storage().data_ptr())
        shape, strides = tuple(tensor.shape), tensor.stride()
        if storage is None:
            nothing = np.zeros(shape, dtype=np.int64)
            return Counts("", tensor.element_size(), nothing, nothing, nothing, nothing - 1)
        offset = tensor.storage_offset()
        view = {
            key: as_view(getattr(storage, key), offset, shape, strides)
            for key in ("loads", "stores", "writers", "last_writer")
        }
        return Counts(storage.views.get((offset, shape, strides), ""), storage.itemsize, **view)

    def knows(self, tensor) -> bool:
        """Tell whether some kernel got `tensor` or another view of its memory."""
        return tensor.untyped_storage().data_ptr() in self.storages

    @property
    def bytes_moved(self) -> int:
        """Return the bytes loaded plus the bytes stored, over all tensors."""
        return sum((int(s.loads.sum()) + int(s.stores.sum())) * s.itemsize for s in self.storages.values())

    def bytes_stored_beside(self, tensor) -> int:
        """Return the bytes stored to memory other than that of `tensor`."""
        own = tensor.untyped_storage().data_ptr()
        return sum(int(s.stores.sum()) * s.itemsize for address, s in self.storages.items() if address != own)

    def register(self, launch: Launch) -> None:
        for name, tensor in launch.tensors().items():
            whole = tensor.untyped_storage()
            if whole.data_ptr() not in self.storages:
                size = whole.nbytes() // tensor.element_size()
                self.storages[whole.data_ptr()] = Storage(
                    whole.data_ptr(),
                    tensor.element_size(),
                    np.zeros(size, bool),
                    *(np.zeros(size, np.int64) for _ in range(3)),
                    np.full(size, -1, np.int64),
                )
            storage = self.storages[whole.data_ptr()]
            view = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
            storage.views.setdefault(view, name)
            as_view(storage.inside, *view)[...] = True

    def count(self, kind: str, addresses: np.ndarray, mask: np.ndarray, grid_idx) -> None:
        self.accesses += 1
        touched = addresses[np.broadcast_to(mask, addresses.shape).astype(bool)].astype(np.int64)
        while touched.size:
            storage = self.storage_at(kind, int(touched[0]), grid_idx)
            here = (touched >= storage.address) & (touched < storage.end)
            index = (touched[here] - storage.address) // storage.itemsize
            stray = index[~storage.inside[index]]
            if stray.size:
                raise self.stray(kind, *storage.name_element(int(stray[0])), grid_idx)
            if kind == "load":
                np.add.at(storage.loads, index, 1)
            else:
                np.add.at(storage.stores, index, 1)
                fresh = np.unique(index[storage.last_writer[index] != self.program])
                storage.writers[fresh] += 1
                storage.last_writer[fresh] = self.program
            touched = touched[~here]

    def storage_at(self, kind: str, address: int, grid_idx) -> Storage:
        for storage in self.storages.values():
            if storage.address <= address < storage.end:
                return storage
        if not self.storages:
            raise self.stray(kind, "every tensor", "no tensor was passed to the kernel", grid_idx)
        named = parameter_of(*self.line()[:2], kind)
        meant = [s for s in self.storages.values() if named in s.views.values()] or self.storages.values()
        nearest = min(meant, key=lambda s: min(abs(address - s.address), abs(address - s.end)))
        index = (address - nearest.address) // nearest.itemsize
        view, name = next((one for one in nearest.views.items() if one[1] == named), next(iter(nearest.views.items())))
        place, size = index - view[0], "×".join(map(str, view[1]))
        beside = f", {_before(-place)}" if place < 0 else ""
        raise self.stray(kind, name, f"element {place} of {int(np.prod(view[1]))} ({size}){beside}", grid_idx)

    def stray(self, kind, tensor, where, grid_idx) -> StrayAccess:
        _, number, line = self.line()
        return StrayAccess(kind, tensor, where, tuple(int(i) for i in grid_idx), number, line)

    def line(self) -> tuple[str, int | None, str]:
        return student_line({launch.kernel.__code__.co_filename for launch in self.launches})


def _before(elements: int) -> str:
    return f"{elements:,} element{'s' * (elements > 1)} before the tensor's beginning"


def as_view(flat: np.ndarray, offset: int, shape, strides) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(
        flat[offset:], shape, tuple(s * flat.itemsize for s in strides), writeable=True
    )


def student_line(files: set[str]) -> tuple[str, int | None, str]:
    """Return (file, line number, text) of the innermost running line in one of `files`."""
    import linecache

    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename in files:
            return (
                frame.f_code.co_filename,
                frame.f_lineno,
                linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip(),
            )
        frame = frame.f_back
    return "", None, ""


@contextmanager
def metered():
    """Count every load and store of the kernels that start inside the block; yield the `Meter`.

    A stray access ends the run with StrayAccess before it touches memory. Raises RuntimeError if this process compiles
    kernels, because nothing can be counted on a GPU.
    """
    import triton
    from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder, interpreter_builder

    if not isinstance(triton.language.cdiv, InterpretedFunction):
        raise RuntimeError("the meter needs Triton's interpreter: set TRITON_INTERPRET=1 before importing Triton")

    meter = Meter()
    seen = 0
    names = ("create_masked_load", "create_masked_store", "create_atomic_rmw", "create_atomic_cas", "set_grid_idx")
    original = {name: getattr(InterpreterBuilder, name) for name in names}

    def set_grid_idx(self, x, y, z):
        nonlocal seen
        while seen < len(meter.launches):  # the first program of a new launch
            meter.register(meter.launches[seen])
            seen += 1
        meter.program += 1
        original["set_grid_idx"](self, x, y, z)

    # A tensor descriptor's load and store pass the remaining arguments by name.
    def load(self, ptrs, mask, other, *rest, **named):
        meter.count("load", ptrs.data, mask.data, self.grid_idx)
        loaded = original["create_masked_load"](self, ptrs, mask, other, *rest, **named)
        if other is None and loaded.data.dtype.kind == "f":
            # A GPU leaves these values undefined; the interpreter's zeros would hide a missing other=.
            loaded.data = np.where(np.broadcast_to(mask.data, loaded.data.shape), loaded.data, np.nan).astype(
                loaded.data.dtype
            )
        return loaded

    def store(self, ptrs, value, mask, *rest, **named):
        meter.count("store", ptrs.data, mask.data, self.grid_idx)
        return original["create_masked_store"](self, ptrs, value, mask, *rest, **named)

    def atomic_rmw(self, op, ptr, value, mask, *rest):
        meter.count("load", ptr.data, mask.data, self.grid_idx)
        meter.count("store", ptr.data, mask.data, self.grid_idx)
        return original["create_atomic_rmw"](self, op, ptr, value, mask, *rest)

    def atomic_cas(self, ptr, *rest):
        everywhere = np.ones_like(ptr.data, dtype=bool)
        meter.count("load", ptr.data, everywhere, self.grid_idx)
        meter.count("store", ptr.data, everywhere, self.grid_idx)
        return original["create_atomic_cas"](self, ptr, *rest)

    replacements = (load, store, atomic_rmw, atomic_cas, set_grid_idx)
    for name, replacement in zip(names, replacements, strict=True):
        setattr(InterpreterBuilder, name, replacement)
    try:
        with record_launches() as meter.launches:
            yield meter
    finally:
        interpreter_builder.grid_idx = None
        for name in names:
            setattr(InterpreterBuilder, name, original[name])
