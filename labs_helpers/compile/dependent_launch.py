"""Programmatic dependent launch: a kernel starts before the previous one of its stream ends, and waits inside.

It hides the start of short kernels. With the launch option `launch_pdl=True`, a kernel may start as soon as every
program of the previous kernel has called `tl.extra.cuda.gdc_launch_dependents()` or ended. Before it reads anything
that earlier kernels wrote, or writes anything that they read, it calls `tl.extra.cuda.gdc_wait()`, which returns when
the previous kernel has ended. Since every kernel of the chain waits, all kernels before that one have ended too. (CUDA
C++ Programming Guide, Programmatic Dependent Launch and Synchronization.)
"""

from __future__ import annotations

from typing import Any

from labs_helpers.measure.machine import this_machine


def can_depend() -> bool:
    """Return True if compiled kernels run here on a GPU with dependent launches: compute capability 9.0 and newer."""
    here = this_machine()
    return not here.interpreted and here.capability is not None and here.capability >= (9, 0)


def dependent_options(dependent: bool) -> dict[str, Any]:
    """Return the launch options of a kernel that waits for the previous one by itself; {} for one that does not."""
    return {"launch_pdl": True} if dependent else {}
