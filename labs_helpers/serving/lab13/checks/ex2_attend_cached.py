"""Check exercise 2 of lab 13: attention with a cache equals recomputation."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.cached_mistakes import MISTAKES
from labs_helpers.serving.lab13.checks.tensors import expect_tensor, same, told
from labs_helpers.serving.lab13.drawn import Attention, rotate

CASES = (
    ("4 heads share 2 of keys and values, 5 positions filled", Attention(4, 2, 6, 5, 12)),
    ("an empty cache, 3 heads", Attention(3, 3, 4, 0, 4, seed=1)),
    ("6 heads share 2, 9 positions filled", Attention(6, 2, 8, 9, 16, seed=2)),
    ("the last free position", Attention(4, 1, 4, 7, 8, seed=3)),
)  # fmt: skip
ADVICE = "set H, Hkv and `length` to 1 on paper: two scores, two weights, one output"
ERRORS = ((r"IndexError: index \d+ is out of bounds", "the new position's number is `length`: they count from 0"),)


@exercise("13/2", "attention with a cache", points=10, minutes=20, reference=exercises.attend_cached)
def attend_cached(student):
    mistakes = [(sentence, _call(mistake)) for sentence, mistake in MISTAKES]
    yield from judge(
        student, _call(student), [_case(*case) for case in CASES], mistakes,
        told=told, same=same, errors=ERRORS, advice=ADVICE,
    )  # fmt: skip


def _call(answer):
    """Return the answer as a function of a description, with o and the cache as its result."""

    def attended(*description):
        given = Attention(*description)
        k, v = given.cache()
        o = answer(given.features()[-1], *given.weights(), k, v, given.length, rotate)
        return {"k": k, "v": v, "o": expect_tensor("the attention", o, (given.H, given.D))}

    return attended


def _case(name, given):
    """Return the case of recomputing all keys and values from the features of all positions."""
    (w_q, w_k, w_v), x = given.weights(), given.features()
    keys = torch.stack([rotate(w_k @ row, i) for i, row in enumerate(x)], 1)
    values = torch.stack([w_v @ row for row in x], 1)
    k, v = given.cache()
    k[:, : len(x)], v[:, : len(x)] = keys, values
    group = given.H // given.Hkv
    scores = torch.einsum("hd,hld->hl", rotate(w_q @ x[-1], given.length), keys.repeat_interleave(group, 0))
    weights = (scores / given.D**0.5).softmax(1)
    o = torch.einsum("hl,hld->hd", weights, values.repeat_interleave(group, 0))
    return Case(name, tuple(given), {"k": k, "v": v, "o": o}, f"{name}: equals recomputing every position")
