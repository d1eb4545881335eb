"""Check exercise 2 of lab 13: attention with a cache equals recomputation."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.course.verdict.variants import variants
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.tensors import expect_tensor, same, told
from labs_helpers.serving.lab13.drawn import Attention, rotate

CASES = (
    ("4 heads share 2 of keys and values, 5 positions filled", Attention(4, 2, 6, 5, 12)),
    ("an empty cache, 3 heads", Attention(3, 3, 4, 0, 4, seed=1)),
    ("6 heads share 2, 9 positions filled", Attention(6, 2, 8, 9, 16, seed=2)),
    ("the last free position", Attention(4, 1, 4, 7, 8, seed=3)),
)  # fmt: skip
QUERY, KEY = "rotate(w_q @ x, length)", "rotate(w_k @ x, length)"
USED, STORE, SHARED = ": length + 1]", "k[:, length], v[:, length] =", ".repeat_interleave(group, dim=0)"
LATE = "the rotation is one position late: the new position's number is `length`, since they count from 0"
EARLY = "the rotation is one position early: the new position's number is `length`, since they count from 0"
MISTAKES = [
    ("the query is not rotated", (QUERY, "w_q @ x")),
    ("the key is not rotated before it is stored", (KEY, "w_k @ x")),
    ("neither query nor key is rotated", (QUERY, "w_q @ x"), (KEY, "w_k @ x")),
    ("the value is rotated, too; only queries and keys are", ("w_v @ x", "rotate(w_v @ x, length)")),
    (LATE, ("@ x, length)", "@ x, length + 1)")),
    (LATE, (QUERY, "rotate(w_q @ x, length + 1)")),
    (LATE, (KEY, "rotate(w_k @ x, length + 1)")),
    (EARLY, ("@ x, length)", "@ x, length - 1)")),
    (EARLY, (QUERY, "rotate(w_q @ x, length - 1)")),
    (EARLY, (KEY, "rotate(w_k @ x, length - 1)")),
    ("the cached keys are rotated once more; they were rotated when they were stored",
     ("keys = k[:, : length + 1]", "keys = torch.stack([rotate(k[:, i], i) for i in range(length + 1)], dim=1)")),
    ("the new key and value are stored one position early, over the last ones of the past",
     (STORE, "k[:, length - 1], v[:, length - 1] =")),
    ("the new key and value are stored one position late; a gap of leftovers stays before them",
     (STORE, "k[:, length + 1], v[:, length + 1] =")),
    ("the new key and value are not stored", (STORE, "unused =")),
    ("the new key and value are stored in a copy of the cache; write into `k` and `v` themselves",
     (STORE, f"k, v = k.clone(), v.clone()\n    {STORE}")),
    ("the new position does not attend to itself: its own key and value are left out", (USED, ": length]")),
    ("leftovers get weight: only positions 0 to `length` exist, and the rest of the cache must not count",
     (USED, ":]")),
    ("one position too many gets weight: `length` + 1 positions exist, the new one included",
     (USED, ": length + 2]")),
    ("positions that do not exist have the score 0, and exp(0) is a weight; their score is −inf",
     (USED, ":]"), ("    return", "    scores[:, length + 1 :] = 0.0\n    return")),
    ("query head h uses key and value head h % Hkv; heads of a group are neighbors: h // (H / Hkv)",
     (SHARED, ".repeat(group, 1, 1)")),
    ("all query heads use key and value head 0", (SHARED, "[:1].expand(len(w_q), -1, -1)")),
    ("the scores are not divided by √D", (" / q.shape[1] ** 0.5", "")),
    ("the scores are divided by D, not by √D", (" ** 0.5", "")),
    ("key and value are exchanged when they are stored", ("= key, value", "= value, key")),
    ("the weights multiply the keys, not the values", ("values = v[", "values = k[")),
    ("the softmax runs over the heads; each head's weights over the positions add up to 1", ("dim=1", "dim=0")),
    ("the scores are used as weights, without a softmax", (".softmax(dim=1)", "")),
]  # fmt: skip
ADVICE = "set H, Hkv and `length` to 1 on paper: two scores, two weights, one output"
ERRORS = ((r"IndexError: index \d+ is out of bounds", "the new position's number is `length`: they count from 0"),)


@exercise("13/2", "attention with a cache", points=10, minutes=20, reference=exercises.attend_cached)
def attend_cached(student):
    mistakes = [(sentence, _call(one)) for sentence, one in variants(exercises.attend_cached, MISTAKES)]
    cases = [_case(*case) for case in CASES]
    yield from judge(student, _call(student), cases, mistakes, told=told, same=same, errors=ERRORS, advice=ADVICE)


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
