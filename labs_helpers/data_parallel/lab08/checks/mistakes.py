"""Answers without communication: a mistake is named where it gives what was found in every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import NamedTuple

from labs_helpers.course.verdict import Wrong, describe_error, likely


class Case(NamedTuple):
    name: str
    arguments: tuple
    right: object
    line: str = ""  # of a check, where it is right; one without stands with others


def judge(
    student: Callable,
    call: Callable,
    cases: Sequence[Case],
    mistakes: Sequence[tuple[str, Callable]],
    same: Callable[[object, object], bool],
    told: Callable[[Case, object], tuple[str, str]],
    errors: Sequence[tuple[str, str]] = (),
    advice: str = "",
) -> Iterator[str]:
    """A line per case; raises Wrong at the first that is not right.

    call: the student's function with what it returns made comparable. mistakes: (sentence, a function with the
    mistake). told: what was found and what is expected, in words. errors: (pattern, cause) of the answer's exceptions.
    """
    found, failed = [], None
    for case in cases:
        given = deepcopy(case.arguments)
        try:
            found.append(call(*given))
        except Exception as error:
            failed = describe_error(student, error, case.name, errors)
            break
        if given != case.arguments:
            found.pop()
            failed = Wrong(
                case.name,
                "what it is given has to stay as it is",
                cause="sort() and pop() change a list; sorted() makes one",
            )
            break
    for case, answer in zip(cases, found, strict=False):
        if not same(answer, case.right):
            run = [(one.arguments, given) for one, given in zip(cases, found, strict=False)]
            causes = likely(mistakes, lambda function, run=run: _gives(function, run, same))
            got, expected = told(case, answer)
            raise Wrong(case.name, got, expected, cause=causes, advice=advice)
        if case.line:
            yield case.line
    if failed:
        raise failed


def _gives(function: Callable, run: Sequence[tuple], same: Callable) -> bool:
    try:
        return all(same(function(*deepcopy(arguments)), answer) for arguments, answer in run)
    except Exception:
        return False
