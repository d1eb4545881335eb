"""Exercise 4 of lab 05: how many programs add to each tile of dQ, as counted in the one-kernel version."""

from itertools import product

from labs_helpers.attention.lab05 import exercises
from labs_helpers.attention.lab05.checks.cases import Case
from labs_helpers.attention.lab05.one_kernel import one_kernel_gradients
from labs_helpers.course.exercise import exercise
from labs_helpers.course.meter import metered
from labs_helpers.course.verdict import Candidates
from labs_helpers.course.verdict.pure_functions import Case as Call
from labs_helpers.course.verdict.pure_functions import Part, judge_parts
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
    def call(*sizes):
        answer = student(*sizes)
        return answer.tolist() if hasattr(answer, "tolist") else list(answer) if isinstance(answer, tuple) else answer

    metered_here, cases = this_machine().interpreted, []
    for sizes in COUNTED:
        counted = writers(*sizes) if metered_here else exercises.dq_conflicts(*sizes)
        line = f"{named(*sizes)}: {counted}" + ", as the meter counts" * metered_here
        cases.append(Call(named(*sizes), sizes, counted, line))
    others = product((65, 64, 48, 33, 32, 31, 17, 16, 15, 1), (96, 65, 64, 33, 32, 31, 20, 16, 1), (16, 32), (32, 16))
    for sizes in ((*sizes, causal) for sizes in others for causal in (True, False)):
        cases.append(Call(named(*sizes), sizes, exercises.dq_conflicts(*sizes)))
    whole = Part(lambda answer: answer, mistakes, told)
    advice = "draw the tiles of this case, and mark what a query sees."
    yield from judge_parts(student, call, cases, [whole], advice=advice)
    yield "720 other sizes, each of which the formula has to meet"


def told(case: Call, answer) -> tuple[str, ...]:
    if not isinstance(answer, list) or len(answer) != len(case.right):
        return (f"returned {answer!r}; a list of {len(case.right)} numbers is asked for, one per query tile",)
    return (f"returned {answer}, counted were {case.right}",)


def named(Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, causal: bool) -> str:
    return f"{Lq} queries, {Lk} keys, BLOCK_M={BLOCK_M}, BLOCK_N={BLOCK_N}" + ", causal" * causal


def writers(Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, causal: bool) -> list[int]:
    """The programs that add to each query tile of dQ, counted by the meter."""
    given, _ = Case("", Lq, Lk, causal).operands(H=1)
    with metered() as meter:
        one_kernel_gradients(**given, causal=causal, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    per_row = meter.of(meter.launches[-1].tensors()["dq_ptr"]).writers[0, 0].max(1)
    return [int(per_row[first : first + BLOCK_M].max()) for first in range(0, Lq, BLOCK_M)]


def mistakes(Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, causal: bool) -> Candidates:
    firsts, corner = range(0, Lq, BLOCK_M), (Lk - Lq) * causal
    query_tiles, key_tiles = len(firsts), -(-Lk // BLOCK_N)
    lasts = [
        min(first + BLOCK_M, Lq) - 1 + corner if causal else Lk - 1 for first in firsts
    ]  # keys that tiles see last

    def up_to(keys, width: int = BLOCK_N) -> list[int]:
        return [max(key // width + 1, 0) for key in keys] if causal else [key_tiles] * query_tiles

    right = up_to(lasts)
    yield "these are query tiles; the programs are the key tiles", right if causal else [query_tiles] * query_tiles
    exchanged = "a number for each query tile is asked for, not one for each key tile"
    yield exchanged, right if causal else [query_tiles] * key_tiles
    yield "a list is asked for, with a number for each query tile, not their sum", sum(right)
    yield "the last, partly filled key tile has a program too", right if causal else [Lk // BLOCK_N] * query_tiles
    yield (
        "a key tile is one program, whole or partly filled: round up",
        right if causal else [Lk / BLOCK_N] * query_tiles,
    )
    yield "the last, partly filled query tile has a number too", right[: Lq // BLOCK_M]
    yield (
        "keys are counted; the programs are tiles of BLOCK_N keys",
        [max(key + 1, 0) for key in lasts] if causal else right,
    )
    yield "causal, a key tile does not reach the queries before the diagonal", [key_tiles] * query_tiles
    yield "the tile's last query sees more keys than its first", up_to(first + corner for first in firsts)
    yield "the diagonal ends in the bottom right corner: Lk − Lq is missing", up_to(key - corner for key in lasts)
    yield "a query tile that sees no key is added to by no program", up_to(max(key, 0) for key in lasts)
    yield "the tile that holds the last key seen is forgotten", up_to(key - BLOCK_N for key in lasts)
    ends_early = "key j · BLOCK_N, the first of tile j, is seen too: the last key seen // BLOCK_N + 1"
    yield ends_early, [max(-(-key // BLOCK_N), 0) for key in lasts] if causal else right
    yield (
        "a key tile of which the last query sees a part adds too: round up",
        [max((key + 1) // BLOCK_N, 0) for key in lasts] if causal else right,
    )
    toward_zero = "int(…) rounds towards 0; below key 0 that is up: // rounds down"
    yield toward_zero, [max(int(key / BLOCK_N) + 1, 0) for key in lasts] if causal else right
    turned = "the sign of Lk − Lq is turned: query i sees the keys j ≤ i + Lk − Lq"
    yield turned, up_to(key - 2 * corner for key in lasts)
    behind = "the keys before the last one seen add, not those behind it"
    yield behind, [key_tiles - max(key // BLOCK_N, 0) for key in lasts] if causal else right
    yield behind, [key_tiles - key // BLOCK_N for key in lasts] if causal else right
    yield behind, [query_tiles - i for i in range(query_tiles)] if causal else right
    yield "there are no more programs than key tiles", up_to(key + BLOCK_N for key in lasts)
    yield (
        "a query tile that sees no key is added to by no program: never fewer than 0",
        [key // BLOCK_N + 1 for key in lasts],
    )
    yield "query i sees key i + Lk − Lq, and no further", up_to(key + 1 for key in lasts)
    whole = "a tile's last query is the last that exists"
    yield whole, up_to(first + BLOCK_M - 1 + corner for first in firsts)
    mixed = "BLOCK_M and BLOCK_N are mixed up: tiles of queries have BLOCK_M rows, those of keys BLOCK_N"
    yield mixed, list(range(1, query_tiles + 1)) if causal else right
    yield mixed, up_to(lasts, BLOCK_M) if causal else [-(-Lk // BLOCK_M)] * query_tiles
    yield mixed, exercises.dq_conflicts(Lq, Lk, BLOCK_N, BLOCK_M, causal)
    yield mixed, up_to(min(first + BLOCK_N, Lq) - 1 + corner for first in range(0, Lq, BLOCK_N))
    others = [min((i + 1) * BLOCK_M, Lq) - 1 + corner for i in range(-(-Lq // BLOCK_N))]
    yield mixed, up_to(others) if causal else [-(-Lk // BLOCK_M)] * len(others)
