"""Find answers that are alike after names, comments, docstrings and annotations are removed.

Two answers are compared in runs of words (as in Schleimer, Wilkerson and Aiken, "Winnowing", 2003; see answer_form.py),
and only in runs that say something. Left out is what the lab's notebook shows, what the course's own answer contains,
and what much of the class writes. Identical answers are found whatever their length and number; short ones are no sign
of copying, since many students write them independently. A common source, such as a tutorial, looks the same as a copy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from labs_helpers.course.stub import stub_of
from labs_helpers.grading.results.answer_form import form_of, runs_of

# Right answers in tests/ that are written differently share at most 33 runs that the reference has not, and those are
# at most half of either; only answers made of one another share more. It is some four lines of code.
ENOUGH = 60
LIKE = 0.8  # of the runs of either that say something
MANY = 0.04  # of the class, at least FEW students: what so many write, the exercise suggests
FEW = 3
CROWD, CROWD_SHARE = 10, 0.1  # of the class: what more have word for word is listed once, and is a flag of nobody
# Runs of a reference that nothing else in its lab's notebook has, some seven lines. Of the answers to 02/2 and 02/4,
# which students wrote just so without having seen them, there are 22 and 32.
LONG = 120
Words = tuple[str, ...]


@dataclass(frozen=True)
class Alike:
    """Students whose answers to an exercise are alike. same: nothing else differs. share: the part of the runs in
    the longer answer that the other also contains. telling: the answer is too long to be written twice by chance,
    and few have it."""

    exercise: str
    students: tuple[str, ...]
    same: bool
    share: float = 1.0
    telling: bool = True

    @property
    def words(self) -> str:
        if self.same:
            no_sign = "" if self.telling else "; too short, or with too many, to be a sign by itself"
            return f"the same but for names, comments and annotations{no_sign}"
        return f"{self.share:.0%} of what is neither the course's own nor written by many is the same"


@dataclass(frozen=True)
class Shared:
    """Two students, and the exercises to which their answers are the same. alone: how many of these answers nobody
    else has. both: exercises that both have answered."""

    one: str
    other: str
    exercises: tuple[str, ...]
    alone: int
    both: int


def same_as_reference(source: str, reference: str) -> bool:
    """Return True if an answer is the reference, except for names, comments, docstrings and annotations."""
    form = form_of(reference)
    return form is not None and form_of(source) == form


def is_long(reference: str, shown: Collection[str] = ()) -> bool:
    """Return True if a reference contains more that the lab does not show than many students would write
    independently. reference: its cell, with the marks around the answer (course.stub.cell_of). shown: the code cells
    of the lab's notebook."""
    return len(runs_of(form_of(reference) or ()) - _shipped((stub(reference), *shown))) >= LONG


def twins(
    answers: Mapping[str, Mapping[str, str]], references: Mapping[str, str], shown: Collection[str] = ()
) -> list[Alike]:
    """Return students with the same answer, however many, and students whose answers are nearly the same; by exercise,
    the telling ones first. The course's own answer is left out.

    answers: exercise → student → source with own cells. references: exercise → its cell (course.stub.cell_of), or the
    stub if there is no other. shown: the code cells of the lab's notebook. An answer that is no Python matches nothing.
    """
    found, in_the_lab = list[Alike](), _shipped(shown)
    for exercise, sources in answers.items():
        reference = references.get(exercise, "")
        found += _alike(exercise, sources, (reference, stub(reference)), in_the_lab)
    return sorted(found, key=lambda one: (one.exercise, not one.telling, not one.same, -one.share, one.students))


def shared(alike: Sequence[Alike], answers: Mapping[str, Mapping[str, str]]) -> list[Shared]:
    """Return pairs of students with the same answers to more than one exercise, those first that share most that
    nobody else has. alike: the result of `twins` for these answers."""
    exercises = defaultdict[tuple[str, str], list[Alike]](list)
    for group in alike:
        for pair in combinations(group.students, 2) if group.same else ():
            exercises[pair].append(group)
    found = [
        Shared(
            one,
            other,
            tuple(group.exercise for group in groups),
            alone=sum(len(group.students) == 2 for group in groups),
            both=sum(one in sources and other in sources for sources in answers.values()),
        )
        for (one, other), groups in exercises.items()
        if len(groups) > 1
    ]
    return sorted(found, key=lambda pair: (-pair.alone, -len(pair.exercises), pair.one, pair.other))


def stub(reference: str) -> str:
    """Return the stub, '' for a cell without marks."""
    try:
        return stub_of(reference)
    except ValueError:
        return ""


def _shipped(texts: Collection[str]) -> set[int]:
    return {run for text in texts for run in runs_of(form_of(text) or ())}


def _alike(exercise: str, sources: Mapping[str, str], known: Collection[str], in_the_lab: set[int]) -> Iterator[Alike]:
    writers = defaultdict[Words, list[str]](list)
    for student, text in sorted(sources.items()):
        if form := form_of(text):
            writers[form].append(student)
    for text in known:
        writers.pop(form_of(text) or (), None)
    shipped = _shipped(known) | in_the_lab
    own_of = {form: runs_of(form) - shipped for form in writers}
    crowd = max(CROWD, CROWD_SHARE * len(sources))
    for form, students in writers.items():
        if len(students) > 1:
            yield Alike(exercise, tuple(students), True, telling=len(own_of[form]) >= ENOUGH and len(students) <= crowd)
    yield from _nearly(exercise, writers, own_of, max(FEW, int(MANY * len(sources))))


def _nearly(
    exercise: str, writers: Mapping[Words, list[str]], own_of: Mapping[Words, set[int]], most: int
) -> Iterator[Alike]:
    """Return answers that share most of the runs that few enough students write."""
    times = Counter(run for form, runs in own_of.items() for run in runs for _ in writers[form])
    said = {form: {run for run in runs if times[run] <= most} for form, runs in own_of.items()}
    holders = defaultdict[int, list[Words]](list)
    for form, runs in said.items():
        for run in runs:
            holders[run].append(form)
    together = Counter(pair for forms in holders.values() for pair in combinations(forms, 2))
    for (one, other), count in together.items():
        share = count / max(len(said[one]), len(said[other]))
        if count >= ENOUGH and share >= LIKE:
            yield Alike(exercise, tuple(sorted(writers[one] + writers[other])), False, share)
