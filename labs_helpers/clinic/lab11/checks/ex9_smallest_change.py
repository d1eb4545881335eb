"""Check the transfer exercise of lab 11: the smallest set of changes that reaches a goal, with few measurements."""

from collections.abc import Set
from functools import partial
from typing import NamedTuple

from labs_helpers.clinic.lab11.checks.change_mistakes import GREEDY, MISTAKES, greedy_ends, limit, smallest
from labs_helpers.clinic.lab11.timed_jobs import ChangeableJob
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.pure_functions import Case, judge

GRAPHS, WORKERS, BF16, BUCKETS, FUSED = "CUDA graphs", "more workers", "bf16", "buckets", "fused AdamW"
LOADER, COMPUTE = (100, {WORKERS: 60}), (70, {BF16: 35, FUSED: 4})
TWO_PATHS = (LOADER, (100, {BF16: 30, BUCKETS: 15, FUSED: 5}))
JOBS = (  # name, changes, the longest of the job's paths counts, what runs before them, goal
    ("one change is enough", [GRAPHS, FUSED, BF16], [(60, {BF16: 25, FUSED: 5})], (20, {GRAPHS: 9}), 66),
    ("each change alone gains nothing", [BUCKETS, WORKERS, BF16], TWO_PATHS, (0, {}), 75),
    ("small gains elsewhere", [GRAPHS, FUSED, BUCKETS, BF16, WORKERS], TWO_PATHS, (30, {GRAPHS: 12, FUSED: 6}), 105),
    ("two gains that add up", [FUSED, BF16, GRAPHS], [(40, {BF16: 4})], (20, {GRAPHS: 9, FUSED: 5}), 47),
    ("one change, or two others", [BF16, FUSED, GRAPHS], [(60, {BF16: 25, FUSED: 15})], (20, {GRAPHS: 12}), 56),
    ("three paths of equal length", [FUSED, WORKERS, BF16, BUCKETS],
     [LOADER, (98, {BF16: 50, FUSED: 20}), (97, {BUCKETS: 60})], (10, {}), 65),
    ("two changes that gain little alone, and much together", [GRAPHS, WORKERS, BF16],
     [LOADER, (100, {BF16: 60})], (10, {WORKERS: 2, BF16: 2}), 60),
    ("no change is necessary", [BF16, WORKERS], [LOADER, COMPUTE], (5, {}), 107),
    ("not even all changes are enough", [BF16, WORKERS, FUSED], [LOADER, COMPUTE], (10, {}), 49),
    ("exactly the goal", [WORKERS, BF16, GRAPHS], TWO_PATHS, (8, {GRAPHS: 3}), 78),
    ("two pairs of changes", [WORKERS, GRAPHS, BUCKETS, BF16], TWO_PATHS, (10, {GRAPHS: 2}), 97),
    ("the largest gain is not part of the answer", [WORKERS, FUSED, BF16, BUCKETS],
     [(90, {BF16: 28, WORKERS: 45}), (90, {BF16: 28, BUCKETS: 45, FUSED: 3})], (0, {}), 50),
    ("a change that matters only after another", [BF16, WORKERS, GRAPHS],
     [LOADER, (60, {BF16: 30})], (15, {GRAPHS: 4}), 56),
    ("all changes are necessary", [BF16, BUCKETS, WORKERS], TWO_PATHS, (0, {}), 56),
    ("exactly the goal with all changes", [WORKERS, BF16], [LOADER, COMPUTE], (3, {}), 43),
    ("four of five changes", [GRAPHS, FUSED, WORKERS, BF16, BUCKETS], TWO_PATHS, (20, {GRAPHS: 8, FUSED: 2}), 67),
    ("the goal is just missed", [BF16, FUSED], [COMPUTE], (0, {}), 30.5),
    ("no possible change, goal reached", [], [LOADER], (0, {}), 100),
    ("no possible change, goal missed", [], [LOADER], (0, {}), 99),
)  # fmt: skip
ERRORS = ((r"^ValueError: (min|max)\(\)|list index out of", "`changes` is empty here"),)
ADVICE = "measure every pair of changes in this case by hand, and compare it with the two single changes"

EVERY_SET = "every set is measured; begin with the small sets, and stop at the first size that reaches the goal"
ALL_LATER = "other sets are measured before all changes together, whose time tells that no set reaches the goal"


class Answer(NamedTuple):
    """A set of changes, or None, and the ms of the job with it."""

    chosen: frozenset[str] | None
    ms: float | None


