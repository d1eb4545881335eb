"""What proves exercise 4 of lab 05 right: the meter's writers of dQ in the one-kernel version."""

from __future__ import annotations

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.trial import Case
from labs_helpers.attention.lab05.one_kernel import one_kernel_gradients
from labs_helpers.course.exercise import exercise
from labs_helpers.course.meter import metered
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.measure.machine import this_machine

# Lq, Lk, BLOCK_M, BLOCK_N, causal
COUNTED = (
    (128, 96, 32, 32, False),
    (128, 128, 32, 32, True),
    (100, 100, 32, 16, True),
    (90, 90, 16, 64, True),
    (64, 100, 32, 32, True),
    (130, 70, 32, 16, True),
    (70, 130, 32, 64, False),
)


@exercise("05/4", "conflicts", points=10, minutes=10, reference=exercises.dq_conflicts, kernel=True)
def dq_conflicts(student):
    for Lq, Lk, BLOCK_M, BLOCK_N, causal in COUNTED:
        case = f"{Lq} queries, {Lk} keys, BLOCK_M={BLOCK_M}, BLOCK_N={BLOCK_N}" + (", causal" if causal else "")
        answer = student(Lq, Lk, BLOCK_M, BLOCK_N, causal)
        tiles = -(-Lq // BLOCK_M)
        if not isinstance(answer, (list, tuple)) or len(answer) != tiles:
            raise Wrong(case, f"returned {answer!r}; a list of {tiles} numbers is asked for, one a query tile")
        counted = writers(Lq, Lk, BLOCK_M, BLOCK_N, causal)
        if list(answer) != counted:
            cause = next(
                (
                    f"\nLikely cause: {text}."
                    for text, value in _suspects(Lq, Lk, BLOCK_M, BLOCK_N, causal).items()
                    if list(answer) == value
                ),
                "",
            )
            raise Wrong(case, f"returned {list(answer)}, counted were {counted}{cause}")
        yield f"{case}: {counted}" + (", as the meter counts" if this_machine().interpreted else "")


def writers(Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, causal: bool) -> list[int]:
    """The programs that add to each query tile of dQ: counted by the meter, on a GPU taken from the reference."""
    if not this_machine().interpreted:
        return exercises.dq_conflicts(Lq, Lk, BLOCK_M, BLOCK_N, causal)
    given, _ = Case("", Lq, Lk, causal).operands(H=1)
    with metered() as meter:
        one_kernel_gradients(**given, causal=causal, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    per_row = meter.of(meter.launches[-1].tensors()["dq_ptr"]).writers[0, 0].max(1)
    return [int(per_row[first : first + BLOCK_M].max()) for first in range(0, Lq, BLOCK_M)]


def _suspects(Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, causal: bool) -> dict[str, list[int]]:
    def conflicts(last_key, most=-(-Lk // BLOCK_N)):
        return [min(max(last_key(first) // BLOCK_N + 1, 0), most) for first in range(0, Lq, BLOCK_M)]

    corner = Lk - Lq
    query_tiles, key_tiles = -(-Lq // BLOCK_M), -(-Lk // BLOCK_N)
    never_negative = [max(min(first + BLOCK_M, Lq) - 1 + corner, 0) // BLOCK_N + 1 for first in range(0, Lq, BLOCK_M)]
    texts = {
        "causal, a key tile does not reach the queries before the diagonal": [key_tiles] * query_tiles
        if causal
        else [],
        "the last, partly filled key tile has a program too": [Lk // BLOCK_N] * query_tiles if not causal else [],
        "these are query tiles; the programs are the key tiles": [query_tiles] * query_tiles,
        "the tile's last query sees more keys than its first": conflicts(lambda first: first + corner),
        "the diagonal starts from the bottom right corner: Lk − Lq is missing": conflicts(
            lambda first: min(first + BLOCK_M, Lq) - 1, key_tiles + 9
        ),
        "BLOCK_M and BLOCK_N are mixed up: tiles of queries have BLOCK_M rows, those of keys BLOCK_N": list(
            range(1, query_tiles + 1)
        ),
        "a query tile that sees no key is added to by no program": never_negative,
        "the tile that holds the last key seen is forgotten": conflicts(
            lambda first: min(first + BLOCK_M, Lq) - 1 + corner - BLOCK_N
        ),
        "query i sees key i + Lk − Lq, and no further": conflicts(
            lambda first: min(first + BLOCK_M, Lq) + corner, key_tiles + 1
        ),
        "a tile's last query is the last that exists": conflicts(
            lambda first: first + BLOCK_M - 1 + corner, key_tiles + 9
        ),
    }
    return texts
