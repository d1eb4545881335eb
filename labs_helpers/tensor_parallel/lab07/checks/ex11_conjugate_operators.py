"""Check exercise 11 of lab 07: f and g, forward and backward, against the results of every collective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Candidates, Wrong, one_thread
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import KEPT
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass, expect_passes, watched
from labs_helpers.tensor_parallel.lab07.checks.rank_group import Group, in_groups

Parts = list[Tensor]  # of each rank
WAYS: dict[str, Callable[[Parts], Parts]] = {  # results that operations on the ranks' tensors can give
    "the input unchanged": lambda parts: parts,
    "the sum over the ranks": lambda parts: [sum(parts)] * len(parts),
    "the ranks' parts joined along the length": lambda parts: [torch.cat(parts, 1)] * len(parts),
    "this rank's part of the sum, split along the length": lambda parts: _cut([sum(parts)] * len(parts), 1),
    "the mean over the ranks": lambda parts: [sum(parts) / len(parts)] * len(parts),
    "the maximum over the ranks": lambda parts: [torch.stack(parts).amax(0)] * len(parts),
    "the ranks' parts joined along the batch": lambda parts: [torch.cat(parts, 0)] * len(parts),
    "the ranks' parts joined along the width": lambda parts: [torch.cat(parts, 2)] * len(parts),
    "the ranks' parts joined along the length in reverse order": lambda parts: [torch.cat(parts[::-1], 1)] * len(parts),
    "this rank's part of the sum, split along the batch": lambda parts: _cut([sum(parts)] * len(parts), 0),
    "this rank's part of the sum, split along the width": lambda parts: _cut([sum(parts)] * len(parts), 2),
    "this rank's part of the mean, split along the length": lambda parts: _cut(
        [sum(parts) / len(parts)] * len(parts), 1
    ),
    "this rank's part of its own input, split along the length": lambda parts: _cut(parts, 1),
    "the input divided by p": lambda parts: [part / len(parts) for part in parts],
    "0": lambda parts: [0 * part for part in parts],
}
ITSELF, SUM, GATHERED, SCATTERED = list(WAYS)[:4]
COLLECTIVES = {ITSELF: "", SUM: "all_reduce", GATHERED: "all_gather", SCATTERED: "reduce_scatter"}
RIGHT = {  # (operator, pass, sequence_parallel) → the way, and why
    ("f", "output", False): (ITSELF, "every rank holds the whole x, and its columns need nothing else"),
    ("f", "gradient", False): (SUM, "each rank's columns contribute to the gradient of the same x"),
    ("g", "output", False): (SUM, "each rank's rows give one term of the sum"),
    ("g", "gradient", False): (ITSELF, "the gradient of a sum is also the gradient of each of its terms"),
    ("f", "output", True): (GATHERED, "columns need all tokens, and each rank holds only some of them"),
    ("f", "gradient", True): (SCATTERED, "each rank's columns contribute to the gradient of all tokens"),
    ("g", "output", True): (
        SCATTERED,
        "each rank's rows give one term of the sum, and a rank continues with its own tokens",
    ),
    ("g", "gradient", True): (GATHERED, "this rank's rows processed all tokens"),
}
APPLY = "f and g are functions: return the apply of each class"
ERRORS = (
    (r"non-static forward|takes \d+ positional argument", "forward(ctx, x) and backward(ctx, grad) are static methods"),
    (
        r"should not be instantiated|object is not callable|cannot be called",
        APPLY,
    ),
    (
        r"returned an incorrect number of gradients",
        "backward returns one gradient for each argument of forward after ctx",
    ),
    (
        r"does not require grad|not have been used in the graph",
        "autograd receives no gradient: backward returns none, or the result does not come from a Function's apply "
        "(autograd cannot differentiate group's methods)",
    ),
    (
        r"returned an invalid gradient",
        "a gradient has the shape of its x; pass the length, dimension 1, to the collectives",
    ),
)


@dataclass(frozen=True)
class Case:
    """A test case with x: (batch, length, width); sequence-parallel, f's x and g's gradient have length / ranks."""

    name: str
    ranks: int
    sequence_parallel: bool
    batch: int = 2
    length: int = 6
    width: int = 5
    groups: int = 1
    dtype: torch.dtype = torch.float32

    @property
    def sizes(self) -> dict[str, int]:
        part = {"length / p": self.length // self.ranks} if self.sequence_parallel and self.ranks > 1 else {}
        return {"batch": self.batch, "length": self.length, "width": self.width} | part


CASES = (
    Case("2 ranks", 2, False, batch=4),
    Case("3 ranks, sequence-parallel", 3, True, batch=3, width=12),
    Case("3 ranks, in float64", 3, False, dtype=torch.float64),
    Case("2 groups of 2 ranks, sequence-parallel", 2, True, batch=4, groups=2, width=8),
    Case("1 rank", 1, False),
    Case("1 rank, sequence-parallel", 1, True),
)


@exercise("07/11", "f and g for autograd", points=25, minutes=25, reference=exercises.conjugate_operators)
def conjugate_operators(student):
    comparison = Comparison(
        "{0} of {1} on rank {2}", advice="draw two ranks with one token each, and write down {where}"
    )
    for case in CASES:
        given = [_given(case, group) for group in range(case.groups)]
        own = [tuple(one[name][rank] for name in one) for one in given for rank in range(case.ranks)]
        with one_thread():
            seen = in_groups(case, student, partial(_on_rank, case), own, ERRORS)
        for tensors, ranks in zip(given, seen, strict=True):
            _judge(case, comparison, tensors, ranks)
        sent = {what: one.listed for what, one in seen[0][0].items()}
        yield f"{case.name}: " + ", ".join(f"{what} {made}" for what, made in sent.items())


def _given(case: Case, group: int) -> dict[str, Parts]:
    """Draw the inputs of f and g on each rank, and the gradients that arrive at their outputs; all are integers."""
    generator, part = torch.Generator().manual_seed(group), case.length // (case.ranks if case.sequence_parallel else 1)

    def draw(length: int, same: bool) -> Parts:
        drawn = torch.randint(-9, 10, (case.ranks, case.batch, length, case.width), generator=generator).to(case.dtype)
        return [drawn[0 if same else rank].clone() for rank in range(case.ranks)]

    plain = not case.sequence_parallel
    lengths = {
        "f": (part, plain),
        "f's grad": (case.length, False),
        "g": (case.length, False),
        "g's grad": (part, plain),
    }
    return {name: draw(*how) for name, how in lengths.items()}


def _on_rank(case: Case, student: Callable, group: Group, *given: Tensor) -> dict[str, Pass]:
    """Return the passes by name, such as 'f's output'; both forward passes come before any backward pass."""
    answer = student(group, case.sequence_parallel)
    if not (isinstance(answer, tuple | list) and len(answer) == 2 and all(map(callable, answer))):
        raise Wrong(case.name, f"rank {group.rank} returned {answer!r:.60}; (f, g), two functions, is asked for")
    passes, kept = {}, []
    inputs = [tensor.requires_grad_() for tensor in given[::2]]
    for name, function, x in zip("fg", answer, inputs, strict=True):
        y, passes[f"{name}'s output"] = watched(group, {"x": x}, function, x)
        kept.append((y, passes[f"{name}'s output"]))
    for name, (y, _), x, grad in reversed(list(zip("fg", kept, inputs, given[1::2], strict=True))):
        if not isinstance(y, Tensor) or y.shape != grad.shape:
            continue  # what is wrong with it is said before
        gradient, one = watched(group, {"grad": grad}, lambda y, *of: torch.autograd.grad(y, *of)[0], y, x, grad)
        passes[f"{name}'s gradient"] = one
        kept.append((gradient, one))
    group.reset()
    if len(passes) == 4:
        for function, x, grad in zip(answer, inputs, given[1::2], strict=True):  # again, with other numbers
            function(x.detach().neg().requires_grad_()).backward(-grad)
    for tensor, one in kept:
        one.compare(tensor)
    return passes


