"""Exercise 4 of lab 05: compare the number of programs that add to each tile of dQ with counted ones."""

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
        line = f"{named(*sizes)}: {counted}" + ", counted by the meter" * metered_here
        cases.append(Call(named(*sizes), sizes, counted, line))
    others = product((65, 64, 48, 33, 32, 31, 17, 16, 15, 1), (96, 65, 64, 33, 32, 31, 20, 16, 1), (16, 32), (32, 16))
    for sizes in ((*sizes, causal) for sizes in others for causal in (True, False)):
        cases.append(Call(named(*sizes), sizes, exercises.dq_conflicts(*sizes)))
    whole = Part(lambda answer: answer, mistakes, told)
    advice = "draw the tiles of this case and mark the keys that each query sees."
    yield from judge_parts(student, call, cases, [whole], advice=advice)
    yield "720 other sizes, compared with the formula"


def told(case: Call, answer) -> tuple[str, ...]:
    if not isinstance(answer, list) or len(answer) != len(case.right):
        return (f"returned {answer!r}; return a list of {len(case.right)} numbers, one per query tile",)
    return (f"returned {answer}, but the meter counts {case.right}",)


def named(Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, causal: bool) -> str:
    return f"{Lq} queries, {Lk} keys, BLOCK_M={BLOCK_M}, BLOCK_N={BLOCK_N}" + ", causal" * causal


def writers(Lq: int, Lk: int, BLOCK_M: int, BLOCK_N: int, causal: bool) -> list[int]:
    """Count the programs that add to each query tile of dQ with the meter."""
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
    ]  # the last key that each tile sees

    def up_to(keys, width: int = BLOCK_N) -> list[int]:
        return [max(key // width + 1, 0) for key in keys] if causal else [key_tiles] * query_tiles

    right = up_to(lasts)
    yield (
        "the list counts query tiles; the programs are the key tiles",
        right if causal else [query_tiles] * query_tiles,
    )
    exchanged = "the list has one number per key tile; return one per query tile"
    yield exchanged, right if causal else [query_tiles] * key_tiles
    yield "the result is a sum; return a list with one number per query tile", sum(right)
    yield "the last, partly filled key tile has a program, too", right if causal else [Lk // BLOCK_N] * query_tiles
    yield (
        "a partly filled key tile is a whole program; round up",
        right if causal else [Lk / BLOCK_N] * query_tiles,
    )
    yield "the last, partly filled query tile needs a number, too", right[: Lq // BLOCK_M]
    yield (
        "the list counts keys; a program is a tile of BLOCK_N keys",
        [max(key + 1, 0) for key in lasts] if causal else right,
    )
    yield "with a causal mask, a key tile does not add to the queries before the diagonal", [key_tiles] * query_tiles
    yield "the tile's last query sees more keys than its first query", up_to(first + corner for first in firsts)
    yield "Lk − Lq is missing: the diagonal ends in the bottom right corner", up_to(key - corner for key in lasts)
    yield "no program adds to a query tile that sees no key", up_to(max(key, 0) for key in lasts)
    yield "the key tile that holds the last visible key is missing", up_to(key - BLOCK_N for key in lasts)
    ends_early = "a key tile counts as soon as its first key is visible: last visible key // BLOCK_N + 1"
    yield ends_early, [max(-(-key // BLOCK_N), 0) for key in lasts] if causal else right
    yield (
        "a key tile adds even if the last query sees only a part of it; round up",
        [max((key + 1) // BLOCK_N, 0) for key in lasts] if causal else right,
    )
    toward_zero = "int(…) rounds toward 0, which is up for negative keys; // rounds down"
    yield toward_zero, [max(int(key / BLOCK_N) + 1, 0) for key in lasts] if causal else right
    turned = "Lk − Lq has the wrong sign: query i sees the keys j ≤ i + Lk − Lq"
    yield turned, up_to(key - 2 * corner for key in lasts)
    behind = "the list counts the key tiles after the last visible key; count those up to it"
    yield behind, [key_tiles - max(key // BLOCK_N, 0) for key in lasts] if causal else right
    yield behind, [key_tiles - key // BLOCK_N for key in lasts] if causal else right
    yield behind, [query_tiles - i for i in range(query_tiles)] if causal else right
    yield "one of the numbers is larger than the number of key tiles", up_to(key + BLOCK_N for key in lasts)
    yield (
        "no program adds to a query tile that sees no key: return 0, not a negative number",
        [key // BLOCK_N + 1 for key in lasts],
    )
    yield "query i sees no key after i + Lk − Lq", up_to(key + 1 for key in lasts)
    whole = "the last query of a partly filled tile is Lq − 1"
    yield whole, up_to(first + BLOCK_M - 1 + corner for first in firsts)
    mixed = "BLOCK_M and BLOCK_N are mixed up: query tiles have BLOCK_M rows, key tiles have BLOCK_N"
    yield mixed, list(range(1, query_tiles + 1)) if causal else right
    yield mixed, up_to(lasts, BLOCK_M) if causal else [-(-Lk // BLOCK_M)] * query_tiles
    yield mixed, exercises.dq_conflicts(Lq, Lk, BLOCK_N, BLOCK_M, causal)
    yield mixed, up_to(min(first + BLOCK_N, Lq) - 1 + corner for first in range(0, Lq, BLOCK_N))
    others = [min((i + 1) * BLOCK_M, Lq) - 1 + corner for i in range(-(-Lq // BLOCK_N))]
    yield mixed, up_to(others) if causal else [-(-Lk // BLOCK_M)] * len(others)
