"""Run triton-viz's sanitizer on an answer: a solver decides whether a load or store can leave its tensor.

The sanitizer ends its process at the first violation, so it runs in a separate one.
"""

from __future__ import annotations

import importlib.util
import re

from labs_helpers.compile.interpreter_process import call_interpreted
from labs_helpers.compile.source import is_kernel, names_used, plain, reachable
from labs_helpers.launch.process import ProcessFailed


def sanitize(function, *tensors, timeout: float = 60) -> str:
    """Return one or two lines that name the line of a stray access; '' if there is none or triton-viz is not installed.

    function: a launcher of Triton kernels. tensors: its arguments; the sanitizer's process gets contiguous random
    tensors of the same shapes and dtypes. timeout: in seconds.
    """
    if importlib.util.find_spec("triton_viz") is None:
        return ""
    shapes = [(tuple(t.shape), t.dtype) for t in tensors]
    try:
        call_interpreted(_call_sanitized, function, shapes, timeout=timeout)
    except ProcessFailed as error:
        return _described(error.output)
    return ""


def _call_sanitized(function, shapes) -> None:
    """Runs in the sanitizer's process: trace the kernels that are launched, but not the functions that they call."""
    import torch
    import triton_viz
    from triton_viz.clients import Sanitizer
    from triton_viz.clients.sanitizer import report

    # Frames of the quick interpreter do not belong to the answer.
    getattr(report, "_FRAMEWORK_PATHS", []).append("labs_helpers/measure/")
    for part in reachable(function).values():
        for name, value in names_used(part).items() if not is_kernel(part) else ():
            if is_kernel(value):
                plain(part).__globals__[name] = triton_viz.trace(client=Sanitizer())(value)
    function(*(torch.randn(shape).to(dtype) for shape, dtype in shapes))


def _described(report: str) -> str:
    """Return the tensor and the line from the sanitizer's colored report."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", report)
    line = re.search(r"^→\s*\d+ │\s*(.+)$", plain, re.MULTILINE)
    tensor = re.search(r"^\s*arg:\s*(\S+)", plain, re.MULTILINE)
    if not line or not tensor:
        return ""
    return f"triton-viz's sanitizer: some program leaves {tensor[1]} at\n  {line[1].strip()}"
