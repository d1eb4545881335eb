"""Exercise 12 of lab 09: the tokens at which a block's messages take as long as its compute."""

from functools import partial
from math import isclose

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, is_number
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.planner.threshold import tokens_to_hide as closed_form

CASES = [(400e12, 350e9, 8, 2, 2), (400e12, 50e9, 64, 2, 4), (90e9, 2e9, 2, 4, 4), (300e12, 100e9, 1, 2, 2)]
PASSES = "forward", "backward"
ADVICE = "write down both times for one parameter and T tokens, with units, and set them equal"


def tokens(C, B, N, p, g, *, share=None, sent=lambda p, g: (p, p + g), flops=(2, 4), form=lambda t, C, B: t):
    """Return the right answer, or with other settings a wrong one. form: transforms a number of tokens."""
    share = (N - 1) / N if share is None else share(N)
    found = (closed_form(each, f, C, B) for each, f in zip(sent(p, g), flops, strict=True))
    return tuple(form(share * t, C, B) for t in found)


MISTAKES = [
    ("the share is (N − 1) / N, because a rank keeps its own part", partial(tokens, share=lambda N: 1.0)),
    ("the share is (N − 1) / N, not 1 / N", partial(tokens, share=lambda N: 1 / N)),
    (
        "you count an all-reduce, which sends twice as much as a "
        "gather; or you count a multiply-add as one FLOP: "
        "2 FLOPs forward, 4 backward",
        partial(tokens, share=lambda N: 2 * (N - 1) / N),
    ),
    ("the backward pass also sends the gradients", partial(tokens, sent=lambda p, g: (p, p))),
    ("the backward pass also gathers the parameters", partial(tokens, sent=lambda p, g: (p, g))),
    ("the forward pass gathers only parameters", partial(tokens, sent=lambda p, g: (p + g, p + g))),
    ("the bytes per parameter are missing", partial(tokens, sent=lambda p, g: (1, 2))),
    (
        "use parameter_bytes for a gather and gradient_bytes for a reduce-scatter",
        partial(tokens, sent=lambda p, g: (g, p + g)),
    ),
    ("backward computes 4 FLOPs per parameter and token", partial(tokens, flops=(2, 2))),
    ("forward computes 2 FLOPs per parameter and token", partial(tokens, flops=(4, 4))),
    ("the FLOPs per parameter and token are missing", partial(tokens, flops=(1, 1))),
    ("6 FLOPs belong to a whole step, not to each pass", partial(tokens, flops=(6, 6))),
    (
        "the fraction is inverted: the result falls when a rank computes faster",
        partial(tokens, form=lambda t, C, B: 1 / t if t else 0.0),
    ),
    ("the order is (forward, backward)", lambda *given: tokens(*given)[::-1]),
]


@exercise("09/12", "tokens that hide a gather", points=10, minutes=10, reference=exercises.tokens_to_hide)
def tokens_to_hide(student):
    yield from judge(student, partial(_formed, student), list(map(_case, CASES)), MISTAKES, told=_told, same=_same,
                     advice=ADVICE)  # fmt: skip


def _case(given: tuple) -> Case:
    C, B, N, p, g = given
    name = f"{C / 1e12:g} TFLOP/s, {B / 1e9:g} GB/s, {N} rank{'s' * (N > 1)}, {p} and {g} bytes"
    return Case(name, given, right := tokens(*given), f"{name}: {right[0]:,.0f} and {right[1]:,.0f} tokens")


def _formed(student, *given) -> tuple:
    answer = student(*given)
    if not isinstance(answer, tuple | list) or len(answer) != 2 or not all(map(is_number, answer)):
        cause = "a return is missing" if answer is None else ""
        raise Wrong("", f"returned {answer!r:.60}; expected (forward, backward), two numbers", cause=cause)
    return tuple(answer)


def _same(one: tuple, other: tuple) -> bool:
    return all(isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) for a, b in zip(one, other, strict=True))


def _told(case: Case, answer: tuple) -> tuple[str, str]:
    i = next(i for i in (0, 1) if not isclose(answer[i], case.right[i], rel_tol=1e-6, abs_tol=1e-9))
    return f"{PASSES[i]} is {answer[i]:,.6g}, expected {case.right[i]:,.6g}", ""
