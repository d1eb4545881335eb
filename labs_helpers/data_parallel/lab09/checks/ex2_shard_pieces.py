"""Exercise 2 of lab 09: every boundary of small layouts, and large ones; each element in exactly one shard."""

from contextlib import suppress
from itertools import product
from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.piece_mistakes import MISTAKES, SIZES, pieces_of

ADVICE = "draw the flat memory of numels (5, 2, 4) as boxes, and cut it for 2 ranks; which elements of each are left?"
TELLING = [((5, 3), 2), ((7, 5), 3), ((2, 9, 1), 3), ((13, 1, 2), 4), ((5, 5, 3), 4), ((6, 2), 4), ((3, 3), 3)]
FORM = "(shard_numel, [(number, begin, end), …])"


@exercise("09/2", "shards and pieces", points=10, minutes=15, reference=exercises.shard_pieces)
def shard_pieces(student):
    for title, layouts in (
        ("parameters that fit the shards", [((4, 4), 2), ((6,), 1), ((3, 3, 3), 3)]),
        ("parameters cut across two shards", [((5, 3), 2), ((7, 5), 3), ((2, 9, 1), 3)]),
        ("one cut across four shards", [((13, 1, 2), 4), ((16,), 4), ((3, 40, 5), 6)]),
        ("padding behind the last", [((5, 2, 4), 2), ((5, 5, 3), 4), ((1,), 4), ((2, 1), 5), ((3, 4), 3)]),
        ("a parameter without elements", [((3, 0, 5), 2), ((0, 4), 3), ((2, 0), 2)]),
    ):
        tried = _try(student, layouts)
        yield f"{title}: {len(layouts)} layouts, {tried} shards"
    small = [(numels, ranks) for n in (1, 2, 3) for numels in product(range(1, 5), repeat=n) for ranks in range(1, 6)]
    _try(student, small)
    # Not larger: an answer may go through flat memory element by element.
    large = [((256 * 256, 256, 688 * 64), 8), ((3200 * 16, 5), 7)]
    _try(student, large)
    yield f"{len(small)} small layouts, every boundary; {sum(large[0][0]):,} elements on 8 ranks"


def _try(student, layouts) -> int:
    """Tries each rank of each layout; how many that were."""
    for numels, ranks in layouts:
        for rank in range(ranks):
            case = f"numels {numels} on {ranks} rank{'s' * (ranks > 1)}, rank {rank}"
            numels_now = list(numels)
            try:
                answer = student(numels_now, ranks, rank)
            except Exception as error:
                raise describe_error(student, error, case) from None
            if numels_now != list(numels):
                raise Wrong(case, "the list numels that you were given has changed", cause="work on a copy of it")
            found = _formed(case, answer)
            if found != pieces_of(numels, ranks, rank):
                _fail(case, student, found, numels, ranks, rank)
    return sum(ranks for _, ranks in layouts)


def _formed(case: str, answer) -> tuple[int, list[tuple[int, int, int]]]:
    if answer is None or not isinstance(answer, tuple | list) or len(answer) != 2:
        cause = "a return is missing" if answer is None else ""
        raise Wrong(case, f"returned {answer!r:.80}; {FORM} is asked for", cause=cause)
    numel, pieces = answer
    if isinstance(numel, bool) or not isinstance(numel, Integral):
        cause = "/ makes a float; // an integer" if isinstance(numel, float) else ""
        raise Wrong(case, f"shard_numel is {numel!r:.40}; an integer is asked for", cause=cause)
    if not isinstance(pieces, list | tuple):
        raise Wrong(case, f"pieces is {pieces!r:.80}; a list is asked for")
    for piece in pieces:
        if isinstance(piece, tuple | list) and len(piece) == 2 and isinstance(piece[1], slice):
            raise Wrong(case, f"a piece is {piece!r:.60}; (number, begin, end) is asked for")
        if not isinstance(piece, tuple | list) or len(piece) != 3 or not all(isinstance(k, Integral) for k in piece):
            cause = "/ makes a float; // an integer" if "." in str(piece) else ""
            raise Wrong(case, f"a piece is {piece!r:.60}; (number, begin, end) of integers is asked for", cause=cause)
    return int(numel), [tuple(map(int, piece)) for piece in pieces]


def _fail(case: str, student, found, numels, ranks: int, rank: int) -> None:
    right = pieces_of(numels, ranks, rank)
    done = [((numels, ranks, rank), found)]
    for others, size in TELLING:  # which mistakes give all that it gives
        for place in range(size):
            with suppress(Exception):
                done.append(((others, size, place), _formed("", student(list(others), size, place))))
    if found[0] != right[0]:
        said = f"shard_numel is {found[0]}, expected {right[0]}"
        fitting = _fitting(SIZES, [(arguments, answer[0]) for arguments, answer in done], right[0])
    else:
        said = f"pieces are {found[1]}, expected {right[1]}"
        fitting = _fitting(MISTAKES, done, right)
    raise Wrong(case, said, cause=fitting, advice=ADVICE)


def _fitting(mistakes: dict, done: list, right) -> list[str]:
    """Those that give what was found in all cases, and not what is right in the first; one or two, else none."""
    fitting = [
        said
        for said, mistake in mistakes.items()
        if mistake(*done[0][0]) != right and all(mistake(*arguments) == found for arguments, found in done)
    ]
    return fitting if len(fitting) <= 2 else []
