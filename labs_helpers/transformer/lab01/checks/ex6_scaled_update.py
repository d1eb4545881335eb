"""Exercise 6 of lab 01: an update with master weights and a loss scale, step by step, and a training run in float16."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, expect_is_number, expect_tuple, likely
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.scaled_update_cases import CASES, TRAINING, Case, trained
from labs_helpers.transformer.lab01.checks.scaled_update_causes import mistakes
from labs_helpers.transformer.lab01.checks.scaled_update_ways import RIGHT, Way

COUNTING = "weights and masters are right: write down scale and good_steps after each step of this case."
MEMORY = "`weight.data = …` puts another memory under the tensor: weight.copy_(…) writes to the one it has"
GIVEN = "change the tensors that were given, by `-=` or copy_(); `=` gives a name to another one"


@dataclass(frozen=True)
class After:
    """What a step has left: its answer, and copies of the tensors."""

    scale: float
    good: int
    master: list[Tensor]
    weights: list[Tensor]


@exercise("01/6", "a scaled update", points=15, minutes=20, reference=exercises.scaled_update)
def scaled_update(student):
    traces = [played(case, student) for case in CASES]
    for case, trace in zip(CASES, traces, strict=True):
        for number, (found, right) in enumerate(zip(trace, walked(case, RIGHT), strict=False), start=1):
            name = case.name + (f", step {number} of {len(case.steps)}" if len(case.steps) > 1 else "")
            if isinstance(found, Wrong):
                raise Wrong(name, found.found, cause=found.causes)
            if difference := _difference(found, right):
                if not all(gradient.isfinite().all() for gradient in case.steps[number - 1]):
                    difference += ": this step is skipped"
                scale_alone = not _difference(replace(found, scale=right.scale, good=right.good), right)
                advice = COUNTING if scale_alone else "follow the first element by hand, in float32."
                swapped = (found.good, found.scale) == (right.scale, right.good)
                causes = ("the scale comes first in (scale, good_steps)",) if swapped else _causes(case, traces)
                raise Wrong(name, difference, cause=causes, advice=advice)
        yield case.name
    low, skipped = trained(student)
    full, _ = trained(None)
    case = f"{TRAINING} steps of a small network in float16"
    if not abs(low / full - 1) < 0.03:
        advice = "every step above was right; print the scale in each step of a training of yours."
        raise Wrong(case, f"the loss is {low:.4g} in the end, in float32 {full:.4g}", advice=advice)
    yield f"{case}, {skipped} of them skipped: the loss is {low:.4g} in the end, in float32 {full:.4g}"


def played(case: Case, student) -> list[After | Wrong]:
    """What the student's function leaves after each step of a case; last, what was wrong with the call itself."""
    master = [tensor.clone() for tensor in case.master]
    weights = [nn.Parameter(tensor.half()) for tensor in master]
    state: tuple[Any, Any] = (case.scale, case.good)
    trace: list[After | Wrong] = []
    for gradients in case.steps:
        try:
            state = _one_step(case, student, weights, master, gradients, state)
        except Wrong as wrong:
            return [*trace, wrong]
        trace.append(After(*state, *([t.detach().clone() for t in tensors] for tensors in (master, weights))))
    return trace


def walked(case: Case, way: Way) -> list[After]:
    """What a way to make the update leaves after each step of a case."""
    master = [tensor.clone() for tensor in case.master]
    weights = [tensor.half() for tensor in master]
    state, trace = (case.scale, case.good), []
    for gradients in case.steps:
        state = way.step(weights, master, gradients, state, case.lr, case.interval)
        trace.append(After(*state, *([t.clone() for t in tensors] for tensors in (master, weights))))
    return trace


