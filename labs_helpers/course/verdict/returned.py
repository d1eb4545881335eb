"""Check the form of a returned value before its parts are compared."""

from collections.abc import Callable, Sequence
from typing import Any

from labs_helpers.course.verdict.number import expect_is_number
from labs_helpers.course.verdict.wrong import Wrong


def expect_tuple(case: str, answer, *names: str) -> tuple:
    """Return `answer`, a tuple or list with one part for each of `names`, as a tuple; otherwise raise Wrong."""
    if isinstance(answer, (tuple, list)) and len(answer) == len(names):
        return tuple(answer)
    cause = "a return is missing" if answer is None else ""
    raise Wrong(case, f"returned {answer!r:.80}, expected ({', '.join(names)})", cause=cause)


def none_returned(of_ranks: Sequence, what: str = "a return is missing") -> str:
    """Return the cause if a rank returned None: `what`, unless another rank returned something."""
    return what if all(one is None for one in of_ranks) else "every rank must return it, not only some of them"


def expect_order(case: str, parts: tuple, right: tuple, *names: str) -> None:
    """Raise Wrong if `parts`, or their types, are those of `right`, called `names`, in the wrong order."""
    if parts != right and sorted(map(repr, parts)) == sorted(map(repr, right)):
        shown = ", ".join(part.__name__ if isinstance(part, type) else f"{part!r:.40}" for part in parts)
        raise Wrong(case, f"returned ({shown})", cause=f"the order is ({', '.join(names)}).")


def expect_list(case: str, answer, kind: str, fits: Callable[[Any], bool]) -> list:
    """Return `answer`, a list or tuple whose elements fit, as a list; otherwise raise Wrong. kind: 'a list of …'."""
    if isinstance(answer, (tuple, list)) and all(map(fits, answer)):
        return list(answer)
    cause = "a return is missing" if answer is None else ""
    raise Wrong(case, f"returned {answer!r:.60} instead of {kind}", cause=cause)


def numbers_of(answer: Callable, *names: str) -> Callable[..., tuple]:
    """Return the function `answer`, but it raises Wrong unless its value has one number for each of `names`."""

    def call(*arguments: Any) -> tuple:
        numbers = expect_tuple("", answer(*arguments), *names)
        for name, number in zip(names, numbers, strict=True):
            expect_is_number("", name, number)
        return numbers

    return call
