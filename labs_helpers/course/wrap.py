"""Wrap long lines at words: JupyterLab would break them anywhere at its edge."""

from __future__ import annotations

import re
import textwrap

WIDTH = 100


def wrap(text: str, width: int = WIDTH) -> str:
    """Return `text` with no line longer than `width` if its words allow that; continuation lines are indented by two
    more."""
    return "\n".join(_fold(line, width) for line in text.splitlines())


def _fold(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = re.match(r" *", line)[0]
    kept = re.sub(r"[(\[][\d, -]+[)\]]", lambda place: place[0].replace(" ", "\0"), line[len(indent) :])  # (2, 0, 0)
    return textwrap.fill(
        kept,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\0", " ")
