"""What exercises 2 and 3 of lab 08 share: replicas with gradients, averaged on practice ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import torch

from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import ON_ONE, SENTENCES
from labs_helpers.data_parallel.lab08.checks.gradients import expect_means, means
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.replicas import (
    FROZEN,
    IDLE,
    MIXED,
    PLAIN,
    TIED,
    TRANSPOSED,
    UNUSED,
    Part,
    draw,
    fill,
    replica,
    taken,
)
from labs_helpers.practice.process_groups import ProcessRun


class Case(NamedTuple):
    name: str
    size: int
    parts: Sequence[Part]
    stuck: str = (
        "which collective is called depends on the rank: an `if` with the rank in it, or a set, whose order is any"
    )
    groups: Sequence[Sequence[int]] | None = None
    stale: bool = False  # what is frozen has a .grad from before it was
    infinite: bool = False  # the last rank's first gradient begins with an infinite number


ABSENT = (
    "a rank that has not used a parameter skips it or comes to it in another place, and the others wait for it or "
    "add something else to it: it sends zeros, in the same order"
)
FROZEN_STUCK = "a frozen parameter is not sent: requires_grad tells"
CASES = (
    Case("3 ranks", 3, PLAIN),
    Case("4 ranks, a parameter that lies transposed", 4, TRANSPOSED),
    Case("a frozen parameter", 2, FROZEN, FROZEN_STUCK),
    Case("a weight that two layers share", 3, TIED),
    Case("parameters that ranks 1 and 3 have not used", 4, UNUSED, ABSENT),
    Case("a parameter that no rank has used", 2, IDLE, ABSENT),
    Case("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, PLAIN, groups=[(4, 0, 2), (3, 1)]),
    Case("a parameter that was frozen after some steps", 2, FROZEN, FROZEN_STUCK, stale=True),
    Case("a gradient that has overflowed on rank 1", 2, PLAIN, infinite=True),
    Case("1 rank", 1, (*TIED, TRANSPOSED[2])),
)
OVERFLOWN = "what has overflowed on one rank has to reach all: by it a step is left out, as lab 01's loss scaler does"
MIXED_CASE = Case("three dtypes", 3, MIXED)
HALF_USED = tuple(part._replace(kind="unused") if part.name.startswith("norm") else part for part in MIXED)
ZEROS = "zeros in place of a .grad that is None have its parameter's dtype: torch.zeros_like(parameter)"
DTYPES_CASE = Case("dtypes, of which rank 1 has not used two", 3, HALF_USED, ZEROS)
TWICE = (
    "the weight that two layers share is sent twice: model.parameters() has it once, modules "
    "and state_dict() have it twice"
)
SPECIAL = {
    (
        "the parameters that not every rank has used",
        "none",
    ): "a .grad that is None is skipped; it counts as 0, and gets the mean",
    (
        "the parameter that no rank has used",
        "none",
    ): "no rank has used it: the mean of nothing but zeros is 0, and .grad is set to it",
}


def on_replicas(case: Case, student: Callable) -> ProcessRun:
    """One call on every rank; raises Wrong unless all gradients are the means. run.results: what is left in each .grad
    as the memory that it lies in."""
    own = [draw(case.parts, rank) for rank in range(case.size)]
    if case.infinite:
        own[-1][case.parts[0].name].view(-1)[0] = torch.inf
    given = [(rank, case.parts, one, case.stale) for rank, one in enumerate(own)]
    run = on_ranks(case.name, student, _call, given, groups=case.groups, stuck=case.stuck)
    for members in case.groups or [tuple(range(case.size))]:
        for rank in members:
            if run.results[rank][1]:
                raise Wrong(
                    case.name,
                    f"rank {rank}: {run.results[rank][1]} has changed",
                    cause="gradients are averaged, in .grad; the parameters themselves stay",
                )
        found = [run.results[rank][0] for rank in members]
        for rank, grads in enumerate(found if case.infinite else ()):
            first = grads[case.parts[0].name]
            if first is not None and first.shape == case.parts[0].shape and first.view(-1)[0].isfinite():
                text = (
                    f"rank {rank}: {case.parts[0].name}.grad begins with {first.view(-1)[0]:.4g}, and rank 1's with inf"
                )
                raise Wrong(case.name, text, cause=OVERFLOWN)
        world = own if case.groups else None
        sentences = SENTENCES | (ON_ONE if any(call.name == "reduce" for call in run.calls) else {})
        mine = [own[rank] for rank in members]
        expect_means(
            case.name,
            found,
            mine,
            case.parts,
            world=world,
            special=SPECIAL,
            sentences=sentences,
            extra=_misplaced(mine, run.results[members[0]][3]),
        )
    return run


def _call(student, group, rank, parts, own, stale):
    model = replica(parts)
    fill(model, own)
    frozen = [p for p in model.parameters() if not p.requires_grad]
    for p in frozen if stale else ():
        p.grad = torch.full_like(p, 6.0 * (rank + 1))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    student(model, group)
    for p in frozen:
        if p.grad is not None and torch.equal(p.grad, torch.full_like(p, 6.0 * (rank + 1))):
            p.grad = None  # as it was
    changed = next((name for name, p in model.named_parameters() if not torch.equal(p, before[name])), "")
    memory = {name: p.grad.untyped_storage().data_ptr() for name, p in model.named_parameters() if p.grad is not None}
    return taken(model), changed, memory, {name: values.double() for name, values in before.items()}


def _misplaced(own, parameters):
    """sentence → what each rank has where something else is averaged, or the flat tensor is cut at other places."""
    mean = {name: one for name, one in means(own).items() if one is not None}
    flat = torch.cat([one.reshape(-1) for one in mean.values()])
    turned, at = {}, 0  # cut for the parameters from the last to the first
    for name, one in reversed(mean.items()):
        turned[name] = flat[at : at + one.numel()].view(one.shape)
        at += one.numel()
    own_cut, one_cut = _used_first(own, mean)
    order = "the order in the flat tensor depends on which .grad are None; it is the same on all ranks"
    return {
        order: own_cut,
        f"{order}, and that of the parts": one_cut,
        "the parameters themselves are averaged, and not their gradients": [parameters] * len(own),
        "every part is the beginning of the flat tensor": [
            {name: flat[: one.numel()].view(one.shape) for name, one in mean.items()}
        ]
        * len(own),
        "the gradients stand in another order in the flat tensor than among the parts": [turned] * len(own),
    }


def _used_first(own, mean):
    """What each rank has if its flat tensor begins with what it has used; cut in that order, and in the model's."""
    orders = [sorted(mean, key=lambda name, one=one: one[name] is None) for one in own]
    zeros = {name: torch.zeros_like(one) for name, one in mean.items()}
    flats = [
        torch.cat([(zeros[name] if one[name] is None else one[name]).reshape(-1) for name in order])
        for one, order in zip(own, orders, strict=True)
    ]
    flat = sum(flats) / len(own)

    def cut(order):
        parts = flat.split([mean[name].numel() for name in order])
        return {name: part.view(mean[name].shape) for name, part in zip(order, parts, strict=True)}

    return [cut(order) for order in orders], [cut(list(mean))] * len(own)


