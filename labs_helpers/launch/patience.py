"""How much longer than on a quiet machine processes may take: LABS_PATIENCE times every time limit, by default 1."""

import os

VARIABLE = "LABS_PATIENCE"


def patience() -> float:
    """Return the factor of all time limits of processes. Raises ValueError where LABS_PATIENCE is no such number."""
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
