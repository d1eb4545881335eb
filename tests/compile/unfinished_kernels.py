"""Build kernels only as far as a launch needs, for workers that test launches without running code on a GPU.

This takes a third of the time of a full compilation.
"""

import re

from triton._C.libtriton import llvm
from triton.backends.nvidia.compiler import CUDABackend

KERNEL = re.compile(r"define ptx_kernel void @(\w+)\(")


def leave_unfinished() -> None:
    """The caller has set TRITON_CACHE_DIR to a folder of its own, so that nobody takes these kernels for real ones."""
    llvm.optimize_module = lambda *module_and_level: None
    CUDABackend.make_ptx = lambda self, llir, metadata, *options: metadata.update(name=KERNEL.search(llir)[1]) or llir
    CUDABackend.make_cubin = lambda self, llir, *options: b""
