"""Test the text of a request: whole characters, and nothing that may become part of a stop string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.serving.text import ByteTokenizer, TextStream

letters = st.text("abé", min_size=1, max_size=4)


def streamed(data, stop=()):
    """Return the pieces of text, with the last one, for these bytes."""
    stream, pieces = TextStream(ByteTokenizer(), stop), []
    for byte in data:
        pieces.append(stream.feed(byte))
        if stream.stopped:
            break
    return [*pieces, stream.end()], stream.stopped


@given(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)))
def test_the_text_is_that_of_all_bytes_at_once(data):
    pieces, stopped = streamed(data)
    assert "".join(pieces) == data.decode(errors="replace") and not stopped


def test_a_character_arrives_with_its_last_byte():
    pieces, _ = streamed("é€".encode())
    assert pieces == ["", "é", "", "", "€", ""]
    assert "".join(streamed("€".encode()[:2])[0]) == "\ufffd"


def expected(text, stops):
    """Return the text before the first complete stop string, by looking at every beginning of the text."""
    for end in range(1, len(text) + 1):
        found = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(found)], True
    return text, False


@given(st.text("abé", max_size=30), st.lists(letters, max_size=3))
def test_it_ends_before_the_first_complete_stop_string(text, stops):
    pieces, stopped = streamed(text.encode(), stops)
    assert ("".join(pieces), stopped) == expected(text, stops)


@given(st.text("ab", max_size=30), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.text("ab"))
def test_what_was_emitted_stays_right_whatever_follows(text, stops, more):
    stream = TextStream(ByteTokenizer(), stops)
    emitted = "".join(stream.feed(byte) for byte in text.encode())
    whole, _ = expected(text + more, stops)
    assert whole.startswith(emitted)
    if not stream.stopped:  # and no more is held than may begin a stop string
        held = text[len(emitted) :]
        assert not held or any(stop.startswith(held) for stop in stops)


def test_a_token_that_is_no_byte():
    with pytest.raises(ValueError):
        ByteTokenizer().decode(256)
    assert ByteTokenizer().encode("é") == list("é".encode())