def _judge(case: Case, comparison: Comparison, given: dict[str, Parts], ranks: list[dict[str, Pass]]) -> None:
    """Raise Wrong at the first wrong pass on the ranks of a group."""
    for (name, what, sequence_parallel), (way, why) in RIGHT.items():
        if sequence_parallel != case.sequence_parallel:
            continue
        parts = given[name if what == "output" else f"{name}'s grad"]
        title = f"{name}'s {what}"
        passes = [one[title] for one in ranks]
        right = {what: {name: dict(enumerate(WAYS[way](parts)))}}
        found = {what: {name: {rank: one.returned for rank, one in enumerate(passes)}}}

        def causes(parts=parts, way=way, why=why, name=name, what=what) -> Candidates:
            for other, function in WAYS.items():
                if len(parts) > 1 and other != way:
                    said = f"it is {other}; it should be {way}, because {why}"
                    yield said, lambda function=function: {what: {name: dict(enumerate(function(parts)))}}

        for rank, one in enumerate(passes):
            if not isinstance(one.returned, Tensor):
                none = "the result is not returned" if one.returned is None else ""
                none = APPLY if isinstance(one.returned, torch.autograd.Function) else none
                raise Wrong(case.name, f"rank {rank}: {title} is {one.returned!r:.40}, not a tensor", cause=none)
        comparison.expect(case.name, found, right, causes)
        expect_passes(case.name, title, passes)
        for rank, one in enumerate(passes):
            if one.returned.dtype != case.dtype:
                raise Wrong(
                    case.name, f"rank {rank}: {title} is {one.returned.dtype}, expected {case.dtype}, the dtype of x"
                )
            if one.overwritten:
                raise Wrong(case.name, f"rank {rank}: {title} changed during a later call", cause=KEPT)
        collective = COLLECTIVES[way] if case.ranks > 1 else ""
        if passes[0].calls != ({collective: 1} if collective else {}):
            enough = f"1 × {collective} is enough" if collective else "no collective is needed"
            raise Wrong(case.name, f"{title} is right, but the pass calls {passes[0].listed}; {enough}", cause=why)


def _cut(parts: Parts, dim: int) -> Parts:
    return [part.tensor_split(len(parts), dim)[rank] for rank, part in enumerate(parts)]
