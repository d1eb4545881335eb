"""Make text that somebody else wrote safe to show in a page, in XML and in a terminal."""

from __future__ import annotations

from hashlib import sha256

_KEPT = frozenset("\n\t\u200c\u200d")  # the last two join letters in some scripts, and do nothing else
LEFT_OUT = "… (the rest is left out)"


def plain(text: object, most: int = 300) -> str:
    """Return the text with invisible and direction-changing characters shown as �, cut after `most` characters."""
    given = str(text).replace("\r\n", "\n")
    shown = given if len(given) <= most else f"{given[:most]}{LEFT_OUT}"
    return "".join(one if one.isprintable() or one in _KEPT else " " if one.isspace() else "\ufffd" for one in shown)


def named(name: str) -> str:
    """Return a name or id that others chose, in one line. Different names give different results."""
    shown = plain(name).replace("\n", "\ufffd").replace("\t", "\ufffd").strip()
    return name if shown == name else f"{shown} ({sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]})"


def number(points: float) -> str:
    """Format points: '7', '7.5', '66.67'."""
    return f"{points:.2f}".rstrip("0").rstrip(".")
