"""Exercise 2 of lab 09: every boundary in small layouts, and large ones; each element belongs to exactly one shard."""

from functools import partial
from itertools import product
from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.piece_mistakes import MISTAKES, SIZES, pieces_of

ADVICE = (
    "draw the flat memory of numels (5, 2, 4) as boxes and cut it for 2 "
    "ranks. Which elements of each box fall in a shard?"
)
FORM = "(shard_numel, [(number, begin, end), …])"
LAYOUTS = {
    "parameters that fit the shards": [((4, 4), 2), ((6,), 1), ((3, 3, 3), 3)],
    "parameters cut across two shards": [((5, 3), 2), ((7, 5), 3), ((2, 9, 1), 3)],
    "one cut across four shards": [((13, 1, 2), 4), ((16,), 4), ((3, 40, 5), 6)],
    "padding after the last parameter": [((5, 2, 4), 2), ((5, 5, 3), 4), ((1,), 4), ((2, 1), 5), ((3, 4), 3)],
    "a parameter without elements": [((3, 0, 5), 2), ((0, 4), 3), ((2, 0), 2)],
}
SMALL = [(numels, ranks) for n in (1, 2, 3) for numels in product(range(1, 5), repeat=n) for ranks in range(1, 6)]
LARGE = [((256 * 256, 256, 688 * 64), 8), ((3200 * 16, 5), 7)]  # small enough for an answer that loops over elements
MANY = (2003,), 2002  # with this many ranks one element is a share of less than 0.001


@exercise("09/2", "shards and pieces", points=10, minutes=15, reference=exercises.shard_pieces)
def shard_pieces(student):
    sizes = [(said, lambda *layout, size=size: (size(*layout), None)) for said, size in SIZES.items()]
    mistakes, call, cases = [*sizes, *MISTAKES.items()], partial(_formed, student), list(_cases())
    yield from judge(student, call, cases, mistakes, told=_told, same=_same, advice=ADVICE)


def _cases():
    for title, layouts in LAYOUTS.items():
        yield from _shards(layouts, f"{title}: {len(layouts)} layouts, {sum(ranks for _, ranks in layouts)} shards")
    said = f"{len(SMALL)} small layouts, every boundary; {sum(LARGE[0][0]):,} elements on 8 ranks"
    yield Case(f"numels {MANY[0]} on {MANY[1]} ranks, rank 1", (list(MANY[0]), MANY[1], 1), pieces_of(*MANY, 1))
    yield from _shards(SMALL + LARGE, said)


def _shards(layouts, line: str):
    """Yield cases for each rank of each layout; only the last case has the line."""
    shards = [(list(numels), ranks, rank) for numels, ranks in layouts for rank in range(ranks)]
    for number, (numels, ranks, rank) in enumerate(shards, 1):
        name = f"numels {tuple(numels)} on {ranks} rank{'s' * (ranks > 1)}, rank {rank}"
        yield Case(name, shards[number - 1], pieces_of(numels, ranks, rank), line * (number == len(shards)))


def _formed(student, *given) -> tuple[int, list[tuple[int, int, int]]]:
    answer = student(*given)
    if answer is None or not isinstance(answer, tuple | list) or len(answer) != 2:
        cause = "a return is missing" if answer is None else ""
        raise Wrong("", f"returned {answer!r:.80}; expected {FORM}", cause=cause)
    numel, pieces = answer
    if isinstance(numel, bool) or not isinstance(numel, Integral):
        cause = "/ returns a float; // returns an integer" if isinstance(numel, float) else ""
        raise Wrong("", f"shard_numel is {numel!r:.40}; expected an integer", cause=cause)
    if not isinstance(pieces, list | tuple):
        raise Wrong("", f"pieces is {pieces!r:.80}; expected a list")
    for piece in pieces:
        if not isinstance(piece, tuple | list) or len(piece) != 3 or not all(isinstance(k, Integral) for k in piece):
            cause = "/ returns a float; // returns an integer" if "." in str(piece) else ""
            raise Wrong("", f"a piece is {piece!r:.60}; expected (number, begin, end) with integers", cause=cause)
    return int(numel), [tuple(map(int, piece)) for piece in pieces]


def _same(found, right) -> bool:
    """Return whether both answers agree; if one has no pieces, compare only the sizes."""
    return found[0] == right[0] and (found[1] == right[1] or None in (found[1], right[1]))


def _told(case: Case, answer) -> tuple[str, str]:
    (size, pieces), (right_size, right) = answer, case.right
    if size != right_size:
        return f"shard_numel is {size}, expected {right_size}", ""
    return f"pieces are {pieces}, expected {right}", ""
