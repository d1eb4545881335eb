"""The entries of a table of claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Values = float | Sequence[float]


@dataclass(frozen=True)
class Claim:
    """A quote from a lab's text whose numbers are computed from records, datasheets or the course's own functions.

    quote: words that occur once in the lab's Markdown, on one line and without code spans; it holds the numbers and
    little else. values: returns what each number of the quote should be, in order and in the printed unit. within: a
    share that a number may be off by where the text says 'about'; None allows rounding to the printed digits alone.
    """

    quote: str
    values: Callable[[], Values]
    within: float | None = None


@dataclass(frozen=True)
class Given:
    """A quote whose numbers no measurement can change, such as a definition or an assumption, and the reason."""

    quote: str
    reason: str


@dataclass(frozen=True)
class Table:
    """The numbers of one lab's text. Between them, claims and given quotes hold every number with a unit."""

    claims: tuple[Claim, ...] = ()
    given: tuple[Given, ...] = ()
