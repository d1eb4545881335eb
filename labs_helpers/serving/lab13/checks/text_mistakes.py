"""Stream text with one mistake each, as answers to exercise 8 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="ignore")


def longest(text: str, stop: str) -> int:
    """Return the length of the longest end of the text that begins the stop string."""
    return max(n for n in range(len(stop)) if text.endswith(stop[:n]))


def streamed(
    tokens: Sequence[int],
    stop: str,
    *,
    decode: Callable[[bytes], str] = decoded,
    holds: Callable[[str, str], int] = longest,
    finds: Callable[[str, str, int], int] = lambda text, stop, sent: text.find(stop),
    kept: Callable[[str], int] = lambda stop: 0,  # characters of the stop string that are sent
    ends: bool = True,  # nothing is sent after the stop string
    flushed: bool = True,
    rest: Callable[[str, bytes], str] = lambda text, data: "",  # sent at the end, too
    joined: bool = False,
) -> list[str]:
    """Return the right texts; other settings than the defaults make mistakes."""
    data, text, sent, texts, found = b"", "", 0, [], False
    for token in tokens:
        data += bytes([token])
        text = decode(data)
        at = finds(text, stop, sent)
        found = at >= 0
        end = at + kept(stop) if found and ends else len(text) - (0 if found else holds(text, stop))
        texts.append(text[sent:end])
        sent = max(sent, end)
    last = "" if (found and ends) or not flushed else text[sent:] + rest(text, data)
    return ["".join(texts) + last] if joined else [*texts, last]


def _with(**settings) -> Callable:
    return lambda tokens, stop: streamed(tokens, stop, **settings)


def _one_by_one(data: bytes) -> str:
    return "".join(bytes([byte]).decode("utf-8", errors="replace") for byte in data)


def _replaced(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _latin(data: bytes) -> str:
    return data.decode("latin-1")


def _dropped_alone(data: bytes) -> str:
    return "".join(bytes([byte]).decode("utf-8", errors="ignore") for byte in data)


def _unfinished(text: str, data: bytes) -> str:
    return "\ufffd" if len(text.encode()) < len(data) else ""


def _begins(text: str, stop: str) -> int:
    """Follow the stop string through the text; a mismatch starts again behind the place where it was found."""
    matched = 0
    for character in text:
        matched = matched + 1 if character == stop[matched] else int(character == stop[0])
        if matched == len(stop):
            return 0
    return matched


def _shortest(text: str, stop: str) -> int:
    return min((n for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0)


MISTAKES = [
    ("each byte is decoded alone; a character of several bytes needs all of them together", _with(decode=_one_by_one)),
    ("each byte is decoded alone, so characters of several bytes are lost", _with(decode=_dropped_alone)),
    ("an unfinished character is sent as U+FFFD: wait for its other bytes", _with(decode=_replaced)),
    ("each byte becomes a character of its own: in UTF-8, a character has 1 to 4 bytes", _with(decode=_latin)),
    ("the beginning of the stop string is sent before it is certain that the rest does not follow",
     _with(holds=lambda text, stop: 0)),
    ("len(stop) − 1 characters are always held back; hold back only an end that begins the stop string",
     _with(holds=lambda text, stop: min(len(stop) - 1, len(text)))),
    ("as many characters as the stop string has are always held back",
     _with(holds=lambda text, stop: min(len(stop), len(text)))),
    ("text is held back as if only the last character could begin the stop string",
     _with(holds=lambda text, stop: int(len(stop) > 1 and text.endswith(stop[0])))),
    ("an end of len(stop) − 1 characters may begin the stop string, too: try all lengths below that of the stop string",
     _with(holds=lambda text, stop: longest(text, stop[:-1] or stop))),
    ("the shortest end that begins the stop string is held back; a longer one may become it, too",
     _with(holds=_shortest)),
    ("after a mismatch, the search begins anew; the text so far may end with a shorter beginning of the stop string",
     _with(holds=_begins)),
    ("the stop string itself is sent; the answer ends before it", _with(kept=len)),
    ("text goes on after the stop string", _with(ends=False)),
    ("the stop string is looked for, but it has no effect", _with(finds=lambda text, stop, sent: -1)),
    ("the answer ends before the last place where the stop string occurs, not the first",
     _with(finds=lambda text, stop, sent: text.rfind(stop))),
    ("text that was held back is lost when the tokens end: it is the last text", _with(flushed=False)),
    ("an unfinished character at the end is sent as U+FFFD; it is never sent", _with(rest=_unfinished)),
    ("the texts are joined; there is one per token, and one for the end", _with(joined=True)),
]  # fmt: skip
