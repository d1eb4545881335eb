"""Placeholders for a missing reference in a hand-out without references, and for an open exercise in its notebook."""

from __future__ import annotations

import hashlib
import zlib
from base64 import b85decode
from collections.abc import Mapping
from typing import Any


class StillOpen(RuntimeError):
    """Raised by code that needs an open exercise, or its missing reference. exercise: such as '02/3'."""

    def __init__(self, exercise: str, name: str, reference: bool):
        self.exercise, self.name, self.reference = exercise, name, reference
        if reference:
            super().__init__(f"the reference of exercise {exercise}, `{name}`, is not in this hand-out")
        else:
            super().__init__(f"exercise {exercise}, `{name}`, is still open")

    def args_of(self) -> tuple[str, str, bool]:
        return self.exercise, self.name, self.reference

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args_of()


class Withheld:
    """A function that raises StillOpen when it is called, or launched as a kernel.

    recorded: for a missing reference, the results that a check asks for, by the `key` of the arguments; these calls
    return the recorded result. packed: the text of a missing reference that its check runs, or makes mistakes of.
    """

    def __init__(self, exercise: str, name: str, recorded: Mapping[str, Any] | None = None, packed: str = ""):
        self.exercise, self.name, self.recorded, self.packed = exercise, name, recorded, packed
        self.__name__ = name

    @property
    def text(self) -> str:
        return zlib.decompress(b85decode(self.packed)).decode()

    def error(self) -> StillOpen:
        return StillOpen(self.exercise, self.name, self.recorded is not None)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if self.recorded and (asked := key(arguments, keywords)) in self.recorded:
            return self.recorded[asked]
        raise self.error()

    def __getitem__(self, grid: Any) -> Any:
        raise self.error()

    def __repr__(self) -> str:
        return f"<{self.error()}>"


def key(arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> str:
    """Return a short name of a call's arguments."""
    return hashlib.sha256(repr((arguments, sorted(keywords.items()))).encode()).hexdigest()[:12]
