"""Judge a pure function by its cases; the mistakes to look for are functions of the same arguments.

    yield from judge(student, student, cases, MISTAKES, told=told)

A mistake is named where it gives what the answer gave in every case, and is wrong in the one that is not right.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from labs_helpers.course.verdict.causes import likely
from labs_helpers.course.verdict.errors import describe_error
from labs_helpers.course.verdict.wrong import Wrong


class Case(NamedTuple):
    """One call. right: what it returns. line: the check's line about it; a case without one counts silently."""

    name: str
    arguments: tuple
    right: Any
    line: str = ""


def judge(
    student: Callable,
    call: Callable,
    cases: Sequence[Case],
    mistakes: Sequence[tuple[str, Callable]],
    *,
    told: Callable[[Case, Any], tuple[str, str]],
    same: Callable[[Any, Any], bool] = operator.eq,
    errors: Sequence[tuple[str, str]] = (),
    advice: str = "",
) -> Iterator[str]:
    """Yield the line of each case; raise Wrong at the first that is not right.

    call: the student's function, with its result made comparable. mistakes: pairs of a sentence and a function that
    makes the mistake. told: what was found and what is expected, in words. errors: rows of a pattern of the answer's
    error messages and its cause. Raises Wrong also for an error and for changed arguments.
    """
    found, failed = [], None
    for case in cases:
        given = deepcopy(case.arguments)
        try:
            answer = call(*given)
        except Exception as error:
            failed = describe_error(student, error, case.name, errors)
            break
        if given != case.arguments:
            cause = "sort() and pop() change a list; sorted() makes one"
            failed = Wrong(case.name, "what it is given has to stay as it is", cause=cause)
            break
        found.append((case, answer))
    for case, answer in found:
        if not same(answer, case.right):
            # A mistake may say less than an answer does; what it says has to be wrong here.
            wrong = [one for one in mistakes if not _gives(one[1], [(case, case.right)], same)]
            causes = likely(wrong, lambda mistake: _gives(mistake, found, same))
            raise Wrong(case.name, *told(case, answer), cause=causes, advice=advice)
        if case.line:
            yield case.line
    if failed:
        raise failed


def _gives(mistake: Callable, found: Sequence[tuple[Case, Any]], same: Callable) -> bool:
    try:
        return all(same(mistake(*deepcopy(case.arguments)), answer) for case, answer in found)
    except Exception:
        return False
