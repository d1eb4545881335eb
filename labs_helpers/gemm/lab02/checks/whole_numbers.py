"""Whether a kernel makes whole numbers out of fractions: as indices a GPU's compiler refuses those."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labs_helpers.measure.machine import this_machine


@contextmanager
def made_whole() -> Iterator[list]:
    """Inside the block the list grows by one for each conversion of fractions to integers; never on a GPU."""
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
