"""Have another process call something with a student's function, in Triton's interpreter.

A process that drives a GPU compiles its kernels, and Triton is either compiling or interpreting, never both in one
process. In the interpreter every load and store can be counted, and a stray one ends in an error message; on the GPU
it would be an illegal memory access, which takes the notebook's whole CUDA context with it.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from labs_helpers.compile.source import plain, portable_source
from labs_helpers.launch.process import run
from labs_helpers.measure.machine import prepare_triton


def call_interpreted(function: Callable, student: Callable, *arguments, timeout: float = 120, **keywords):
    """What `function(student, *arguments, **keywords)` returns in such a process.

    function: of a module, by whose name it is found there. student: a function of a notebook, which goes as source.
    Tensors go as copies in main memory; what is returned has to be pickled, too. Raises ProcessFailed with the
    process's traceback, or its timeout in seconds.
    """
    given = [_in_main_memory(x) for x in arguments], {name: _in_main_memory(x) for name, x in keywords.items()}
    with tempfile.TemporaryDirectory() as folder:
        source, order, answer = (Path(folder, name) for name in ("answer.py", "order.pkl", "answer.pkl"))
        source.write_text(portable_source(student))
        order.write_bytes(pickle.dumps((function, plain(student).__name__, *given)))
        run(
            [sys.executable, "-m", "labs_helpers.compile.interpreter_process", str(source), str(order), str(answer)],
            timeout=timeout,
            env={**os.environ, "TRITON_INTERPRET": "1", "LABS_DEVICE": "cpu"},
        )
        return pickle.loads(answer.read_bytes())


def _in_main_memory(x):
    if isinstance(x, list | tuple):
        return type(x)(_in_main_memory(item) for item in x)
    return x.cpu() if hasattr(x, "cpu") else x


def main(source: str, order: str, answer: str) -> None:
    prepare_triton()
    function, name, arguments, keywords = pickle.loads(Path(order).read_bytes())
    spec = importlib.util.spec_from_file_location("answer", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    Path(answer).write_bytes(pickle.dumps(function(getattr(module, name), *arguments, **keywords)))


if __name__ == "__main__":
    main(*sys.argv[1:])