@exercise("11/9", "transfer: the smallest change", points=20, minutes=25)
def smallest_change(student):
    cases, jobs, answers = list(_cases()), [], []

    def answered(changes, paths, serial, goal):
        jobs.append(job := ChangeableJob(paths, serial))
        names = list(changes)
        found = student(job.measure_of(names), changes, goal)
        if changes != names:
            advice = "remove() and pop() change the list; work with a copy of it"
            raise Wrong("", "the function must not change `changes`", advice=advice)
        if found is not None and not isinstance(found, Set | list | tuple):
            cause = "a set with a single name is {name}" if found in names else ""
            raise Wrong("", f"returned {found!r:.60} instead of a set of changes, or None", cause=cause)
        if unknown := [name for name in found or () if name not in names]:
            raise Wrong("", f"returned {found!r:.90}; {unknown[0]!r:.40} is not among the changes {names}")
        answers.append(_answer(job, found))
        return answers[-1]

    def causes(case, answer):
        """Return the mistakes that explain all answers; those to a few cases agree with too many."""
        explained = [(GREEDY, _by_greed), *((said, partial(_gives, mistake)) for said, mistake in MISTAKES)]
        return likely(explained, lambda explains: all(map(explains, cases, answers)))

    yield from judge(student, answered, cases, (), told=_told, same=_same, otherwise=causes, advice=ADVICE)
    for case, job in zip(cases, jobs, strict=True):
        _expect_few(case, job.measured)
    yield f"{sum(len(job.measured) for job in jobs)} measurements in {len(jobs)} jobs, no set twice"


def _expect_few(case, measured):
    """Raise Wrong if an answer, which is right, measured a set twice or too many sets."""
    count, chosen = len(case.arguments[0]), case.right.chosen
    twice = [one for place, one in enumerate(measured) if one in measured[:place]]
    if twice:
        cause = {count: "all changes together are also the set of the largest size", 0: "no change is a set of size 0"}
        found = f"the right answer, but {_named(twice[0])} is measured twice"
        advice = "keep the time of each set, for example in a dict"
        raise Wrong(case.name, found, cause=cause.get(len(twice[0]), ""), advice=advice)
    most = limit(None if chosen is None else len(chosen), count)
    if len(measured) > most:
        cause = EVERY_SET if len(measured) == 2**count else ""
        cause = ALL_LATER if chosen is None and len(measured[0]) < count else cause
        found = f"the right answer, but after {len(measured)} measurements; the limit is {most} here"
        advice = "if all changes together miss the goal, no other set reaches it; otherwise, begin with the small sets"
        raise Wrong(case.name, found, cause=cause, advice=advice)


def _answer(job, found):
    return Answer(None, None) if found is None else Answer(frozenset(found), job.ms(frozenset(found)))


def _by_greed(case, answer):
    """Tell whether the best single change at each step, whichever of equal ones, leads to this answer."""
    changes, paths, serial, goal = case.arguments
    return answer.chosen in greedy_ends(ChangeableJob(paths, serial).ms, changes, goal)


def _gives(mistake, case, answer):
    """Tell whether a mistake gives this answer."""
    changes, paths, serial, goal = case.arguments
    job = ChangeableJob(paths, serial)
    return _same(answer, _answer(job, mistake(job.measure_of(changes), list(changes), goal)))


def _right(changes, paths, serial, goal):
    job = ChangeableJob(paths, serial)
    return _answer(job, smallest(job.ms, changes, goal))


def _same(found, right) -> bool:
    """Tell whether two answers are equally large and fast."""
    sizes = [None if one.chosen is None else len(one.chosen) for one in (found, right)]
    return sizes[0] == sizes[1] and found.ms == right.ms


def _cases():
    for name, *given in JOBS:
        right, job = _right(*given), ChangeableJob(*given[1:3])
        single = max((job.ms(()) - job.ms({change}) for change in given[0]), default=0)
        gains = f"{_named(right.chosen)} brings {job.ms(()):g} to {right.ms:g} ms" if right.chosen else _shown(right)
        line = f"{name}: {gains}; a single change gains at most {single:g}"
        yield Case(name, tuple(given), right, line, () if given[0] else ERRORS)


def _named(chosen):
    return "None" if chosen is None else "{" + ", ".join(sorted(chosen)) + "}"


def _shown(answer):
    return _named(answer.chosen) if answer.chosen is None else f"{_named(answer.chosen)} with {answer.ms:g} ms"


def _told(case, answer):
    changes, paths, serial, goal = case.arguments
    job = ChangeableJob(paths, serial)
    alone = ", ".join(f"{change} {job.ms({change}):g}" for change in changes)
    lines = f"{_shown(case.right)}\n  goal {goal:g} ms; no change {job.ms(()):g}, each change alone: {alone or '–'}"
    needless = [change for change in answer.chosen or () if job.ms(answer.chosen - {change}) <= goal]
    if needless:
        lines += f"; {_named(answer.chosen)} without {needless[0]}: {job.ms(answer.chosen - {needless[0]}):g}"
    return _shown(answer), lines
