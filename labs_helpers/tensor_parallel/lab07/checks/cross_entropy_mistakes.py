"""Common mistakes with a split vocabulary: in what is exchanged, and in which targets are this rank's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from labs_helpers.course.verdict.messages.torch import INDEX_DTYPE, INDEX_OUTSIDE, SIZES_DIFFER
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_ways import Way

NO_SHIFT = "exp overflows: subtract each token's largest logit of all ranks first"
TOO_MUCH = "a token's logits are all far below what is subtracted, and every exp is 0: take each token's own largest"
NOT_FINITE = "exp overflows, or is 0 everywhere; is it each token's largest logit of all ranks that is subtracted?"
OWN_SHIFT = "each rank subtracts its own largest logit, and such sums do not add up: exchange the largest first"
ELSEWHERE = "a target of another rank has no row here: clamp finds it one, which must not count (a mask, then 0)"
FROM_THE_END = "a target below this rank's part gives a negative row: in Python one of the last, counted from the end"

ERRORS = (  # pairs (pattern, cause)
    (
        SIZES_DIFFER,
        "(batch, length) meets (batch, length, V / p): [..., None] or keepdim=True gives the first a dimension of 1",
    ),
    (
        f"{INDEX_OUTSIDE}|smaller than num_classes|must be non-negative",
        "a target of another rank has no row in this rank's part: take any row for it (clamp), and let it not count",
    ),
    (
        r"Index tensor must have the same number",
        "gather and scatter take an index of as many dimensions as logits: row[..., None]",
    ),
    (
        INDEX_DTYPE,
        "a row is an int64, as targets are; a division by / makes a float of it",
    ),
)

FIRST: tuple[tuple[str, Callable[[int, int, int], int]], ...] = (
    ("rank · V", lambda rank, rows, ranks: rank * rows * ranks),
    ("0 on every rank", lambda rank, rows, ranks: 0),
    ("rank", lambda rank, rows, ranks: rank),
    ("rank · p", lambda rank, rows, ranks: rank * ranks),
    ("(rank + 1) · V / p", lambda rank, rows, ranks: (rank + 1) * rows),
    ("rank · V / p + 1", lambda rank, rows, ranks: rank * rows + 1),
    ("rank · V / p − 1", lambda rank, rows, ranks: rank * rows - 1),
    ("the parts counted from the last rank", lambda rank, rows, ranks: (ranks - 1 - rank) * rows),
)


def shifts() -> Iterator[tuple[str, Way]]:
    """What shows with logits of ±10,000 alone: (sentence, what is computed)."""
    yield NO_SHIFT, Way("nothing")
    yield TOO_MUCH, Way("tokens")
    yield 'the ranks\' largest logits are added up; all_reduce(t, "max") takes the largest', Way("sum")


def mistakes(ranks: int) -> Iterator[tuple[str, Way]]:
    """What shows with logits of any size."""
    yield OWN_SHIFT, Way("own")
    yield OWN_SHIFT, Way("own tokens")
    for where, first in FIRST:
        for mask in ("right", "clamped"):
            yield f"a rank's tokens begin at rank · V / p; not at {where}", Way(first=first, mask=mask)
    for mask in ("clamped", "first", "modulo"):
        yield ELSEWHERE, Way(mask=mask)
    yield "logits has V / p columns as it is; they are not to be divided by p once more", Way(parts=ranks)
    for mask in ("modulo", "clamped"):
        yield "this rank's part is taken for the whole vocabulary", Way("own", mask=mask, total="own", target="own")
    yield FROM_THE_END, Way(mask="from the end")
    yield "targets below this rank's part are not left out: row < 0", Way(mask="below only")
    yield "targets above this rank's part are not left out: row ≥ V / p", Way(mask="above only")
    yield "the first row of each part is left out: row 0 is this rank's", Way(mask="not the first")
    yield "the last row of each part is left out: row V / p − 1 is this rank's", Way(mask="not the last")
    yield "row V / p is the next rank's", Way(mask="one more")
    yield "row −1 is the rank's before", Way(mask="one before")
    yield "the sum of exponentials is of this rank's part alone: add it up over the ranks", Way(total="own")
    largest = "the ranks' sums of exponentials are to be added up; it is the largest of them"
    yield largest, Way(total="largest")
    yield largest, Way(total="largest", target="largest")
    yield "the ranks' sums of exponentials are to be added up; it is their mean", Way(total="mean")
    yield "the ranks' sums of exponentials are to be added up; it is rank 0's", Way(total="first")
