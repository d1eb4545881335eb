"""A choice by its name."""

from __future__ import annotations

from collections.abc import Iterable


def expect_known(name: str, value: str, known: Iterable[str]) -> None:
    """ValueError unless `value`, which the argument `name` has, is one of those that there are."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it may be {', '.join(map(repr, known))}")
