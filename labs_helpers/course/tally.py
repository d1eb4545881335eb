"""Count the loads and stores of one call on any machine: in this interpreter, or in that of another process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labs_helpers.compile.interpreter_process import interpreted
from labs_helpers.course.meter import metered


@dataclass(frozen=True)
class Tally:
    """One call's traffic. `loads`: one array per input, with the number of loads of each element. `stores`,
    `writer`: for each element of the result, the number of stores and the last program that stored it, counted from
    0 (−1: none). Bytes are in bytes."""

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
    """Call `function(*tensors, **keywords)`, which launches Triton kernels and returns a tensor, and count its
    accesses.

    On a GPU, the interpreter of another process makes the call, on copies in main memory. Raises the call's exceptions.
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
