"""Have another process call something with a student's function, in Triton's interpreter.

A process that drives a GPU compiles its kernels, and Triton is either compiling or interpreting, never both in one
process. In the interpreter every load and store can be counted, and a stray one ends in an error message; on the GPU
it would be an illegal memory access, which takes the notebook's whole CUDA context with it.
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
    """What `function(student, *arguments, **keywords)` returns where kernels are interpreted: in this process, or in
    another one if this one compiles them."""
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
    """What `function(student, *arguments, **keywords)` returns in another process, which interprets kernels.

    function: of a module, by whose name it is found there. student: a function of a notebook, which goes with all that
    it refers to. Tensors go as copies in main memory; what is returned is pickled. timeout: in seconds. env: variables
    to set there. Raises ProcessFailed with that process's traceback, TypeError for what cannot be sent.
    """
    if hasattr(student, "elsewhere"):  # an answer that is in a process of its own already
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
    """The function of `call_interpreted` that calls the student's and nothing else."""
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
        traceback.print_exc()  # which knows the cells' lines; Python's own last words do not
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
