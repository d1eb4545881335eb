"""Common mistakes as changes of an exercise's reference: a sentence, and pairs of an old and a new text.

    MISTAKES = [("the weights take memory, too", ("memory - 2 * parameters", "memory"))]
    mistakes = variants(exercises.users_that_fit, MISTAKES)

The tests plant the same list as answers (`tests.planted.named`). In a hand-out without references, the placeholder
keeps the text, packed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from labs_helpers.compile.source import plain
from labs_helpers.course.withheld import Withheld

Listed = Sequence[tuple[Any, ...]]  # of (sentence, (old, new), …)


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """Return the text with each old part replaced. ValueError for one that is not there."""
    for old, new in changes:
        if old not in text:
            raise ValueError(f"{old!r} is not in the reference")
        text = text.replace(old, new)
    return text


@cache
def variant(reference: Callable, *changes: tuple[str, str]) -> Callable:
    """Return the function that the reference's file defines after the changes; without any, it does as the reference.

    ValueError for a change whose old text is not in the file.
    """
    name = plain(reference).__name__
    if isinstance(reference, Withheld):
        text = reference.text
    else:
        text = Path(inspect.getfile(plain(reference))).read_text()
    names: dict[str, Any] = {}
    exec(compile(replaced(text, *changes), f"<{name}, changed>", "exec"), names)
    return names[name]


def variants(reference: Callable, listed: Listed) -> list[tuple[str, Callable]]:
    """Return pairs of a sentence and the mistake as a function, which is made when it is called first."""

    def make(changes: Sequence[tuple[str, str]]) -> Callable:
        return lambda *arguments: variant(reference, *changes)(*arguments)

    return [(sentence, make(changes)) for sentence, *changes in listed]
