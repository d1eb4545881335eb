"""Check exercise 8 of lab 10: the groups along each axis of a mesh, and the bytes that leave a node."""

from math import prod

from labs_helpers.communication.nodes import bytes_between_nodes
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks.group_mistakes import ERRORS, MISTAKES
from labs_helpers.pipeline.lab10.checks.group_mistakes import rank_groups as right_groups

GPUS_PER_NODE = 4
MESHES = (  # sizes, exposed megabytes, both by axis
    ({"dp": 2, "tp": 4}, {"dp": 100, "tp": 900}),
    ({"tp": 4, "dp": 2}, {"tp": 900, "dp": 100}),
    ({"dp": 2, "pp": 2, "tp": 4}, {"dp": 20, "pp": 60, "tp": 900}),
    ({"tp": 2, "pp": 4, "dp": 3}, {"tp": 900, "pp": 60, "dp": 20}),
    ({"pp": 3, "dp": 4, "tp": 2}, {"pp": 50, "dp": 400, "tp": 300}),
    ({"dp": 4, "pp": 1, "tp": 2}, {"dp": 50, "pp": 80, "tp": 70}),
    ({"cp": 2, "dp": 3, "pp": 2, "tp": 2}, {"cp": 300, "dp": 10, "pp": 30, "tp": 600}),
    ({"pp": 5}, {"pp": 40}),
    ({"a": 3, "b": 2, "c": 2}, {"a": 70, "b": 90, "c": 10}),
)
ADVICE = "write down the coordinates of ranks 0, 1, 2, … of a 2 × 2 × 2 mesh, one rank per line"
SHOWN = 8  # groups in a message


@exercise("10/8", "the groups of a mesh", points=15, minutes=20, reference=exercises.rank_groups)
def rank_groups(student):
    def in_order(sizes, exposed):
        """Return the student's groups, sorted by their first ranks."""
        answer = student(sizes, exposed)
        if not isinstance(answer, dict):
            raise Wrong("", f"returned {answer!r:.60} instead of a dict from each axis to its groups")
        if set(answer) != set(sizes):
            keys = ", ".join(map(str, answer))
            raise Wrong("", f"returned a dict with the keys {keys:.60}, not {', '.join(sizes)}")
        most = prod(sizes.values())
        return {axis: sorted(_ranks(axis, group, most) for group in _list(axis, answer[axis], most)) for axis in answer}

    cases = [_case(*mesh) for mesh in MESHES]
    yield from judge(student, in_order, cases, MISTAKES, told=_told, errors=ERRORS, otherwise=_outside, advice=ADVICE)


def _list(axis, groups, most):
    """Return an axis's groups. Raises Wrong for other things than a list, and for more than `most` groups."""
    if not isinstance(groups, list | tuple):
        raise Wrong("", f"returned {groups!r:.60} for the axis {axis} instead of a list of groups")
    if len(groups) > most:
        raise Wrong("", f"returned {len(groups):,} groups for the axis {axis}; the mesh has only {most} ranks")
    return groups


def _ranks(axis, group, most):
    """Return a group as a list. Raises Wrong for other things than ranks, and for more than `most` of them."""
    if isinstance(group, list | tuple | range) and len(group) > most:
        raise Wrong("", f"a group of the axis {axis} has {len(group):,} ranks; the mesh has only {most}")
    if not isinstance(group, list | tuple | range) or not all(isinstance(rank, int) for rank in group):
        raise Wrong("", f"a group of the axis {axis} is {group!r:.60} instead of a list of ranks")
    return list(group)


def _outside(case, answer) -> str:
    """Return the cause if a group contains a rank that the mesh does not have."""
    world = range(prod(case.arguments[0].values()))
    outside = (rank for groups in answer.values() for group in groups for rank in group if rank not in world)
    return next((f"rank {rank} does not exist: the mesh has the ranks 0 to {world[-1]}" for rank in outside), "")


def _case(sizes, exposed):
    right = right_groups(sizes, exposed)
    name = " × ".join(f"{axis} {size}" for axis, size in sizes.items())
    sent = {axis: 1e6 * number for axis, number in exposed.items()}
    between = sum(bytes_between_nodes(right, sent, GPUS_PER_NODE).values())
    return Case(name, (sizes, exposed), right, f"{name}: {1e-6 * between:,.0f} MB leave nodes of {GPUS_PER_NODE} GPUs")


def _told(case, answer):
    sizes, exposed = case.arguments
    axis = next(axis for axis in sizes if answer[axis] != case.right[axis])
    right = right_groups(*case.arguments)
    mine, best = (sum(bytes_between_nodes(groups, exposed, GPUS_PER_NODE).values()) for groups in (answer, right))
    traffic = f"On nodes of {GPUS_PER_NODE} GPUs, {mine:,.0f} instead of {best:,.0f} exposed bytes leave a node."
    found, expected = _shown(answer[axis], case.right[axis])
    told = f"{expected}\n  exposed: {exposed}" + f"\n  {traffic}" * (mine > best)
    return found, told, f"the groups along {axis}"


def _shown(found, right):
    """Return two lists of groups as text, from the first group that differs if they are long."""
    shorter = min(len(found), len(right))
    same = next((i for i, pair in enumerate(zip(found, right, strict=False)) if pair[0] != pair[1]), shorter)
    start = max(0, same - 2) if max(len(found), len(right)) > SHOWN else 0
    return _as_text(found, start), _as_text(right, start)


def _as_text(groups, start):
    shown = ", ".join(map(str, groups[start : start + SHOWN]))
    return f"[{'…, ' * (start > 0)}{shown}{', …' * (len(groups) > start + SHOWN)}]"
