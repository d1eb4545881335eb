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
    """Return measure(seconds) or, if this machine is too slow or too busy, print a sentence and return instead().

    measure: runs the measurement by `launch` with a time limit of `seconds`. instead: returns the record of `machine`.
    Any other failure is raised.
    """
    try:
        return measure(WITHIN_S)
    except (ProcessTimeout, RanksTimeout):
        print(
            f"{OPEN} This machine was too slow or too busy to measure that within {WITHIN_S:g} s. The lab "
            f"continues with the measurement recorded on {machine}."
        )
        return instead()