def expect_no_more(case: Case, calls, rank: int) -> None:
    """Raises Wrong where a rank sends more than each trained gradient once, or by something else than all-reduces."""
    parts = [part for part in case.parts if part.kind != "frozen"]
    nbytes = sum(prod(part.shape) * part.dtype.itemsize for part in parts)
    sent = sum(call.nbytes for call in calls)
    names = {call.name for call in calls}
    right = "the values are right, but rank"
    if names - {"all_reduce", "all_reduce_coalesced"}:
        made = ", ".join(sorted(names))
        cause = "an all-reduce brings the sum to all ranks in one call"
        if "all_gather" in made:
            cause = "an all-gather brings everybody's gradients to everybody, p tensors in place of one sum"
        elif "barrier" in names:
            cause = "a collective waits for all ranks by itself: no barrier is needed"
        raise Wrong(case.name, f"{right} {rank} calls {made}", cause=cause)
    if not calls:
        raise Wrong(
            case.name,
            f"{right} {rank} calls nothing: all ranks call the same",
            cause="" if case.size > 1 else "one rank is a group too; a special case for it is not needed",
        )
    if sent == nbytes and len(calls) <= len(parts):
        return
    tied = sum(4 * prod(part.shape) for part in parts if part.kind == "tied")
    frozen = sum(4 * prod(part.shape) for part in case.parts if part.kind == "frozen")
    dtypes = {call.dtype for call in calls}
    cause = ""
    if tied and sent - nbytes == tied:
        cause = TWICE
    elif frozen and sent - nbytes == frozen:
        cause = "the frozen parameter is sent too"
    elif len({part.dtype for part in parts}) > len(dtypes):
        cause = "gradients are cast to one dtype for the way: some are rounded, or have more bytes than they need"
    elif sent == 2 * nbytes:
        cause = "gradients travel in float64, twice the bytes" if "float64" in dtypes else "everything is sent twice"
    elif 2 * sent == nbytes:
        cause = "gradients travel in fewer bits than they have: the sum is rounded"
    elif len(calls) == 2 * len(parts):
        cause = "who has not used a parameter counts as 0, so that nobody has to be counted: one all-reduce each"
    raise Wrong(
        case.name,
        f"{right} {rank} sends {sent} bytes in {len(calls)} calls; its {len(parts)} gradients have {nbytes}",
        cause=cause,
    )
