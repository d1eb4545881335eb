"""Stretch the time limits of processes on a busy machine: LABS_PATIENCE multiplies every limit, by default with 1."""

import os

VARIABLE = "LABS_PATIENCE"


def patience() -> float:
    """Return the factor of all time limits of processes. Raises ValueError if LABS_PATIENCE is not a valid factor."""
    given = os.environ.get(VARIABLE, "1")
    try:
        factor = float(given)
    except ValueError:
        factor = 0.0
    if not 1 <= factor < float("inf"):
        raise ValueError(f"{VARIABLE} is {given!r}; it has to be a number that is at least 1")
    return factor


def limit_text(seconds: float) -> str:
    """Return a time limit in words: '60 s', or '60 s times 4 (LABS_PATIENCE)'."""
    factor = patience()
    return f"{seconds:g} s" if factor == 1 else f"{seconds:g} s times {factor:g} ({VARIABLE})"
