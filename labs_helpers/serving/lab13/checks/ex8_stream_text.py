"""Check exercise 8 of lab 13: whole characters, up to a stop string."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_list
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises

CASES = (  # title, text or bytes, stop string
    ("plain letters, no stop string in them", "a cat", "#"),
    ("characters of 2, 3 and 4 bytes", "né € 😀!", "#"),
    ("the stop string in the middle", "one. two. three.", "two"),
    ("a beginning of the stop string, three times", "a\nb\n\nc", "\n\n\n"),
    ("a stop string that overlaps with itself", "xaabaaabaac aabaac", "aabaac"),
    ("the same character again and again", "aaaab", "aab"),
    ("a stop string of several bytes", "wait … what …!", " …!"),
    ("the tokens end within a stop string", "so far so", "som"),
    ("the tokens end within a character", "ok €".encode()[:-1], "??"),
    ("the stop string twice", "a--b--c", "--"),
    ("the stop string at the beginning", "END of it", "END"),
    ("no tokens", "", "x"),
)  # fmt: skip
ERRORS = (
    (r"UnicodeDecodeError: 'utf-8' codec can't decode.*(unexpected end of data|invalid start|invalid continuation)",
     "the bytes so far may end inside a character: decode all of them together, and leave an unfinished one out"),
)  # fmt: skip
DECODED, FOUND, HELD = 'data.decode("utf-8", errors="ignore")', "text.find(stop)", "max(held)"
ALONE = """"".join(bytes([byte]).decode("utf-8", errors="replace") for byte in data)"""
LAST, SEND = '"" if stop in text else text[sent:]', "texts.append(text[sent:end])"
ANEW = """matched = 0
            for character in text:
                matched = matched + 1 if character == stop[matched] else int(character == stop[0])
            end = len(text) - matched"""
MISTAKES = [
    ("each byte is decoded alone; a character of several bytes needs all of them together", (DECODED, ALONE)),
    ("each byte is decoded alone, so characters of several bytes are lost",
     (DECODED, ALONE.replace("replace", "ignore"))),
    ("an unfinished character is sent as U+FFFD: wait for its other bytes", ('"ignore"', '"replace"')),
    ("each byte becomes a character of its own: in UTF-8, a character has 1 to 4 bytes",
     (DECODED, 'data.decode("latin-1")')),
    ("the beginning of the stop string is sent before it is certain that the rest does not follow", (HELD, "0")),
    ("len(stop) − 1 characters are always held back; hold back only an end that begins the stop string",
     (HELD, "min(len(stop) - 1, len(text))")),
    ("as many characters as the stop string has are always held back", (HELD, "min(len(stop), len(text))")),
    ("text is held back as if only the last character could begin the stop string",
     (HELD, "int(len(stop) > 1 and text.endswith(stop[0]))")),
    ("an end of len(stop) − 1 characters may begin the stop string, too: try all lengths below that of the stop string",
     ("range(len(stop))", "range(max(1, len(stop) - 1))")),
    ("the shortest end that begins the stop string is held back; a longer one may become it, too",
     (HELD, "min(held[1:], default=0)")),
    ("after a mismatch, the search begins anew; the text so far may end with a shorter beginning of the stop string",
     ("end = len(text) - max(held)", ANEW)),
    ("the stop string itself is sent; the answer ends before it",
     (SEND, f"end += len(stop) if stop in text else 0\n        {SEND}")),
    ("text goes on after the stop string", (FOUND, "len(text) if stop in text else -1")),
    ("the stop string is looked for, but it has no effect", (FOUND, "-1"), (LAST, "text[sent:]")),
    ("the answer ends before the last place where the stop string occurs, not the first", (FOUND, "text.rfind(stop)")),
    ("text that was held back is lost when the tokens end: it is the last text", (LAST, '""')),
    ("an unfinished character at the end is sent as U+FFFD; it is never sent",
     (LAST, LAST.replace("text[", 'data.decode("utf-8", errors="replace")['))),
    ("the texts are joined; there is one per token, and one for the end",
     (f"[*texts, {LAST}]", f'["".join(texts) + ({LAST})]')),
]  # fmt: skip
ADVICE = "print the whole text so far, and the number of characters that were already sent, after each token"


@exercise("13/8", "text as it arrives", points=10, minutes=20, reference=exercises.stream_text)
def stream_text(student):
    def texts(tokens, stop):
        return expect_list("", student(tokens, stop), "a list of texts", lambda text: isinstance(text, str))

    cases, mistakes = [_case(*case) for case in CASES], variants(exercises.stream_text, MISTAKES)
    yield from judge(student, texts, cases, mistakes, told=_told, errors=ERRORS, advice=ADVICE)


def _case(title, text, stop):
    tokens = list(text.encode() if isinstance(text, str) else text)
    right = variant(exercises.stream_text)(tokens, stop)
    return Case(f"{title} (stop {stop!r})", (tokens, stop), right, f"{title}: sends {''.join(right)!r}")


def _told(case, found):
    tokens, right = case.arguments[0], case.right
    if len(found) != len(right):
        return f"{len(found)} texts", f"{len(right)}: one per token, and one more"
    at = next(i for i, pair in enumerate(zip(found, right, strict=True)) if pair[0] != pair[1])
    so_far = bytes(tokens[: at + 1])
    where = "the last text, after all tokens" if at == len(tokens) else f"text {at}, after the bytes {so_far!r}"
    return repr(found[at]), repr(right[at]), where
