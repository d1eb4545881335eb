"""Measurements that a notebook starts on the reader's machine, which may be too busy for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from labs_helpers.course.scoreboard import OPEN
from labs_helpers.launch.failure import RanksTimeout
from labs_helpers.launch.process import ProcessTimeout

T = TypeVar("T")
WITHIN_S = 50.0  # below the limit of a cell under nbval, 60 s


def measured_here(measure: Callable[[float], T], instead: Callable[[], T], machine: str) -> T:
    """What measure(seconds) returns, or, where this machine is too slow or too busy, a sentence and instead().

    measure: runs what it measures by `launch`, with `seconds` as its time limit. instead: returns what was recorded on
    `machine`. Any other failure is raised.
    """
    try:
        return measure(WITHIN_S)
    except (ProcessTimeout, RanksTimeout):
        print(
            f"{OPEN} This machine was too slow or too busy to measure that within {WITHIN_S:g} s. The lab "
            f"continues with the measurement recorded on {machine}."
        )
        return instead()
