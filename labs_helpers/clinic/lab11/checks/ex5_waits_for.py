"""Check exercise 5 of lab 11: who waits for whom, from the ranks' flight recorders."""

from numbers import Integral

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks import wait_mistakes
from labs_helpers.clinic.lab11.checks.wait_mistakes import KILLED, MISTAKES, NEVER_STARTED
from labs_helpers.clinic.lab11.recorders import recorded
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge

FOUR = {"world": [0, 1, 2, 3]}
THREE, TWO = {"world": [2, 0, 1]}, {"world": [0, 1]}
MESH = {"tp0": [0, 1], "tp1": [3, 2], "dp0": [2, 0], "dp1": [1, 3]}
STEP = [("world", "all_reduce", 4096)] * 2
METRIC = ("world", "all_reduce", 1)
ADVICE = "write each rank's record in a row, and mark the members of the last collective's group"


def _of_mesh(rank, tp=64, dp=512, steps=2):
    """Return the program of a rank of the mesh: a tensor-parallel collective and the gradients in each step."""
    return [(f"tp{rank // 2}", "all_reduce", tp), (f"dp{rank % 2}", "reduce_scatter", dp)] * steps


CASES = (  # title, rank → its collectives, group → its ranks, the ranks without a record
    ("nobody is stuck", {rank: STEP for rank in range(4)}, FOUR, ()),
    ("one rank, and one group", {0: [("alone", "barrier", 1)]}, {"alone": [0]}, ()),
    ("rank 2 skipped an all-reduce", {rank: (STEP * 2)[rank == 2 :] for rank in range(4)}, FOUR, ()),
    (
        "two sizes, and another rank behind",
        {0: [STEP[0], ("world", "all_gather", 64)], 1: [STEP[0], ("world", "all_gather", 65)],
         2: [STEP[0], ("world", "all_gather", 65)], 3: [STEP[0]]},
        FOUR,
        (),
    ),
    ("rank 1 leaves the metric out", {rank: [*STEP, METRIC][: 3 - (rank == 1)] * 2 for rank in range(3)}, THREE, ()),
    ("rank 1 was killed", {rank: STEP[: 1 + (rank != 1)] for rank in range(4)}, FOUR, (1,)),
    ("ranks 1 and 3 never started", {0: STEP, 1: [], 2: STEP, 3: []}, {"world": [3, 2, 1, 0]}, ()),
    (
        "two groups in two orders",
        {0: [("a", "all_reduce", 8), ("b", "all_reduce", 8)], 1: [("b", "all_reduce", 8), ("a", "all_reduce", 8)]},
        {"a": [0, 1], "b": [0, 1]},
        (),
    ),
    (
        "a circle of three ranks",
        {0: [("ab", "barrier", 1), ("ca", "barrier", 1)], 1: [("bc", "barrier", 1), ("ab", "barrier", 1)],
         2: [("ca", "barrier", 1), ("bc", "barrier", 1)]},
        {"ab": [1, 0], "bc": [2, 1], "ca": [0, 2]},
        (),
    ),
    ("a broadcast meets an all-reduce", {0: [("world", "broadcast", 10)], 1: [("world", "all_reduce", 10)]}, TWO, ()),
    ("a mesh of 2 × 2, rank 3 ended", {rank: _of_mesh(rank)[: 4 - 2 * (rank == 3)] for rank in range(4)}, MESH, ()),
    (
        "a mesh of 2 × 2, rank 1 ended and rank 0 was killed",
        {rank: _of_mesh(rank)[: (1, 2, 4, 4)[rank]] for rank in range(4)},
        MESH,
        (0,),
    ),
    (
        "a mesh of 2 × 2, rank 1 calls one collective more",
        {rank: [*_of_mesh(rank, steps=1), *[("tp0", "all_reduce", 64)] * (rank == 1), *_of_mesh(rank, steps=1)]
         for rank in range(4)},
        MESH,
        (),
    ),
    (
        "groups of different lengths",
        {5: [("x", "barrier", 1)] * 3 + [("xy", "barrier", 1)], 7: [("y", "barrier", 1), ("xy", "barrier", 1)],
         8: [("y", "barrier", 1)] * 2, 9: [("x", "barrier", 1)] * 3},
        {"x": [9, 5], "y": [8, 7], "xy": [7, 5]},
        (),
    ),
)  # fmt: skip


@exercise("11/5", "who waits for whom", points=20, minutes=30, reference=exercises.waits_for)
def waits_for(student):
    def checked(begun, members):
        answer = student(begun, members)
        if not isinstance(answer, dict):
            cause = "a return is missing" if answer is None else ""
            found = f"returned {answer!r:.60} instead of a dict from each waiting rank to a list of ranks"
            raise Wrong("", found, cause=cause)
        for rank, others in answer.items():
            if not isinstance(rank, Integral):
                raise Wrong("", f"the key {rank!r:.60} is not a rank")
            if not isinstance(others, list | tuple) or not all(isinstance(other, Integral) for other in others):
                raise Wrong("", f"rank {rank} has the value {others!r:.60} instead of a sorted list of ranks")
        return {rank: list(others) for rank, others in answer.items()}

    cases = [_case(*case) for case in CASES]
    yield from judge(student, checked, cases, MISTAKES, told=_told, otherwise=_unsorted, advice=ADVICE)


def _case(title, programs, members, killed):
    begun = {rank: record for rank, record in recorded(programs, members).items() if rank not in killed}
    right = wait_mistakes.waits_for(begun, members)
    waits = "; ".join(f"{rank} waits for {', '.join(map(str, others))}" for rank, others in right.items())
    errors = KILLED if killed else () if all(begun.values()) else NEVER_STARTED
    return Case(title, (begun, members), right, f"{title}: {waits or 'all collectives are complete'}", errors)


def _unsorted(case, answer):
    """Return the cause if only the order of lists is wrong."""
    in_order = {rank: sorted(others) for rank, others in answer.items()}
    return "the lists are not in ascending order; sort them" if in_order == case.right else ""


def _told(case, answer):
    begun, members = case.arguments
    rank = next(rank for rank in [*begun, *answer] if answer.get(rank) != case.right.get(rank))
    found, expected = (f"{of[rank]}" if rank in of else "no entry" for of in (answer, case.right))
    if not begun.get(rank):
        return found, f"{expected}: it has begun nothing", f"rank {rank}"
    last = begun[rank][-1]
    lines = [f"rank {other} of {last[0]!r}: {_shown(begun, other)}" for other in sorted(members[last[0]])]
    return found, "\n  ".join([expected, *lines]), f"rank {rank}, whose last collective is {last}"


def _shown(begun, rank, most=3):
    """Return the end of a rank's record as text."""
    if rank not in begun:
        return "no record"
    record = begun[rank]
    return f"[{'…, ' * (len(record) > most)}{', '.join(map(str, record[-most:]))}]"
