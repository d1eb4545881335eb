"""Call a function with a student's code in another process, which interprets Triton kernels.

A process that drives a GPU compiles its kernels, and Triton cannot compile and interpret in one process. The
interpreter can count every load and store, and turns a stray one into an error message. On the GPU it would be an
illegal memory access, which destroys the notebook's CUDA context.
"""

from __future__ import annotations

import linecache
import os
import pickle
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labs_helpers.launch.cell_lines import cell_lines
from labs_helpers.launch.process import run
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.quick_interpreter import quicken


def interpreted(function: Callable, student: Callable, *arguments: Any, **keywords: Any) -> Any:
    """Return `function(student, *arguments, **keywords)`, evaluated where kernels are interpreted: in this process,
    or in another if this one compiles them."""
    if this_machine().interpreted:
        return function(student, *arguments, **keywords)
    return call_interpreted(function, student, *arguments, **keywords)


def call_interpreted(
    function: Callable,
    student: Callable,
    *arguments: Any,
    timeout: float = 120,
    env: Mapping[str, str] | None = None,
    **keywords: Any,
) -> Any:
    """Return `function(student, *arguments, **keywords)`, evaluated in another process that interprets kernels.

    function: found there by its name in its module. student: a notebook's function; everything it refers to travels
    with it. Tensors travel as copies in main memory, and the result is pickled. timeout: in seconds. env: variables to
    set there. Raises ProcessFailed with that process's traceback, and TypeError for objects that cannot be sent.
    """
    if hasattr(student, "elsewhere"):  # an answer that already runs in a separate process
        return function(student.elsewhere(env or {}), *arguments, **keywords)
    from labs_helpers.compile.pickled import pickled

    with tempfile.TemporaryDirectory() as folder:
        order, answer = Path(folder, "order.pkl"), Path(folder, "answer.pkl")
        order.write_bytes(pickle.dumps((sys.path, cell_lines())) + pickled(student, function, arguments, keywords))
        run(
            [sys.executable, "-m", "labs_helpers.compile.interpreter_process", str(order), str(answer)],
            timeout=timeout,
            env={**os.environ, "TRITON_INTERPRET": "1", "LABS_DEVICE": "cpu", **(env or {})},
        )
        return pickle.loads(answer.read_bytes())


def call(student: Callable, *arguments: Any, **keywords: Any) -> Any:
    """Call the student's function and nothing else, as the function of `call_interpreted`."""
    return student(*arguments, **keywords)


def main(order: str, answer: str) -> None:
    if prepare_triton():
        quicken()
    with open(order, "rb") as file:
        sys.path[:], lines = pickle.load(file)
        linecache.cache.update(lines)
        student, function, arguments, keywords = pickle.load(file)
    try:
        Path(answer).write_bytes(pickle.dumps(function(student, *arguments, **keywords)))
    except Exception:
        traceback.print_exc()  # it knows the cells' lines; Python's default traceback does not
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
