"""Launch a compiled kernel again without the checks that Triton repeats at every launch.

`kernel[grid](…)` binds and inspects every argument, encodes each tensor descriptor, and calls two chains of hooks: some
50 µs of Python for a kernel with four descriptors. A `PreparedLaunch` keeps the results and calls the same launcher
with the same arguments.

This uses Triton's private interface (`CompiledKernel.run`, `backends/nvidia/driver.py`) as of 3.6 and 3.7. For any
other version `prepare` returns None, and the caller launches as usual.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

VERSIONS = ("3.6.", "3.7.")
MAPS = 1024  # tensor maps that a kernel caches: 128 bytes each; they hold no operand's memory
_changing = threading.Lock()
_recorders = 0  # how many `usual_launches` blocks are open


@dataclass(frozen=True)
class _Address:
    """The address of a matrix, which is all that its tensor map needs."""

    address: int

    def data_ptr(self) -> int:
        return self.address


@dataclass(frozen=True)
class _Described:
    """The fields of a TensorDescriptor that the driver's `make_tensordesc_arg` reads."""

    base: _Address
    shape: list[int]
    strides: list[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False


class PreparedLaunch:
    """A compiled kernel without its grid, stream and arguments. Threads may share it, since calls only change the
    cache of tensor maps, which is functools' own."""

    def __init__(self, kernel: Any, launch: Callable[..., None], order: Callable[..., tuple[Any, ...]]) -> None:
        import torch
        from triton.runtime import driver

        self._kernel, self._launch, self._order = kernel, launch, order  # the kernel keeps its module loaded
        self._described = kernel.metadata.tensordesc_meta or []
        self._current_device, self._current_stream = driver.active.get_current_device, driver.active.get_current_stream
        if self._current_device is torch.cuda.current_device:  # it checks at every call whether CUDA was initialized
            self._current_device = torch._C._cuda_getDevice
        self._device = self._current_device()
        # A map depends only on these numbers, so it also serves a later tensor at this address, and keeps none alive.
        self.map_of = functools.lru_cache(MAPS)(self._make_map)

    def _make_map(self, which: int, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """Return the tensor map of the kernel's `which`-th descriptor, for a tensor of any rank with strides in
        elements. The launcher takes map, shape and strides, one after the other."""
        from triton.backends.nvidia.driver import make_tensordesc_arg

        described = _Described(_Address(address), list(shape), list(strides))
        return make_tensordesc_arg(described, self._described[which])[0]

    def fits(self) -> bool:
        """Return True if a call now matches the usual launch: the device is the same, and no hook wants to see it."""
        return self._current_device() == self._device and not hooked()

    def stream(self) -> int:
        """Return the current stream of its device, as a number."""
        return self._current_stream(self._device)

    def bind(self, programs: int, stream: int, *arguments: Any) -> Callable[[], None]:
        """Return a function that starts `programs` programs in this stream at each call.

        arguments: all of the kernel's, in order, constants included; a descriptor as `map_of` returns it, with shape
        and strides; a pointer as a number. Arranging a hundred of them takes longer than the launcher itself, so keep
        the result.
        """
        return functools.partial(self._launch, *self._order(programs, stream, arguments))

    def __call__(self, programs: int, *arguments: Any) -> None:
        """Start `programs` programs in the current stream; arguments as for `bind`."""
        self._launch(*self._order(programs, self.stream(), arguments))


def prepare(kernel: Any) -> PreparedLaunch | None:
    """Prepare a launch's result for further launches with arguments of the same types, the same constants, and
    integers that agree in being 1 or divisible by 16. None if only the usual launch works: for another Triton, a
    kernel with scratch memory, or without an NVIDIA GPU."""
    import triton

    launcher: Any = getattr(kernel, "_run", None)
    if not triton.__version__.startswith(VERSIONS) or type(launcher).__name__ != "CudaLauncher":
        return None
    if launcher.global_scratch_size or launcher.profile_scratch_size:
        return None
    launch = launcher.launch
    if launch.__name__ == "inner":  # the wrapper around the launcher that turns TensorDescriptors into tensor maps
        launch = inspect.getclosurevars(launch).nonlocals["launcher"]
    function, metadata = kernel.function, kernel.packed_metadata
    ends = (launcher.launch_cooperative_grid, launcher.launch_pdl)
    if triton.__version__.startswith("3.6."):

        def order(programs: int, stream: int, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            # scratch (two), the warps and shared memory, what hooks are told, the hooks (two)
            return programs, 1, 1, stream, function, *ends, None, None, metadata, None, None, None, *arguments
    else:
        types, signature = launcher.arg_annotations, launcher.kernel_signature

        def order(programs: int, stream: int, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            base = (programs, 1, 1, stream, function, *ends, metadata, None, None, None)
            return *base, None, None, types, signature, arguments

    return PreparedLaunch(kernel, launch, order)


@contextmanager
def usual_launches() -> Iterator[None]:
    """Make every launch inside the block Triton's usual one, for someone who watches launches."""
    global _recorders
    with _changing:
        _recorders += 1
    try:
        yield
    finally:
        with _changing:
            _recorders -= 1


def hooked() -> bool:
    """Return True if a hook wants to see launches (a profiler, `record_launches`) or debug builds are requested;
    then launch as usual."""
    runtime = _runtime()
    if _recorders or runtime is None:
        return True
    for hook in (runtime.launch_enter_hook, runtime.launch_exit_hook):  # any(…) would take twice as long
        if hook is not None and getattr(hook, "calls", True):
            return True
    return bool(runtime.debug)


@functools.cache
def _runtime() -> Any:
    """Return Triton's launch settings; None in Triton 3.2, for which nothing is prepared."""
    try:
        from triton import knobs
    except ImportError:
        return None
    return knobs.runtime


class TensorLaunch:
    """A kernel of pointers, integers and constants, in this order. The first launch is the usual one and prepares the
    others.

    Create one for each combination of dtype, integers and alignment, since these decide how Triton specializes a
    kernel. numbers: the integers. constants: name → value. options: num_warps and similar. Tensors are passed at each
    call and not kept.
    """

    def __init__(
        self, kernel: Any, programs: int, numbers: tuple[int, ...], constants: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self._kernel, self._programs, self._keywords = kernel, programs, constants | options
        self._numbers, self._constants = numbers, constants
        self._rest: tuple[Any, ...] = ()
        self._prepared: PreparedLaunch | None = None

    def __call__(self, *tensors: Any) -> None:
        ready = self._prepared
        if ready is not None and ready.fits():
            ready(self._programs, *[tensor.data_ptr() for tensor in tensors], *self._rest)
            return
        kernel = self._kernel[(self._programs,)](*tensors, *self._numbers, **self._keywords)
        if ready is None and not hooked():
            in_order = [self._constants[name] for name in self._kernel.arg_names if name in self._constants]
            self._rest = (*self._numbers, *in_order)
            self._prepared = prepare(kernel)
