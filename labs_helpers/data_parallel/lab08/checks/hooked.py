"""What exercises 4 and 6 of lab 08 share: training steps on practice ranks, and what was sent when in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch

from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.replicas import (
    Gradients,
    Part,
    backward,
    copies,
    expect_kept,
    places,
    replica,
    taken,
    trained,
)
from labs_helpers.practice.process_groups import Called, ProcessRun, mark

IN_FINISH = "all-reduces are started in finish(), after backward: they belong into send()"


class Pass(NamedTuple):
    """A backward pass. own: each rank's gradients. late: of each rank, what arrives last. sync: it sends."""

    own: Sequence[Gradients]
    late: Sequence[Sequence[str]] = ()
    sync: bool = True


class Step(NamedTuple):
    """passes, finish(), and then zero_grad(set_to_none)."""

    passes: Sequence[Pass]
    set_to_none: bool = True


class Arrival(NamedTuple):
    """What a rank sent after the gradient of `name` had arrived and before the next; name '': in finish()."""

    name: str
    sent: list[Called]


def train(
    case: str,
    student: Callable,
    wrap: Callable[..., tuple[Callable, Any]],
    parts: Sequence[Part],
    steps: Sequence[Step],
    *,
    groups: Sequence[Sequence[int]] | None = None,
    stuck: str | Sequence[str] = "",
    errors: Sequence[tuple[str, str]] = (),
    later: Mapping[int, Sequence[str]],
    again: str = "",
) -> ProcessRun:
    """Run the steps; run.results: of each rank, for each step, (.grad by name, the memory that each lies in).

    wrap(model, group) → (finish, no_sync), made by the student's function. stuck: the cause of collectives that do not
    match; later: of whatever is raised after so many steps that went well; again: of the same, where more hooks are
    registered by then than `wrap` has left. Raises Wrong."""
    size = len(steps[0].passes[0].own)
    done = [0] * size  # steps
    models: list[tuple[torch.nn.Module, int]] = []  # with their hooks

    def on_rank(_, group, rank):
        model = replica(parts)
        for name, p in trained(model).items():  # before the student's own hooks, so that it comes first
            p.register_post_accumulate_grad_hook(lambda _, name=name: mark(group, f"arrived {name}"))
        before = copies(model)
        finish, no_sync = wrap(model, group)
        models.append((model, _hooks(model)))
        left = []
        for number, step in enumerate(steps):
            mark(group, f"step {number}")
            for one in step.passes:
                with nullcontext() if one.sync else no_sync():
                    backward(model, one.own[rank], one.late[rank] if one.late else ())
            mark(group, "backward ends")
            finish()
            mark(group, "finished")
            left.append((taken(model), places(model)))
            done[rank] = number + 1
            model.zero_grad(set_to_none=step.set_to_none)
        expect_kept(model, before)
        return left

    try:
        own = [(rank,) for rank in range(size)]
        return on_ranks(case, student, on_rank, own, groups=groups, stuck=stuck, errors=errors)
    except Wrong as wrong:
        if any(done) and later and re.search("TouchedTooEarly|IndexError", wrong.found):
            more = again and any(_hooks(model) > before for model, before in models)
            cause = again if more else later.get(max(done), ())
            raise Wrong(f"{case}, step {min(max(done) + 1, len(steps))}", wrong.found, cause=cause) from None
        raise


def _hooks(model: torch.nn.Module) -> int:
    return sum(len(getattr(p, "_post_accumulate_grad_hooks", None) or ()) for p in model.parameters())


def arrivals(run: ProcessRun, rank: int) -> list[list[Arrival]]:
    """What a rank sent when, step by step."""
    steps: list[list[Arrival]] = []
    for event in run.log:
        if event.rank != rank:
            continue
        if event.call is None:
            if event.what.startswith("step"):
                steps.append([])
            elif event.what.startswith("arrived"):
                steps[-1].append(Arrival(event.what.removeprefix("arrived "), []))
            elif event.what == "backward ends":
                steps[-1].append(Arrival("", []))
        elif event.what == "start" and steps and steps[-1]:
            steps[-1][-1].sent.append(event.call)
    return steps


def expect_all_reduces(case: str, right: str, sent: Sequence[Called], of: str) -> None:
    """Raise Wrong where something else than all-reduces was sent. right: what is right, and the rank; of: for what."""
    if names := sorted({call.name for call in sent} - {"all_reduce", "all_reduce_coalesced"}):
        raise Wrong(case, f"{right} calls {', '.join(names)}", cause=f"one all-reduce per {of} is enough")


def expect_asynchronous(case: str, run: ProcessRun) -> None:
    """Raise Wrong where backward waits for a collective, or nobody waits for one."""
    for rank in range(len(run.results)):
        right = f"the values are right, but rank {rank}"
        blocking = [call for call in run.of(rank) if not call.asynchronous]
        within = [call for step in range(9) for call in run.waited_between(rank, f"step {step}", "backward ends")]
        if blocking or within:
            cause = "async_op=True is missing" if blocking else "wait() is called in the hook; it belongs into finish()"
            if not within and not any(arrival.sent for step in arrivals(run, rank) for arrival in step[:-1]):
                raise Wrong(case, f"{right} sends nothing before backward ends: nothing overlaps", cause=IN_FINISH)
            waits = "waits for an all-reduce before backward goes on: nothing overlaps"
            raise Wrong(case, f"{right} {waits}", cause=cause)
    asked = {event.call for event in run.log if event.what == "wait"}
    if left := [call for call in run.calls if call.asynchronous and call not in asked]:
        cause = (
            "a handle's wait() was not called; is_completed() only asks, and on a GPU nothing else makes the next step "
            "wait"
        )
        raise Wrong(case, f"the values are right, but nobody waits for {left[0]} of rank {left[0].rank}", cause=cause)
