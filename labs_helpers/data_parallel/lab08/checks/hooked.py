"""Run training steps of exercises 4 and 6 of lab 08, in which hooks average the gradients, on practice ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.data_parallel.lab08.checks import replicas
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import Candidate, Everyone, Groups
from labs_helpers.data_parallel.lab08.checks.gradients import UNREAD, Scopes, Special, expect_means
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.practice.process_groups import ProcessRun, mark


class Pass(NamedTuple):
    """A backward pass. own: gradients per rank. late: per rank, the names that arrive last. sync: whether it sends."""

    own: Everyone
    late: Sequence[Sequence[str]] = ()
    sync: bool = True


class Step(NamedTuple):
    """A training step: the passes, finish(), and zero_grad(set_to_none)."""

    passes: Sequence[Pass]
    set_to_none: bool = True


class Training(NamedTuple):
    """Training steps of a model with these parts. buckets: names per message, in the order of sending.

    stuck: the cause if collectives do not match. later: by the number of completed steps, the causes of an error then.
    """

    name: str
    size: int
    parts: Sequence[replicas.Part]
    steps: Sequence[Step]
    buckets: Sequence[Sequence[str]]
    groups: Groups | None = None
    stuck: str | Sequence[str] = "the calls depend on the rank"
    later: Mapping[int, Sequence[str]] = {}


def train(
    training: Training,
    student: Callable,
    wrap: Callable[..., tuple[Callable, Any]],
    errors: Sequence[tuple[str, str]],
    again: str = "",
) -> ProcessRun:
    """Run the steps. run.results has, per rank and step, (.grad by name, the address of each one's memory).

    wrap(answer, model, group): calls this rank's copy of the answer and returns (finish, no_sync). again: the cause of
    an error in a later step, if the answer has registered more hooks since `wrap` returned. Raises Wrong.
    """
    done = [0] * training.size  # completed steps
    models: list[tuple[torch.nn.Module, int]] = []  # each with its number of hooks

    def on_rank(answer, group, rank):
        model = replicas.replica(training.parts)
        for name, p in replicas.trained(model).items():  # registered before the student's hooks, so that it runs first
            p.register_post_accumulate_grad_hook(lambda _, name=name: mark(group, f"arrived {name}"))
        before = replicas.copies(model)
        finish, no_sync = wrap(answer, model, group)
        models.append((model, _hooks(model)))
        left = []
        for number, step in enumerate(training.steps):
            mark(group, f"step {number}")
            for one in step.passes:
                with nullcontext() if one.sync else no_sync():
                    replicas.backward(model, one.own[rank], one.late[rank] if one.late else ())
            mark(group, "backward ends")
            finish()
            mark(group, "finished")
            left.append((replicas.taken(model), replicas.places(model)))
            done[rank] = number + 1
            model.zero_grad(set_to_none=step.set_to_none)
        replicas.expect_kept(model, before)
        return left

    try:
        own = [(rank,) for rank in range(training.size)]
        settings = {"groups": training.groups, "stuck": training.stuck, "errors": errors}
        return on_ranks(training.name, student, on_rank, own, **settings)
    except Wrong as wrong:
        if any(done) and training.later and re.search("TouchedTooEarly|IndexError", wrong.found):
            more = again and any(_hooks(model) > before for model, before in models)
            cause = again if more else training.later.get(max(done), ())
            number = min(max(done) + 1, len(training.steps))
            raise Wrong(f"{training.name}, step {number}", wrong.found, cause=cause) from None
        raise


def _hooks(model: torch.nn.Module) -> int:
    return sum(len(getattr(p, "_post_accumulate_grad_hooks", None) or ()) for p in model.parameters())


def sums_of(passes: Sequence[Pass]) -> list[dict[str, torch.Tensor | None]]:
    """Return the sum of each rank's gradients over all passes; None if a parameter has no gradient in any."""

    def added(some):
        return sum(one for one in some if one is not None) if any(one is not None for one in some) else None

    ranks = range(len(passes[0].own))
    return [{name: added([one.own[rank][name] for one in passes]) for name in passes[0].own[rank]} for rank in ranks]


def expect_steps(
    comparison: Comparison,
    training: Training,
    run: ProcessRun,
    special: Callable[[int], Special],
    more: Callable[[int], Iterable[Candidate]] = lambda number: (),
    *,
    scopes: Scopes | None = None,
    unread: str = UNREAD,
) -> None:
    """Raise Wrong unless every step leaves the means over the groups.

    special, more: functions of the step's number that return the arguments of `expect_means`.
    """
    for number, step in enumerate(training.steps):
        name, found = f"{training.name}, step {number + 1}", [left[number][0] for left in run.results]
        own = sums_of(step.passes)
        before = sums_of(training.steps[number - 1].passes) if number else None
        known = {"before": before, "scopes": scopes, "special": special(number), "more": more(number), "unread": unread}
        expect_means(comparison, name, run, found, own, training.groups, training.parts, **known)
