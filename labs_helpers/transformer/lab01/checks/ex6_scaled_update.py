"""Check exercise 6 of lab 01: an update with master weights and a loss scale, step by step, and a training run in
float16."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Candidates, Wrong, describe_error, expect_is_number, expect_tuple
from labs_helpers.course.verdict.trees import Comparison, Difference
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.scaled_update_cases import CASES, TRAINING, Case, trained
from labs_helpers.transformer.lab01.checks.scaled_update_mistakes import MISTAKES, way

ADVICE = "follow the first element by hand, in float32; write down scale and good_steps after each step of this case."
MEMORY = "`{0}.data = …` replaces the tensor's memory: {0}.copy_(…) writes to the existing memory"
GIVEN = "change the given tensors with `-=` or copy_(); `=` binds the name to a new tensor"
LEAF = (r"^RuntimeError: .*leaf", "the weights are a model's parameters: change them under `with torch.no_grad():`")
ROUNDED = {torch.float32: 1e-6, torch.float16: 2.0**-11}  # of a tensor's largest element


def bound(found: Any, right: np.ndarray) -> float:
    return ROUNDED.get(getattr(found, "dtype", None), 0.0) * np.abs(right[np.isfinite(right)]).max(initial=0.0)


def right_parts(difference: Difference) -> str:
    """Return where to look if the tensors, or scale and good_steps, are right after every step."""
    wrong = {path[1] for path in difference.wrong}
    if wrong == {"the"}:
        return "all tensors are right; scale and good_steps are wrong after a good step or a skipped one"
    if wrong == {"weights"}:
        return "masters, scale and good_steps are right: the weights are the masters, rounded to float16"
    return "" if "the" in wrong else "scale and good_steps are right; the change of the masters is wrong"


@exercise("01/6", "a scaled update", points=15, minutes=20, reference=exercises.scaled_update)
def scaled_update(student):
    comparison = Comparison("{1} {2} after step {0}", bound=bound, otherwise=[right_parts], advice=ADVICE)
    traces = [played(case, partial(checked, student)) for case in CASES]

    @cache
    def likely() -> Candidates:
        """Return the mistakes that produce what was found in all cases; if none does, all of them, since a second
        one may be present."""
        return [row for row in MISTAKES if all(map(partial(leaves, row[1]), CASES, traces))] or MISTAKES

    def leaves(mistake: Callable, case: Case, trace: tuple) -> bool:
        return comparison.same(trace[1], played(case, mistake)[1])

    def causes(case: Case, steps: Iterable[int]) -> Iterator[tuple[str, Any]]:
        for sentence, mistake in likely():
            yield sentence, partial(after, case, mistake, steps)

    for case, (wrong, found) in zip(CASES, traces, strict=True):
        comparison.expect(case.name, found, after(case, way, found), partial(causes, case, found))
        if wrong:
            step = f", step {len(found) + 1} of {len(case.steps)}" if len(case.steps) > 1 else ""
            raise Wrong(case.name + step, wrong.found, cause=wrong.causes)
        yield case.name
    low, skipped = trained(student)
    full, _ = trained(None)
    case = f"{TRAINING} steps of a small network in float16"
    if not abs(low / full - 1) < 0.03:
        advice = "every step above was right; train a network yourself and print the scale in each step."
        raise Wrong(case, f"the loss is {low:.4g} in the end, in float32 {full:.4g}", advice=advice)
    yield f"{case}, {skipped} of them skipped: the loss is {low:.4g} in the end, in float32 {full:.4g}"


def after(case: Case, update: Callable, steps: Iterable[int]) -> dict[int, dict]:
    """Return what `update` leaves after `steps` of a case."""
    trace = played(case, update)[1]
    return {step: trace[step] for step in steps}


def played(case: Case, update: Callable) -> tuple[Wrong | None, dict[int, dict]]:
    """Return the fault of a call, if any, and what `update` leaves after each earlier step of a case."""
    master = [tensor.clone() for tensor in case.master]
    weights = [nn.Parameter(tensor.half()) for tensor in master]
    scale, good, trace = case.scale, case.good, {}
    for step, gradients in enumerate(case.steps, start=1):
        try:
            scale, good = update(weights, master, gradients, scale, good, case.lr, case.interval)
        except Wrong as wrong:
            return wrong, trace
        tensors = {"master": master, "weights": weights}
        left = {name: [t.detach().clone() for t in some] for name, some in tensors.items()}
        trace[step] = left | {"the": {"scale": scale, "good_steps": good}}
    return None, trace


def checked(student, weights, master, gradients, scale, good, lr, interval) -> tuple[Any, Any]:
    """Return the result of `student`. Raise Wrong if it is no state, or if lists, memory or gradients were changed."""
    given = {"weights": list(weights), "master": list(master), "gradients": [g.clone() for g in gradients]}
    memory = {name: [tensor.data_ptr() for tensor in tensors] for name, tensors in given.items()}
    try:
        answer = student(*given.values(), scale, good, lr, interval)
    except Exception as error:
        raise describe_error(student, error, errors=[LEAF]) from error
    for name, before in (("gradients", gradients), ("weights", weights), ("master", master)):
        if len(given[name]) != len(before):
            raise Wrong("", f"the list {name} had {len(before)} tensors, and has {len(given[name])} now")
        for index, (now, old) in enumerate(zip(given[name], before, strict=True)):
            one = f"{name}[{index}]"
            if name == "gradients":
                if not torch.equal(now.nan_to_num(), old.nan_to_num()):
                    cause = "gradient.div_() and `gradient /= …` change it; `gradient / …` creates a new tensor"
                    raise Wrong("", f"{one} was changed, but must stay the same", cause=cause)
                continue
            if now is not old:
                raise Wrong("", f"{one} is no longer the tensor that was given", cause=GIVEN)
            if now.dtype != (torch.float32 if name == "master" else torch.float16):
                raise Wrong("", f"{one} is {now.dtype} now")
            if now.data_ptr() != memory[name][index]:
                cause = MEMORY.format("exact" if name == "master" else "weight")
                raise Wrong("", f"{one} no longer uses the memory of the tensor that was given", cause=cause)
            if now.requires_grad != (name == "weights"):
                what = "no longer requires gradients" if name == "weights" else "requires gradients now"
                raise Wrong("", f"{one} {what}; requires_grad must not change")
    scale, good = expect_tuple("", tuple(answer) if isinstance(answer, list) else answer, "scale", "good_steps")
    expect_is_number("", "scale", scale)
    expect_is_number("", "good_steps", good)
    return scale, good
