"""Check exercise 5 of lab 13: attention through a block table."""

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.left_alone import Given
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.course.verdict.variants import variants
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.tensors import expect_tensor, same, told
from labs_helpers.serving.lab13.drawn import Paged

CASES = (
    ("three sequences, lengths that end inside a block", Paged(4, 2, 6, 4, (9, 3, 14))),
    ("one position, and a whole number of blocks", Paged(2, 2, 4, 8, (1, 16), seed=4)),
    ("6 heads share 3, blocks of 3 positions", Paged(6, 3, 8, 3, (3, 10, 1, 8), seed=8)),
    ("blocks of 1 position", Paged(3, 1, 4, 1, (5, 2), seed=12)),
)  # fmt: skip
GATHER, SHARED, EACH = "cache[tables]", ".repeat_interleave(group, dim=1)", "lengths[:, None]"
MISTAKES = [
    ("positions beyond the lengths get weight: leftovers and other sequences' blocks must not count",
     (".masked_fill(beyond[:, None], -torch.inf)", "")),
    ("the rest of the last block gets weight: the mask ends at whole blocks, not at the lengths",
     (EACH, f"-(-{EACH} // k.shape[2]) * k.shape[2]")),
    ("one position too many counts: positions 0 to length − 1 exist", (">= lengths", "> lengths")),
    ("one position too few counts: `lengths` counts the new position already", (EACH, f"({EACH} - 1).clamp(min=1)")),
    ("positions beyond the lengths have the score 0, and exp(0) is a weight; their score is −inf",
     ("-torch.inf", "0.0")),
    ("the weights beyond the lengths are removed after the softmax: the rest no longer adds up to 1",
     ("-torch.inf).softmax(dim=2)", "0.0)"), ("scores.masked", "scores.softmax(dim=2).masked")),
    ("all sequences use the longest length: each has its own", (EACH, "lengths.max().expand(len(q), 1)")),
    ("gathered blocks are (B, most, Hkv, size, D); exchange `most` and `Hkv` before you join the blocks",
     (".transpose(1, 2).flatten(2, 3)", ".reshape(len(q), k.shape[1], -1, k.shape[3])")),
    ("the blocks 0, 1, 2, … are read instead of those of the table",
     (GATHER, "cache[torch.arange(tables.shape[1]).expand_as(tables)]")),
    ("every sequence reads the blocks of the first table", (GATHER, "cache[tables[:1].expand_as(tables)]")),
    ("the blocks are read in the order of their numbers, not in that of the table",
     (GATHER, "cache[tables.sort(dim=1).values]")),
    ("query head h uses key and value head h % Hkv; heads of a group are neighbors: h // (H / Hkv)",
     (SHARED, ".repeat(1, group, 1, 1)")),
    ("all query heads use key and value head 0", (SHARED, "[:, :1].expand(-1, q.shape[1], -1, -1)")),
    ("the scores are not divided by √D", (" / q.shape[2] ** 0.5", "")),
    ("the scores are divided by D, not by √D", (" ** 0.5", "")),
    ("the weights multiply the keys, not the values", ("for cache in (k, v)", "for cache in (k, k)")),
    ("the softmax runs over the heads; each head's weights over the positions add up to 1",
     ("softmax(dim=2)", "softmax(dim=1).nan_to_num()")),
]  # fmt: skip
ADVICE = "print the gathered keys' shape, and compare keys[0, 0, :, 0] with the blocks of the first table"


@exercise("13/5", "attention through a block table", points=10, minutes=20, reference=exercises.paged_attention)
def paged_attention(student):
    mistakes = [(sentence, _call(one)) for sentence, one in variants(exercises.paged_attention, MISTAKES)]
    cases = [_case(*case) for case in CASES]
    yield from judge(student, _call(student), cases, mistakes, told=told, same=same, advice=ADVICE)


def _call(answer):
    """Return the answer as a function of a description."""

    def attended(*description):
        given = Paged(*description)
        tensors = given.tensors()
        handed = Given(answer, tensors, {})
        o = answer(*tensors)
        handed.expect_left_alone("", o)
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
