"""triton-viz's sanitizer on an answer: it proves with a solver whether some load or store can leave its tensor.

It ends the process that it runs in at the first violation, so it gets one of its own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

from labs_helpers.compile.source import portable_source
from labs_helpers.launch.process import ProcessFailed, run

_HEADER = """
from labs_helpers.measure.machine import prepare_triton
prepare_triton()
import torch
import triton_viz
from triton_viz.clients import Sanitizer
"""


def sanitize(name: str, function, *tensors, timeout: float = 60) -> str:
    """One or two lines that name the line of a stray access, or '' when none is found (or triton-viz is absent).

    function: a launcher of Triton kernels called `name`. tensors: what it is called with; the sanitizer's process
    gets contiguous random tensors of the same shapes and dtypes.
    """
    if importlib.util.find_spec("triton_viz") is None:
        return ""
    source = portable_source(function)
    for kernel in set(re.findall(r"^\s+(\w+)\[", source, re.MULTILINE)):
        source = re.sub(
            rf"^@triton\.jit\ndef {kernel}\(",
            f"@triton_viz.trace(client=Sanitizer())\n@triton.jit\ndef {kernel}(",
            source,
            flags=re.MULTILINE,
        )
    calls = ", ".join(f"torch.randn({tuple(t.shape)}).to({t.dtype})" for t in tensors)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "answer.py")
        program.write_text(f"{_HEADER}\n{source}\n\n{name}({calls})\n")
        try:
            run(
                [sys.executable, str(program)],
                timeout=timeout,
                env={**os.environ, "TRITON_INTERPRET": "1", "LABS_DEVICE": "cpu"},
            )
        except ProcessFailed as error:
            return _described(error.output)
    return ""


def _described(report: str) -> str:
    """The tensor and the line out of the sanitizer's coloured report."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", report)
    line = re.search(r"^→\s*\d+ │\s*(.+)$", plain, re.MULTILINE)
    tensor = re.search(r"^\s*arg:\s*(\S+)", plain, re.MULTILINE)
    if not line or not tensor:
        return ""
    return f"triton-viz's sanitizer: some program leaves {tensor[1]} at\n  {line[1].strip()}"
