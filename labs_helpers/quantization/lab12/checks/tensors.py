"""Compare an answer's tensors with the right ones, case by case, where an exercise needs no kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from labs_helpers.course.verdict import Wrong, describe_error, expect_tuple
from labs_helpers.course.verdict.left_alone import Given, expect_new_results
from labs_helpers.course.verdict.messages import Errors
from labs_helpers.course.verdict.trees import Bound, Comparison

Mistakes = Sequence[tuple[str, Callable]]
Places = Sequence[tuple[str, Callable[..., torch.Tensor]]]


def relative(error: float) -> Bound:
    """Return a bound of `error` times each right number; integers must be equal."""

    def bound(found: Any, right: np.ndarray) -> Any:
        return error * np.abs(right) if right.dtype.kind == "f" else 0.0

    return bound


def tensor_cases(
    student: Callable,
    cases: Iterable[tuple],
    right: Callable,
    mistakes: Mistakes,
    names: Sequence[str],
    *,
    places: Places = (),
    error: float = 2.0**-21,
    forms: Callable[..., str] = lambda part, found, expected: "",
    errors: Errors = (),
    advice: str = "compute {where} by hand and follow the code step by step.",
    call: Callable | None = None,
) -> Iterator[str]:
    """Yield the name of each of `cases`, (name, *arguments), in which the answer equals right(*arguments).

    names: of the parts of the answer, one of which is not in a tuple. mistakes: pairs of a sentence and a function of
    the arguments that makes the mistake. places: pairs of a sentence and a function of the arguments that returns a
    mask of rows, (N, 1), or of columns, (1, K); the sentence is named if all wrong elements are there. error: the
    largest relative error. forms(part, found, expected): the cause of a tensor with a wrong shape or dtype. call: the
    student's function with a comparable result. A second call must return new tensors.
    """
    comparison = Comparison("{0}", bound=relative(error), slack=1e-5, advice=advice)
    for number, (case, *arguments) in enumerate(cases):
        given = Given(student, tuple(arguments), {})
        answer = _call(student, call or student, case, arguments, errors)
        given.expect_left_alone(case, answer)
        found, expected = (_named(case, value, names) for value in (answer, right(*arguments)))
        _expect_order(case, found, expected)
        for part, wanted in expected.items():
            _expect_form(case, part, found[part], wanted, forms)

        def causes(case=case, arguments=arguments, found=found, expected=expected) -> Iterator[tuple[str, Any]]:
            for sentence, mistake in mistakes:
                yield sentence, _named(case, mistake(*arguments), names)
            for sentence, place in places:
                mask = place(*arguments)
                masks = {part: mask if right.ndim == 2 else mask.flatten() for part, right in expected.items()}
                yield sentence, {part: torch.where(masks[part], found[part], expected[part]) for part in names}

        comparison.expect(case, found, expected, causes)
        if number == 0:
            expect_new_results(case, answer, partial(student, *arguments))
        yield case


def _call(student: Callable, call: Callable, case: str, arguments: Sequence, errors: Errors) -> Any:
    try:
        return call(*arguments)
    except (Exception, SystemExit) as error:
        raise describe_error(student, error, case, errors) from error


def _named(case: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    parts = expect_tuple(case, value, *names) if len(names) > 1 else (value,)
    return dict(zip(names, parts, strict=True))


def _expect_order(case: str, found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise Wrong if the parts have the right shapes and dtypes, but in another order."""
    forms = [
        [(getattr(x, "shape", ()), getattr(x, "dtype", type(x))) for x in tree.values()] for tree in (found, expected)
    ]
    if forms[0] != forms[1] and sorted(map(str, forms[0])) == sorted(map(str, forms[1])):
        raise Wrong(case, "the parts are in the wrong order", cause=f"return ({', '.join(expected)}), in this order")


def _expect_form(case: str, part: str, found: Any, wanted: Any, forms: Callable[..., str]) -> None:
    """Raise Wrong for anything but a tensor of the right shape and dtype, if a tensor is wanted."""
    if not isinstance(wanted, torch.Tensor):
        return
    if not isinstance(found, torch.Tensor):
        cause = "a return is missing" if found is None else ""
        raise Wrong(case, f"{part} is {found!r:.60}; return a tensor", cause=cause)
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        shown = [f"{str(one.dtype)[6:]} {tuple(one.shape)}" for one in (found, wanted)]
        raise Wrong(case, *shown, where=part, cause=forms(part, found, wanted))
