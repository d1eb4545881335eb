"""Check exercise 6 of lab 11: the parameters that are not the same on all ranks, on practice ranks."""

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks import replica_mistakes
from labs_helpers.clinic.lab11.checks.replica_mistakes import MISTAKES, crc
from labs_helpers.clinic.lab11.checks.replicas import parameters_of, replicas_of
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, on_practice_ranks
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.practice.groups import practice_groups

CASES = (  # ranks, and which parameters differ on which of them
    (2, ()),
    (1, ()),
    (2, (("layers.2.weight", (1,), "the last bit"),)),
    (3, (("head", (2,), "two values exchanged"), ("tokens", (1,), "the last bit"))),
    (4, (("layers.10.bias", (2,), "−0.0"), ("layers.2.scale", (1, 2), "the last bit"))),
    (4, (("layers.2.weight", (2, 3), "two values exchanged"), ("layers.10.weight", (0,), "the last bit"))),
    (2, (("steps", (0,), "25,275,759 steps"),)),
    (2, (("steps", (1,), "61,644,508 steps"),)),
    (3, (("layers.10.bias", (1,), "+0.25 and −0.25"), ("running", (0,), "the last bit"))),
)
MOST = 16  # bytes per parameter and rank
MOST_CALLS = 2
STUCK = "every rank has to call the same collectives, with tensors of the same size: do not call them in an `if`"
ERRORS = (
    (
        r"without overflow|out of bounds for int|int too (big|large)",
        "a checksum may be up to 2**32 − 1, more than int32 holds; int64 holds it",
    ),
    (r"integer modulo by zero", "all_gather joins along a dimension, so x needs one: torch.tensor([…])"),
    (r"has no attribute 'detach'", "all_gather takes a tensor; torch.tensor makes one of a list or an array"),
    (r"unsupported ScalarType BFloat16", "NumPy has no bfloat16; checksum(x) reads its bytes"),
)
ALONE = ((r"index 1 is out of bounds|list index out of range", "there may be one rank, whose number is 0"),)
ADVICE = "print group.rank and the gathered checksums as one row per rank, and look for a column that is not constant"


@exercise("11/6", "replicas that diverge", points=20, minutes=30, reference=exercises.differing)
def differing(student):
    def on_ranks(ranks, edits):
        """Return the student's list on each rank."""
        own, title = [(rank, edits) for rank in range(ranks)], _title(ranks, edits)
        errors = ERRORS if ranks > 1 else (*ERRORS, *ALONE)
        run = on_practice_ranks(title, student, _call, own, ranks=practice_groups, errors=errors, stuck=STUCK)
        return run.results

    def of_case(mistake):
        return lambda ranks, edits: mistake(replicas_of(ranks, edits))

    cases = [_case(*case) for case in CASES]
    mistakes = [(sentence, of_case(mistake)) for sentence, mistake in MISTAKES]
    yield from judge(student, on_ranks, cases, mistakes, told=_told, otherwise=_unsorted, advice=ADVICE)


def _call(student, comm, rank, edits):
    group, parameters = PracticeCommunication(comm), parameters_of(rank, edits)
    answer = student(parameters, group)
    if list(map(crc, parameters.values())) != list(map(crc, parameters_of(rank, edits).values())):
        raise Wrong("", "changes its parameters")
    if not isinstance(answer, list | tuple) or not all(isinstance(name, str) for name in answer):
        cause = "every rank has to return the list" if answer is None else ""
        raise Wrong("", f"returned {answer!r:.60} instead of a sorted list of names", cause=cause)
    _expect_cheap(group, parameters)
    return list(answer)


def _expect_cheap(group, parameters):
    """Raise Wrong if a rank sends too many bytes or messages."""
    sent, most = group.payload.total(), MOST * len(parameters) * group.size
    if sent > most:
        found = f"sends {sent:,} bytes as group.payload counts them; {most:,} are allowed"
        whole = sum(x.nbytes for x in parameters.values())
        cause = "whole parameters travel; send one checksum of each" if sent >= whole else ""
        raise Wrong("", found, cause=cause, advice="print x.nbytes of each tensor that you pass to a collective")
    if group.calls.total() > MOST_CALLS:
        cause = "each parameter travels alone; put the checksums of all parameters in one tensor"
        found = f"calls {group.calls.total()} collectives for {len(parameters)} parameters; {MOST_CALLS} are allowed"
        raise Wrong("", found, cause=cause if group.calls.total() >= len(parameters) else "")


def _title(ranks, edits):
    places = [
        f"{name} on rank{'s' * (len(where) > 1)} {' and '.join(map(str, where))} ({way})" for name, where, way in edits
    ]
    return f"{ranks} rank{'s' * (ranks > 1)}, {'; '.join(places) or 'all the same'}"


def _case(ranks, edits):
    replicas, title = replicas_of(ranks, edits), _title(ranks, edits)
    nbytes = sum(x.nbytes for x in replicas[0].values())
    line = f"{title}: {len(edits)} of {len(replicas[0])} parameters differ, {nbytes:,} bytes per rank"
    return Case(title, (ranks, edits), replica_mistakes.differing(replicas), line)


def _unsorted(case, answer):
    """Return the cause if only the order of the names is wrong."""
    return "the names are not sorted" if list(map(sorted, answer)) == case.right else ""


def _told(case, answer):
    rank = next(rank for rank, names in enumerate(answer) if names != case.right[rank])
    others = [f"\n  rank {other} returns {names}" for other, names in enumerate(answer) if names != answer[rank]]
    return f"{answer[rank]}", f"{case.right[rank]}{''.join(others)}", f"rank {rank}'s list"
