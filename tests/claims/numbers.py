"""Find the numbers with a unit in a lab's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from labs_helpers.course import own_copies
from labs_helpers.labs import Lab

UNITS = (
    r"[µnm]?s|min|minutes?|hours?|[kMGT]?B/s|[MG]b/s|[kKMGT]i?B|bytes?|[GT]?FLOP/s|[GT]?FLOPs?|times|nats?|W|[MG]Hz|"
    r"tokens?/s|tokens per second|sequences/s|points"
)
NUMERAL = r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?"
_NUMERAL = re.compile(rf"(?<![\w.,])(?:{NUMERAL})(?!\w|\.\d|,\d)|(?<![\w.,])(?:{NUMERAL})(?=×|%|[µnm]?s\b)")
# '0.98 to 1.09 times' gives both numbers the unit.
_JOINED = r"(?:,|,? and|,? or| to| against| from|–)"
_WITH_UNIT = re.compile(rf"(?<![\w.])(?:{NUMERAL})(?:{_JOINED} (?:{NUMERAL}))*(?:[×%]|[ \u00a0]?(?:{UNITS}))(?!\w)")
_NOT_PROSE = re.compile(r"```.*?```|`[^`\n]*`|https?://\S+|<[^<>\n]*>|\]\([^)\n]*\)", re.S)
_MARGINALIA = re.compile(r"\*\d+ minutes · \d+ points\*|About \d+ minutes[.:,]")  # `make sync` writes them


@dataclass(frozen=True)
class Passage:
    """The prose of one Markdown cell, on one line and without code, links' targets and tags."""

    cell: int
    text: str

    def with_units(self) -> Iterator[tuple[int, int]]:
        """Yield where each number, or series of numbers, with a unit begins and ends."""
        written = [found.span() for found in _MARGINALIA.finditer(self.text)]
        for found in _WITH_UNIT.finditer(self.text):
            if not any(start <= found.start() < end for start, end in written):
                yield found.span()


def passages(lab: Lab) -> list[Passage]:
    """Return the prose of each Markdown cell of the shipped lab."""
    cells = own_copies.read(lab.path).cells
    return [
        Passage(number, " ".join(_NOT_PROSE.sub(" ", cell.source).split()))
        for number, cell in enumerate(cells)
        if cell.cell_type == "markdown"
    ]


def numerals(quote: str) -> list[tuple[float, float]]:
    """Return each number in a quote, and half a unit of its last printed digit: (0.98, 0.005)."""
    found = []
    for each in _NUMERAL.finditer(quote):
        digits = each.group().replace(",", "")
        whole, _, decimals = digits.partition(".")
        found.append((float(digits), 0.5 * 10.0 ** -len(decimals)))
    return found
