"""Judge a pure function by its cases; the mistakes to look for are functions of the same arguments.

    yield from judge(student, student, cases, MISTAKES, told=told)

A mistake is named where it gives what the answer gave in every case, or else in those up to the first that is wrong and
in half of those that are wrong: one case alone may fit by chance. An answer of several parts is judged part by part,
and each has mistakes of its own:

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
from typing import Any, NamedTuple

from labs_helpers.course.verdict.causes import Candidates, likely
from labs_helpers.course.verdict.errors import describe_error
from labs_helpers.course.verdict.messages import Errors
from labs_helpers.course.verdict.tree_causes import scaled
from labs_helpers.course.verdict.trees import Difference, leaves
from labs_helpers.course.verdict.wrong import Wrong

Otherwise = Callable[["Case", Any], "Sequence[str] | str"]


class Case(NamedTuple):
    """One call. right: what it returns. line: the check's line about it; a case without one counts silently.

    errors: rows of a pattern of error messages and what it means in this case alone."""

    name: str
    arguments: tuple
    right: Any
    line: str = ""
    errors: Errors = ()


class Part(NamedTuple):
    """Something that an answer says, and that is compared by itself.

    of: takes it out of an answer. mistakes: of the arguments; yields pairs of a sentence and what this part would be,
    or a function that returns that: the same sentences in the same order, whatever the arguments. told: what was found
    and what is expected, in words, and maybe where. otherwise: the cause where no mistake fits.
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
    advice: str = "",
) -> Iterator[str]:
    """Yield the line of each case; raise Wrong at the first whose answer is not right, as `judge_parts` does."""

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
    advice: str = "",
) -> Iterator[str]:
    """Yield the line of each case; raise Wrong at the first part of the first case that is not right.

    call: the student's function, with its result made comparable. errors: rows of a pattern of the answer's error
    messages and its cause. otherwise: the cause where no mistake fits. Raises Wrong also for an error and for changed
    arguments.
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
            cause = "sort() and pop() change a list; sorted() makes one"
            failed = Wrong(case.name, "what it is given has to stay as it is", cause=cause)
            break
        found.append((case, answer))
    for number, (case, answer) in enumerate(found, start=1):
        for part in parts:
            if not part.same(value := part.of(answer), part.of(case.right)):
                causes = _likely(part, found, number - 1) or part.otherwise(case, value) or otherwise(case, value)
                causes = causes or _reordered(parts, answer, case.right) or _scaled(answer, case.right)
                raise Wrong(case.name, *part.told(case, value), cause=causes, advice=advice)
        if case.line:
            yield case.line
    if failed:
        raise failed


def _likely(part: Part, found: Sequence[tuple[Case, Any]], failing: int) -> tuple[str, ...]:
    """The mistakes that give what was found in every case; failing: the number of the one that is not right."""

    def gives(answer: Any, mistake: Any) -> bool:
        try:
            return part.same(mistake() if callable(mistake) else mistake, answer)
        except Exception:
            return False

    columns = zip(*(part.mistakes(*case.arguments) for case, _ in found), strict=True)
    always = [(column[0][0], [mistake for _, mistake in column]) for column in columns]
    # A mistake may say less than an answer does; what it says has to be wrong here.
    right = part.of(found[failing][0].right)
    wrong = [(sentence, mistakes) for sentence, mistakes in always if not gives(right, mistakes[failing])]
    answers = [part.of(answer) for _, answer in found]
    off = [not part.same(mine, part.of(case.right)) for mine, (case, _) in zip(answers, found, strict=True)]

    def fits(mistakes: list) -> list[bool]:
        return list(map(gives, answers, mistakes))

    def often(mistakes: list) -> bool:
        given = fits(mistakes)
        return all(given[: failing + 1]) and 2 * sum(map(operator.and_, given, off)) >= sum(off)

    return likely(wrong, lambda mistakes: all(fits(mistakes))) or likely(wrong, often)


def _reordered(parts: Sequence[Part], answer: Any, right: Any) -> str:
    """The cause where the parts of an answer are right, in another order."""
    if type(answer) is not tuple or len(parts) < 2 or len(answer) > 4:  # fields of a named tuple have no order
        return ""
    fits = (all(part.same(part.of(one), part.of(right)) for part in parts) for one in permutations(answer))
    return "what is returned is right, in another order" if any(fits) else ""


def _scaled(answer: Any, right: Any) -> str:
    """The cause where all numbers of an answer are wrong by one factor."""
    found, wanted = dict(leaves(answer)), dict(leaves(right))
    return scaled(Difference(found, wanted, list(wanted))) if found.keys() == wanted.keys() else ""
