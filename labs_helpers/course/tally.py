"""Count what one call loads and stores, on any machine: in the interpreter here, or in another process's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labs_helpers.compile.interpreter_process import interpreted
from labs_helpers.course.meter import metered


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
    return interpreted(_tally, function, tensors, keywords)


def _tally(function, tensors, keywords) -> Tally:
    with metered() as meter:
        result = function(*tensors, **keywords)
    inputs, output = [meter.of(t) for t in tensors], meter.of(result)
    return Tally(
        [c.loads for c in inputs],
        output.stores,
        output.last_writer,
        sum(c.bytes_loaded for c in inputs),
        meter.bytes_moved - sum(c.bytes_loaded for c in inputs),
        len(meter.launches),
    )
