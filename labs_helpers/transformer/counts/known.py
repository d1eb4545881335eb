"""Check a choice that is given by name."""

from __future__ import annotations

from collections.abc import Iterable


def expect_known(name: str, value: str, known: Iterable[str]) -> None:
    """Raise ValueError unless `value`, passed as the argument `name`, is one of the known ones."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it may be {', '.join(map(repr, known))}")
