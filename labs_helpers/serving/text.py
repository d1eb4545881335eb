"""Turn tokens into text as they arrive: whole UTF-8 characters, up to the first stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class ByteTokenizer:
    """A token is a byte of the text in UTF-8, as in the byte-level model."""

    vocabulary = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, token: int) -> bytes:
        """Return the bytes of one token. ValueError for a token that is no byte."""
        return bytes([token])


class TextStream:
    """The text of one request. It emits a character once all its bytes are there and it cannot be part of a stop
    string. Bytes that are no UTF-8 become U+FFFD, as in `bytes.decode(errors="replace")`.

    stop: texts that are not empty. The text ends when one of them is complete, before its first character; if several
    are complete at the same character, before the longest.
    """

    def __init__(self, tokenizer: ByteTokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer, self._stop = tokenizer, tuple(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # decoded, and the beginning of a stop string so far
        self.stopped = False

    def feed(self, token: int) -> str:
        """Return the text that this token completes; '' after a stop string."""
        return self._emit(self._decoder.decode(self._tokenizer.decode(token)))

    def end(self) -> str:
        """Return the rest, when no more tokens follow; an unfinished character becomes U+FFFD."""
        text = self._emit(self._decoder.decode(b"", final=True))
        held, self._held = self._held, ""
        return text + held

    def _emit(self, text: str) -> str:
        emitted = ""
        for character in text:  # one by one: how many arrive together must not decide where the text ends
            if self.stopped:
                break
            self._held += character
            found = [stop for stop in self._stop if self._held.endswith(stop)]
            if found:
                self.stopped = True
                emitted += self._held[: -max(map(len, found))]
                self._held = ""
            else:
                free = len(self._held) - self._unsafe()
                emitted, self._held = emitted + self._held[:free], self._held[free:]
        return emitted

    def _unsafe(self) -> int:
        """Return the length of the longest end of the held text that begins a stop string."""
        longest = max(map(len, self._stop), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self._stop):
                return length
        return 0
