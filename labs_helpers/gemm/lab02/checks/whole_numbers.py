"""Detect conversions from floats to integers in the interpreter: a GPU's compiler rejects float indices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labs_helpers.measure.machine import this_machine


@contextmanager
def made_whole() -> Iterator[list]:
    """Collect one entry per float-to-integer conversion inside the `with` block; on a GPU the list stays empty."""
    found: list = []
    if not this_machine().interpreted:
        yield found
        return
    from triton.runtime.interpreter import InterpreterBuilder

    names = ("create_fp_to_si", "create_fp_to_ui")
    original = {name: getattr(InterpreterBuilder, name) for name in names}

    def noted(convert):
        def wrapper(self, *args, **kwargs):
            found.append(None)
            return convert(self, *args, **kwargs)

        return wrapper

    for name in names:
        setattr(InterpreterBuilder, name, noted(original[name]))
    try:
        yield found
    finally:
        for name in names:
            setattr(InterpreterBuilder, name, original[name])
