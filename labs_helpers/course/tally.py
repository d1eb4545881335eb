"""Count what one call loads and stores, on any machine: in the interpreter here, or in another process's."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labs_helpers.bench.machine import prepare_triton, this_machine
from labs_helpers.bench.source import plain, portable_source
from labs_helpers.course.meter import metered
from labs_helpers.launch.process import run


@dataclass(frozen=True)
class Tally:
    """One call's traffic. `loads`: one array an input, how often each element was loaded. `stores` and `writer`: of
    the result, how often each element was stored and which program, counted from 0, stored it last (−1: none).
    Bytes are bytes."""

    loads: list
    stores: np.ndarray
    writer: np.ndarray
    bytes_loaded: int
    bytes_stored: int
    launches: int

    @property
    def bytes_moved(self) -> int:
        return self.bytes_loaded + self.bytes_stored


def tally(function, *tensors, **keywords) -> Tally:
    """Call `function(*tensors, **keywords)`, which launches Triton kernels and returns a tensor, and count.

    On a GPU the call is made in the interpreter of another process, on copies in main memory. Raises what the
    call raises.
    """
    if this_machine().interpreted:
        return _tally(function, tensors, keywords)
    return tally_elsewhere(function, *tensors, **keywords)


def tally_elsewhere(function, *tensors, **keywords) -> Tally:
    """The same, always in the interpreter of another process."""
    with tempfile.TemporaryDirectory() as folder:
        source, order, answer = (Path(folder, name) for name in ("answer.py", "order.pkl", "tally.pkl"))
        source.write_text(portable_source(function))
        order.write_bytes(pickle.dumps(([t.cpu() for t in tensors], keywords)))
        run([sys.executable, "-m", "labs_helpers.course.tally", str(source), plain(function).__name__, str(order),
             str(answer)], timeout=120, env={**os.environ, "TRITON_INTERPRET": "1", "LABS_DEVICE": "cpu"})
        return pickle.loads(answer.read_bytes())


def _tally(function, tensors, keywords) -> Tally:
    with metered() as meter:
        result = function(*tensors, **keywords)
    inputs, output = [meter.of(t) for t in tensors], meter.of(result)
    return Tally([c.loads for c in inputs], output.stores, output.last_writer,
                 sum(c.bytes_loaded for c in inputs), meter.bytes_moved - sum(c.bytes_loaded for c in inputs),
                 len(meter.launches))


def main(source: str, name: str, order: str, answer: str) -> None:
    import importlib.util

    prepare_triton()
    spec = importlib.util.spec_from_file_location("answer", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tensors, keywords = pickle.loads(Path(order).read_bytes())
    # Called under its imported name, so that the pickle is one of labs_helpers.course.tally, not of __main__.
    from labs_helpers.course import tally as imported

    Path(answer).write_bytes(pickle.dumps(imported._tally(getattr(module, name), tensors, keywords)))


if __name__ == "__main__":
    main(*sys.argv[1:])
