"""Check exercise 7 of lab 13: chunked prefill under a token budget."""

from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.chunk_mistakes import MISTAKES, NoProgress, planned

RAISES = "ValueError"
CASES = (  # title, decoding, prompts, budget
    ("one prompt of 50 tokens, 4 decode, budget 20", 4, [50], 20),
    ("three prompts share passes", 2, [10, 25, 9], 16),
    ("short prompts end together", 0, [3, 4, 5, 6], 12),
    ("one long prompt behind two short ones", 3, [2, 2, 40], 10),
    ("prompts of one token", 1, [1, 1, 1], 3),
    ("budget for one token of a prompt", 5, [3], 6),
    ("decoding takes the whole budget", 8, [5], 8),
    ("finished prompts take the whole budget", 1, [2, 2, 2], 3),
    ("no prompt", 4, [], 16),
)  # fmt: skip
ADVICE = "draw a row per pass: one box per decoding request, then the chunks, up to the budget"


@exercise("13/7", "chunked prefill", points=10, minutes=15, reference=exercises.chunked_passes)
def chunked_passes(student):
    def passes(*arguments):
        try:
            return _chunks(student(*arguments))
        except ValueError:
            if _right(*arguments) == RAISES:
                return RAISES
            raise

    cases = [_case(*case) for case in CASES]
    yield from judge(student, passes, cases, MISTAKES, told=_told, advice=ADVICE)


def _chunks(answer):
    if not isinstance(answer, list | tuple) or not all(isinstance(one, list | tuple) for one in answer):
        cause = "a return is missing" if answer is None else ""
        raise Wrong("", f"returned {answer!r:.60} instead of a list of chunks per pass", cause=cause)
    for one in (chunk for chunks in answer for chunk in chunks):
        if not (isinstance(one, list | tuple) and len(one) == 3 and all(isinstance(n, Integral) for n in one)):
            raise Wrong("", f"a pass contains {one!r:.60}; a chunk is (number, start, stop)")
    return [[tuple(chunk) for chunk in chunks] for chunks in answer]


def _right(*arguments):
    try:
        return planned(*arguments)
    except NoProgress:
        return RAISES


def _case(title, *arguments):
    right = _right(*arguments)
    return Case(title, arguments, right, f"{title}: {right if right == RAISES else f'{len(right)} passes'}")


def _told(case, found):
    right = case.right
    if RAISES in (found, right):
        return tuple("a ValueError" if one == RAISES else f"{one}" for one in (found, right))
    shorter = min(len(found), len(right))
    at = next((i for i in range(shorter) if found[i] != right[i]), shorter)
    one, other = (str(passes[at]) if at < len(passes) else "no such pass" for passes in (found, right))
    return one, other, f"pass {at}"
