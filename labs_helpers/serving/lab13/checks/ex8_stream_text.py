"""Check exercise 8 of lab 13: whole characters, up to a stop string."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.text_mistakes import MISTAKES, streamed

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
ADVICE = "print the whole text so far, and the number of characters that were already sent, after each token"


@exercise("13/8", "text as it arrives", points=10, minutes=20, reference=exercises.stream_text)
def stream_text(student):
    def texts(tokens, stop):
        answer = student(tokens, stop)
        if not isinstance(answer, list | tuple) or not all(isinstance(text, str) for text in answer):
            cause = "a return is missing" if answer is None else ""
            raise Wrong("", f"returned {answer!r:.60} instead of a list of texts", cause=cause)
        return list(answer)

    cases = [_case(*case) for case in CASES]
    yield from judge(student, texts, cases, MISTAKES, told=_told, errors=ERRORS, advice=ADVICE)


def _case(title, text, stop):
    tokens = list(text.encode() if isinstance(text, str) else text)
    right = streamed(tokens, stop)
    return Case(f"{title} (stop {stop!r})", (tokens, stop), right, f"{title}: sends {''.join(right)!r}")


def _told(case, found):
    tokens, right = case.arguments[0], case.right
    if len(found) != len(right):
        return f"{len(found)} texts", f"{len(right)}: one per token, and one more"
    at = next(i for i, pair in enumerate(zip(found, right, strict=True)) if pair[0] != pair[1])
    so_far = bytes(tokens[: at + 1])
    where = "the last text, after all tokens" if at == len(tokens) else f"text {at}, after the bytes {so_far!r}"
    return repr(found[at]), repr(right[at]), where
