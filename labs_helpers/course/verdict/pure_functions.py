"""Judge a pure function by its cases; its common mistakes are functions of the same arguments.

    yield from judge(student, student, cases, MISTAKES, told=told)

A mistake is named if it gives the same results as the answer in all cases. Otherwise it must agree up to the first
wrong case, in half of the wrong ones, and in a third of those in which it or the answer is wrong, because a single case
may fit by chance; of these mistakes, those that agree in the most cases are named. If an answer has several parts,
each is judged separately and has its own mistakes:

    def first_mistakes(x, y):
        yield "y is not added", x

    yield from judge_parts(student, student, cases, [Part(itemgetter(0), first_mistakes, told), …])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import permutations
from operator import itemgetter
from typing import Any, NamedTuple

from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.errors import describe_error
from labs_helpers.course.verdict.messages import Errors
from labs_helpers.course.verdict.tree_causes import scaled
from labs_helpers.course.verdict.trees import Difference, leaves
from labs_helpers.course.verdict.wrong import Wrong

Otherwise = Callable[["Case", Any], "Sequence[str] | str"]
Advice = str | Callable[["Case", Any], str]


class Case(NamedTuple):
    """One call. right: its result. line: the line that the check prints; a case without a line counts silently.

    errors: pairs of an error pattern and its meaning in this case only.
    """

    name: str
    arguments: tuple
    right: Any
    line: str = ""
    errors: Errors = ()


class Part(NamedTuple):
    """A part of an answer that is compared separately.

    of: extracts it from an answer. mistakes: a function of the arguments that yields pairs of a sentence and this
    part's value, or a function that returns it; the sentences and their order are the same for all arguments. told: the
    found and the expected value in words, optionally with the place. otherwise: the cause if no mistake fits.
    """

    of: Callable[[Any], Any]
    mistakes: Callable[..., Candidates]
    told: Callable[[Case, Any], tuple[str, ...]]
    same: Callable[[Any, Any], bool] = operator.eq
    otherwise: Otherwise = lambda case, found: ""


def judge(
    student: Callable,
    call: Callable,
    cases: Sequence[Case],
    mistakes: Sequence[tuple[str, Callable]],
    *,
    told: Callable[[Case, Any], tuple[str, ...]],
    same: Callable[[Any, Any], bool] = operator.eq,
    errors: Errors = (),
    otherwise: Otherwise = lambda case, answer: "",
    advice: Advice = "",
) -> Iterator[str]:
    """Yield the line of each case; raise Wrong at the first wrong answer, as `judge_parts` does."""

    def made(*arguments: Any) -> Candidates:
        return [(sentence, partial(mistake, *deepcopy(arguments))) for sentence, mistake in mistakes]

    whole = Part(lambda answer: answer, made, told, same)
    return judge_parts(student, call, cases, [whole], errors=errors, otherwise=otherwise, advice=advice)


def judge_parts(
    student: Callable,
    call: Callable,
    cases: Sequence[Case],
    parts: Sequence[Part],
    *,
    errors: Errors = (),
    otherwise: Otherwise = lambda case, answer: "",
    advice: Advice = "",
) -> Iterator[str]:
    """Yield the line of each case; raise Wrong at the first wrong part of the first wrong case.

    call: the student's function with a comparable result. errors: pairs of a pattern of the answer's error messages and
    its cause. otherwise: the cause if no mistake fits. advice: what to try without a cause, or a function of the case
    and the answer that returns it. Raises Wrong also for an error and for changed arguments.
    """
    found, failed = [], None
    for case in cases:
        given = deepcopy(case.arguments)
        try:
            answer = call(*given)
        except Exception as error:
            failed = describe_error(student, error, case.name, (*case.errors, *errors))
            failed.case = failed.case or case.name
            break
        if given != case.arguments:
            cause = "sort() and pop() change a list; sorted() returns a new one"
            failed = Wrong(case.name, "the function must not change its arguments", cause=cause)
            break
        found.append((case, answer))
    for number, (case, answer) in enumerate(found, start=1):
        for part in parts:
            if not part.same(value := part.of(answer), part.of(case.right)):
                causes = _likely(part, found, number - 1) or part.otherwise(case, value) or otherwise(case, value)
                causes = causes or _reordered(parts, answer, case.right) or _scaled(found)
                tip = advice(case, answer) if callable(advice) else advice
                raise Wrong(case.name, *part.told(case, value), cause=causes, advice=tip)
        if case.line:
            yield case.line
    if failed:
        raise failed


def first_wrong(*names: str) -> Callable[[Case, Any], tuple[str, ...]]:
    """Return `told` for answers that are tuples of these parts: the first wrong one."""

    def told(case: Case, found: Any) -> tuple[str, ...]:
        at = next(i for i in range(len(names)) if found[i] != case.right[i])
        return f"{found[at]}", f"{case.right[at]}", names[at]

    return told


def number_parts(names: Sequence[str], mistakes: Sequence[tuple[str, Callable]]) -> list[Part]:
    """Return the parts of an answer that is a tuple of numbers. mistakes: functions that return the whole tuple; those
    that leave a part right are no cause of it."""

    def part(at: int, name: str) -> Part:
        def made(*arguments: Any) -> Candidates:
            return [(sentence, lambda mistake=mistake: mistake(*arguments)[at]) for sentence, mistake in mistakes]

        return Part(itemgetter(at), made, lambda case, found: (f"{found:,}", f"{case.right[at]:,}", name))

    return [part(at, name) for at, name in enumerate(names)]


def _likely(part: Part, found: Sequence[tuple[Case, Any]], failing: int) -> tuple[str, ...]:
    """Return the mistakes that explain the results of all cases; failing: the number of the wrong case."""

    def gives(answer: Any, mistake: Any) -> bool:
        try:
            return part.same(mistake() if callable(mistake) else mistake, answer)
        except Exception:
            return False

    columns = zip(*(part.mistakes(*case.arguments) for case, _ in found), strict=True)
    always = [(column[0][0], [mistake for _, mistake in column]) for column in columns]
    # A mistake may give only part of an answer; that part must be wrong here.
    right = part.of(found[failing][0].right)
    wrong = [(sentence, mistakes) for sentence, mistakes in always if not gives(right, mistakes[failing])]
    answers = [part.of(answer) for _, answer in found]
    off = [not part.same(mine, part.of(case.right)) for mine, (case, _) in zip(answers, found, strict=True)]

    def fits(mistakes: list) -> list[bool]:
        return list(map(gives, answers, mistakes))

    def agreement(mistakes: list) -> int:
        """Return in how many cases a mistake agrees with the answer, or 0 if that may be by chance."""
        given = fits(mistakes)
        # Where they disagree, one of them may be right; the mistake is wrong there if the answer is right.
        agreed, disagreed = sum(map(operator.and_, given, off)), given.count(False)
        return sum(given) if all(given[: failing + 1]) and 2 * agreed >= max(sum(off), disagreed) else 0

    agreements = [(sentence, agreement(mistakes)) for sentence, mistakes in wrong]
    most = max((number for _, number in agreements), default=0)
    return likely(agreements, lambda number: 0 < number == most)


def _reordered(parts: Sequence[Part], answer: Any, right: Any) -> str:
    """Return the cause if the parts of an answer are right but in the wrong order."""
    if (
        type(answer) is not tuple or len(parts) < 2 or len(answer) > 4
    ):  # the fields of a named tuple are accessed by name
        return ""
    fits = (all(part.same(part.of(one), part.of(right)) for part in parts) for one in permutations(answer))
    return "the function returns the right parts in the wrong order" if any(fits) else ""


def _scaled(found: Sequence[tuple[Case, Any]]) -> str:
    """Return the cause if all numbers of all answers are wrong by the same factor; one answer may fit by chance."""
    mine = dict(leaves([answer for _, answer in found]))
    right = dict(leaves([case.right for case, _ in found]))
    return scaled(Difference(mine, right, list(right))) if mine.keys() == right.keys() else ""