def _one_step(case: Case, student, weights, master, gradients, state) -> tuple[Any, Any]:
    given = {"weights": list(weights), "master": list(master), "gradients": [g.clone() for g in gradients]}
    memory = {name: [tensor.data_ptr() for tensor in tensors] for name, tensors in given.items()}
    try:
        answer = student(*given.values(), *state, case.lr, case.interval)
    except Exception as error:
        leaf = "leaf" in str(error) and isinstance(error, RuntimeError)
        cause = "the weights are a model's parameters: change them under `with torch.no_grad():`" if leaf else ()
        raise Wrong("", describe_error(student, error).found, cause=cause) from error
    for name, before in (("gradients", gradients), ("weights", weights), ("master", master)):
        if len(given[name]) != len(before):
            raise Wrong("", f"the list {name} had {len(before)} tensors, and has {len(given[name])} now")
        for index, (now, old) in enumerate(zip(given[name], before, strict=True)):
            if name == "gradients" and not _same(now, old, 0.0):
                cause = "gradient.div_() and `gradient /= …` change it; `gradient / …` makes another one"
                raise Wrong("", f"gradients[{index}] was changed, and is to stay as it was", cause=cause)
            if name != "gradients" and now is not old:
                raise Wrong("", f"{name}[{index}] is not the tensor any more that was given", cause=GIVEN)
            if now.dtype != (torch.float32 if name == "master" else torch.float16):
                raise Wrong("", f"{name}[{index}] is {now.dtype} now")
            if now.data_ptr() != memory[name][index]:
                cause = MEMORY.replace("weight", "exact") if name == "master" else MEMORY
                raise Wrong("", f"{name}[{index}] has another memory than the tensor that was given", cause=cause)
            if now.requires_grad != (name == "weights"):
                what = "requires no gradients any more" if name == "weights" else "requires gradients now"
                raise Wrong("", f"{name}[{index}] {what}; requires_grad is to stay as it was")
    scale, good = expect_tuple("", tuple(answer) if isinstance(answer, list) else answer, "scale", "good_steps")
    expect_is_number("", "scale", scale)
    expect_is_number("", "good_steps", good)
    return scale, good


def _causes(case: Case, traces: list[list]) -> tuple[str, ...]:
    """The mistakes that leave what was found in all cases; where none does, the only one that does so up to this case
    and in most of the others: there may be a second mistake."""
    pairs = list(zip(CASES, traces, strict=True))
    until = CASES.index(case) + 1

    def leaves(way: Way, case: Case, trace: list) -> bool:
        steps = zip(trace, walked(case, way), strict=False)
        return all(isinstance(found, After) and not _difference(found, right) for found, right in steps)

    def in_how_many(way: Way) -> int:
        if not all(leaves(way, *pair) for pair in reversed(pairs[:until])):  # this case first: it tells most
            return 0
        return until + sum(leaves(way, *pair) for pair in pairs[until:])

    counted = [(sentence, in_how_many(way)) for sentence, way in mistakes()]
    most = likely(counted, lambda count: count > len(CASES) / 2)
    return likely(counted, lambda count: count == len(CASES)) or (most if len(most) == 1 else ())


def _difference(found: After, right: After) -> str:
    """The first thing in which two results differ, in words; '' where they agree up to float32's rounding."""
    for name, rounding in (("master", 1e-6), ("weights", 2.0**-11)):
        for index, (now, expected) in enumerate(zip(getattr(found, name), getattr(right, name), strict=True)):
            if not _same(now, expected, rounding):
                return _where(f"{name}[{index}]", now, expected)
    if found.scale != right.scale:
        return f"the scale is {found.scale:g} afterwards, expected {right.scale:g}"
    if found.good != right.good:
        return f"good_steps is {found.good} afterwards, expected {right.good}"
    return ""


def _same(a: Tensor, b: Tensor, rounding: float) -> bool:
    """Whether two tensors agree up to a rounding relative to b's largest element."""
    a, b = a.double(), b.double()
    largest = b.abs().nan_to_num(0.0, 0.0, 0.0).max().item()
    return torch.allclose(a, b, rtol=rounding, atol=rounding * largest, equal_nan=True)


def _where(name: str, found: Tensor, expected: Tensor) -> str:
    error = (found.double() - expected.double()).abs()
    error = torch.where(found == expected, 0.0, error).nan_to_num(torch.inf, torch.inf)
    at = tuple(int(i) for i in torch.unravel_index(error.argmax(), error.shape))
    values = [f"{tensor[at].item():.9g}" for tensor in (found, expected)]
    return f"{name} has {values[0]} at {list(at)}, expected {values[1]}"
