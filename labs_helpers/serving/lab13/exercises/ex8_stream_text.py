"""Lab 13, exercise 8: text that arrives in whole characters, up to a stop string."""


def stream_text(tokens, stop):
    """Return the texts that a server sends: one per token, and one more when the tokens end.

    tokens: numbers from 0 to 255, the bytes of a text in UTF-8, where a character takes 1 to 4
    bytes. They may end in the middle of a character, which is then never sent. stop: a text of
    one or more characters. The answer ends before the first place where it occurs; if it occurs,
    no later text is sent.
    A character is sent with the first token after which it is whole and certainly not part of the
    stop string. The last text is what was held back until the tokens ended; any text may be ''.
    """
    # 1. Decode all bytes so far. With errors="ignore", decode leaves out an unfinished character.
    # 2. Does the text contain the stop string? Where must the sent text end?
    # 3. If not, how long is the longest end of the text that begins the stop string?
    ### BEGIN SOLUTION
    data, text, sent, texts = b"", "", 0, []
    for token in tokens:
        data += bytes([token])
        text = data.decode("utf-8", errors="ignore")
        end = text.find(stop)
        if end < 0:
            held = [n for n in range(len(stop)) if text.endswith(stop[:n])]
            end = len(text) - max(held)
        texts.append(text[sent:end])
        sent = end
    return [*texts, "" if stop in text else text[sent:]]
    ### END SOLUTION
