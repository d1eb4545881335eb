"""Check exercise 5 of lab 13: attention through a block table."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.paged_mistakes import MISTAKES
from labs_helpers.serving.lab13.checks.tensors import expect_tensor, same, told
from labs_helpers.serving.lab13.drawn import Paged

NAMES = "q", "k", "v", "tables", "lengths"
CASES = (
    ("three sequences, lengths that end inside a block", Paged(4, 2, 6, 4, (9, 3, 14))),
    ("one position, and a whole number of blocks", Paged(2, 2, 4, 8, (1, 16), seed=4)),
    ("6 heads share 3, blocks of 3 positions", Paged(6, 3, 8, 3, (3, 10, 1, 8), seed=8)),
    ("blocks of 1 position", Paged(3, 1, 4, 1, (5, 2), seed=12)),
)  # fmt: skip
ADVICE = "print the gathered keys' shape, and compare keys[0, 0, :, 0] with the blocks of the first table"


@exercise("13/5", "attention through a block table", points=10, minutes=20, reference=exercises.paged_attention)
def paged_attention(student):
    mistakes = [(sentence, _call(mistake)) for sentence, mistake in MISTAKES]
    yield from judge(
        student, _call(student), [_case(*case) for case in CASES], mistakes, told=told, same=same, advice=ADVICE
    )


def _call(answer):
    """Return the answer as a function of a description."""

    def attended(*description):
        given = Paged(*description)
        tensors = given.tensors()
        o = answer(*tensors)
        for name, now, before in zip(NAMES, tensors, given.tensors(), strict=True):
            if not torch.equal(now, before):
                raise Wrong("", f"the function changed its argument {name}; write into new tensors")
        return {"o": expect_tensor("the attention", o, (len(given.lengths), given.H, given.D))}

    return attended


def _case(name, given):
    """Return the case of one sequence after the other, from position to position."""
    q, k, v, tables, lengths = given.tensors()
    rows = []
    for row, table, length in zip(q, tables.tolist(), lengths.tolist(), strict=True):
        places = [(table[i // given.size], i % given.size) for i in range(length)]
        for head, query in enumerate(row):
            shared = head // (given.H // given.Hkv)
            keys, values = (torch.stack([cache[block, shared, at] for block, at in places]) for cache in (k, v))
            rows.append((keys @ query / given.D**0.5).softmax(0) @ values)
    o = torch.stack(rows).unflatten(0, (len(q), given.H))
    return Case(name, tuple(given), {"o": o}, f"{name}: equals one position after the other")
