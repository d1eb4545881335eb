"""Text that somebody else wrote, as it can stand in a page, in XML and in a terminal."""

from __future__ import annotations

from hashlib import sha256

_KEPT = frozenset("\n\t\u200c\u200d")  # the last two join letters in some scripts, and do nothing else
LEFT_OUT = "… (the rest is left out)"


def plain(text: object, most: int = 300) -> str:
    """The text, showing what it is: what is invisible or turns the direction of
    writing becomes �, and beyond `most` characters it is cut."""
    given = str(text).replace("\r\n", "\n")
    shown = given if len(given) <= most else f"{given[:most]}{LEFT_OUT}"
    return "".join(one if one.isprintable() or one in _KEPT else " " if one.isspace() else "\ufffd" for one in shown)


def named(name: str) -> str:
    """A name or id that others have chosen, in one line. Of two that differ the results differ too."""
    shown = plain(name).replace("\n", "\ufffd").replace("\t", "\ufffd").strip()
    return name if shown == name else f"{shown} ({sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]})"


def number(points: float) -> str:
    """'7', '7.5', '66.67'."""
    return f"{points:.2f}".rstrip("0").rstrip(".")
