"""Check exercise 7 of lab 13: chunked prefill under a token budget."""

from functools import partial
from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_list
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.serving.lab13 import exercises

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
    ("no prompt, and decoding takes the whole budget", 4, [], 4),
)  # fmt: skip
LEFT, TAKE, CHUNK = "budget - decoding - len(finished)", "left -= stop - start", "chunks.append((number, start, stop))"
MISTAKES = [
    ("those who decode are not subtracted from the budget", (LEFT, "budget")),
    ("requests whose prompt was finished decode, too: each takes a token of every later pass",
     (LEFT, "budget - decoding")),
    ("the requests that decode from the beginning are not subtracted from the budget",
     (LEFT, "budget - len(finished)")),
    ("a pass computes one token more than `budget`", (LEFT, f"{LEFT} + 1")),
    ("one token of the budget stays unused: a pass may compute `budget` tokens", (LEFT, f"{LEFT} - 1")),
    ("a pass computes chunks of several prompts, while tokens are left", (TAKE, "break")),
    ("the youngest prompt comes first: it is the oldest one's turn",
     ("in enumerate(prompts):", "in reversed(list(enumerate(prompts))):")),
    ("a prompt that does not fit as a whole gets no chunk; it gets the tokens that are left",
     ("if stop > start:", "if stop > start and (stop == length or not chunks):")),
    ("the tokens are shared out equally; the oldest prompt gets as many as it needs",
     ("chunks = []", "chunks, share = [], max(1, left // (len(prompts) - len(finished)))"),
     ("computed[number] + left)", "computed[number] + min(left, share))")),
    ("each prompt gets the whole budget; all chunks of a pass share it", (TAKE, "pass")),
    ("a request decodes in the passes after the one that finishes its prompt, not in the same one",
     (TAKE, f"{TAKE} + (stop == length)")),
    ("`stop` is the first position that is not computed, not the last one that is",
     (CHUNK, "chunks.append((number, start, stop - 1))")),
    ("the third number of a chunk is `stop`, not its length", (CHUNK, "chunks.append((number, start, stop - start))")),
    ("a later chunk starts where the one before stopped, not at 0", (CHUNK, "chunks.append((number, 0, stop))")),
    ("the positions of a chunk end before `stop`, which is not one of them",
     (CHUNK, "chunks.append((number, start, stop + 1))")),
    ("positions count from 0: the first chunk of a prompt starts at 0, not at 1",
     (CHUNK, "chunks.append((number, start + 1, stop))")),
    ("a later chunk starts at the `stop` of the one before, which is not computed yet, not one position later",
     (CHUNK, "chunks.append((number, start + (start > 0), stop))")),
    ("if decoding leaves no token and a prompt is unfinished, raise ValueError",
     ('raise ValueError("decoding leaves no token for the prompts")', "break")),
]  # fmt: skip
ADVICE = "draw a row per pass: one box per decoding request, then the chunks, up to the budget"


@exercise("13/7", "chunked prefill", points=10, minutes=15, reference=exercises.chunked_passes)
def chunked_passes(student):
    def passes(*arguments):
        try:
            return _chunks(student(*arguments))
        except ValueError:
            if _passes(right, *arguments) == RAISES:
                return RAISES
            raise

    right = variant(exercises.chunked_passes)
    cases = [_case(title, arguments, _passes(right, *arguments)) for title, *arguments in CASES]
    mistakes = [(sentence, partial(_passes, one)) for sentence, one in variants(exercises.chunked_passes, MISTAKES)]
    yield from judge(student, passes, cases, mistakes, told=_told, advice=ADVICE)


def _chunks(answer):
    passes = expect_list("", answer, "a list of chunks per pass", lambda one: isinstance(one, list | tuple))
    for one in (chunk for chunks in passes for chunk in chunks):
        if not (isinstance(one, list | tuple) and len(one) == 3 and all(isinstance(n, Integral) for n in one)):
            raise Wrong("", f"a pass contains {one!r:.60}; a chunk is (number, start, stop)")
    return [[tuple(chunk) for chunk in chunks] for chunks in passes]


def _passes(answer, *arguments):
    try:
        return answer(*arguments)
    except ValueError:
        return RAISES


def _case(title, arguments, right):
    return Case(title, tuple(arguments), right, f"{title}: {right if right == RAISES else f'{len(right)} passes'}")


def _told(case, found):
    right = case.right
    if RAISES in (found, right):
        return tuple("a ValueError" if one == RAISES else f"{one}" for one in (found, right))
    shorter = min(len(found), len(right))
    at = next((i for i in range(shorter) if found[i] != right[i]), shorter)
    one, other = (str(passes[at]) if at < len(passes) else "no such pass" for passes in (found, right))
    return one, other, f"pass {at}"
