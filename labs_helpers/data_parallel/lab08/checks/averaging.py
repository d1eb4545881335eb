"""Run exercises 2 and 3 of lab 08 on practice ranks, and check the averaged gradients of each replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import NamedTuple

import torch

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.data_parallel.lab08.checks import replicas
from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import NONE, means, with_zeros
from labs_helpers.data_parallel.lab08.checks.gradients import KINDS, expect_means
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.replicas import FROZEN, IDLE, MIXED, PLAIN, TIED, TRANSPOSED, UNUSED, Part
from labs_helpers.practice.process_groups import ProcessRun


class Case(NamedTuple):
    name: str
    size: int
    parts: Sequence[Part]
    stuck: str = "the calls depend on the rank, for example by an `if` on the rank or by the order of a set"
    groups: Sequence[Sequence[int]] | None = None
    stale: bool = False  # a frozen parameter still has the .grad of an earlier step
    infinite: bool = False  # the first element of the last rank's first gradient is infinite


ABSENT = "a rank without a gradient skips the call or makes it at another place: send zeros, in the same order"
FROZEN_STUCK = "do not send a frozen parameter: look at requires_grad"
ZEROS = "where .grad is None, the zeros need the parameter's dtype: torch.zeros_like(parameter)"
HALF_USED = tuple(part._replace(kind="unused") if part.name.startswith("norm") else part for part in MIXED)
CASES = (
    Case("3 ranks", 3, PLAIN),
    Case("4 ranks, a transposed parameter", 4, TRANSPOSED),
    Case("a frozen parameter", 2, FROZEN, FROZEN_STUCK),
    Case("a weight that two layers share", 3, TIED),
    Case("parameters that ranks 1 and 3 have not used", 4, UNUSED, ABSENT),
    Case("a parameter that no rank has used", 2, IDLE, ABSENT),
    Case("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, PLAIN, groups=[(4, 0, 2), (3, 1)]),
    Case("a parameter that was frozen after some steps", 2, FROZEN, FROZEN_STUCK, stale=True),
    Case("a gradient that has overflowed on rank 1", 2, PLAIN, infinite=True),
    Case("three dtypes", 3, MIXED),
    Case("three dtypes, two of them unused on rank 1", 3, HALF_USED, ZEROS),
    Case("1 rank", 1, (*TIED, TRANSPOSED[2])),
)
TWICE = (
    "the weight that two layers share is sent twice: model.parameters() yields it once, modules and state_dict() twice"
)
SPECIAL = {
    (KINDS["unused"], NONE): "a .grad that is None counts as 0, and receives the mean like the others",
    (KINDS["idle"], NONE): "no rank has used this parameter: the mean of zeros is 0, so set .grad to zeros",
}


def on_replicas(comparison: Comparison, case: Case, student: Callable) -> ProcessRun:
    """Run one call on every rank. run.results has, per rank, each .grad by name and the address of its memory.

    Raises Wrong unless all gradients are the means and each was sent once.
    """
    own = [replicas.draw(case.parts, rank) for rank in range(case.size)]
    if case.infinite:
        own[-1][case.parts[0].name].view(-1)[0] = torch.inf
    given = [(rank, case.parts, one, case.stale) for rank, one in enumerate(own)]
    run = on_ranks(case.name, student, _call, given, groups=case.groups, stuck=case.stuck)
    groups = case.groups or [range(case.size)]
    found, more = [grads for grads, _ in run.results], _cut_elsewhere(own, groups, case.parts)
    expect_means(comparison, case.name, run, found, own, groups, case.parts, special=SPECIAL, more=more)
    for rank in range(case.size):
        _expect_no_more(case, run.of(rank), rank)
    return run


def _call(student, group, rank, parts, own, stale):
    model = replicas.replica(parts)
    replicas.fill(model, own)
    frozen = [p for p in model.parameters() if not p.requires_grad]
    for p in frozen if stale else ():
        p.grad = torch.full_like(p, 6.0 * (rank + 1))
    before = replicas.copies(model)
    student(model, group)
    for p in frozen:
        if p.grad is not None and torch.equal(p.grad, torch.full_like(p, 6.0 * (rank + 1))):
            p.grad = None  # unchanged: leave it out of the comparison
    replicas.expect_kept(model, before)
    return replicas.taken(model), replicas.places(model)


def _cut_elsewhere(own, groups, parts):
    """Yield a sentence and each rank's gradients if other tensors are averaged, or the flat tensor is cut wrongly."""
    full, right = with_zeros(own, parts), means(own, groups, parts)
    names = list(full[0])
    used_first = [sorted(names, key=lambda n, one=one: one[n] is None) for one in own]

    def flat(tensors, order=names):
        return torch.cat([tensors[n].reshape(-1) for n in order])

    def cut(whole, order):
        pieces = whole.split([full[0][n].numel() for n in order])
        return {n: piece.view(full[0][n].shape) for n, piece in zip(order, pieces, strict=True)}

    both = {r: sum(flat(full[o], used_first[o]) for o in group) / len(group) for group in groups for r in group}
    order = "the order in the flat tensor depends on which .grad are None; use the same order on all ranks"
    yield order, {r: cut(one, used_first[r]) for r, one in both.items()}
    yield f"{order}, and so does the order of the parts", {r: cut(one, names) for r, one in both.items()}
    parameters = "your function averages the parameters, not their gradients"
    yield parameters, dict.fromkeys(right, replicas.copies(replicas.replica(parts)))
    begin = "every part is cut from the beginning of the flat tensor"
    yield begin, {r: {n: flat(one)[: x.numel()].view(x.shape) for n, x in one.items()} for r, one in right.items()}
    turned = "the flat tensor holds the gradients in a different order than the parts are cut"
    yield turned, {r: cut(flat(one), names[::-1]) for r, one in right.items()}


def _expect_no_more(case: Case, calls, rank: int) -> None:
    """Raise Wrong if a rank sends a trained gradient more than once, or calls other collectives than all-reduces."""
    parts = [part for part in case.parts if part.kind != "frozen"]
    nbytes, sent = nbytes_of(parts), sum(call.nbytes for call in calls)
    names = {call.name for call in calls}
    right, cause = f"the values are right, but rank {rank}", ""
    if names - {"all_reduce", "all_reduce_coalesced"}:
        cause = "a single all-reduce delivers the sum to all ranks"
        if any("all_gather" in name for name in names):
            cause = "an all-gather delivers p tensors to every rank, where an all-reduce delivers one sum"
        elif "barrier" in names:
            cause = "a collective waits for all ranks by itself, so you need no barrier"
        raise Wrong(case.name, f"{right} calls {', '.join(sorted(names))}", cause=cause)
    if not calls:
        cause = "" if case.size > 1 else "a single rank is a group too: you need no special case for it"
        raise Wrong(case.name, f"{right} makes no call; all ranks make the same calls", cause=cause)
    if sent == nbytes and len(calls) <= len(parts):
        return
    dtypes = {call.dtype for call in calls}
    tied = nbytes_of(part for part in parts if part.kind == "tied")
    frozen = nbytes_of(part for part in case.parts if part.kind == "frozen")
    wide = "gradients travel in float64, which doubles the bytes" if "float64" in dtypes else "everything is sent twice"
    one_dtype = (
        "gradients are cast to one dtype before they are sent: some are rounded, or take more bytes than they need"
    )
    counted = "a rank that has not used a parameter counts as 0: make one all-reduce each, and do not count the users"
    causes = (
        (sent - nbytes == tied > 0, TWICE),
        (sent - nbytes == frozen > 0, "the frozen parameter is sent too"),
        (len({part.dtype for part in parts}) > len(dtypes), one_dtype),
        (sent == 2 * nbytes, wide),
        (2 * sent == nbytes, "gradients are sent in a dtype with fewer bits, so the sum is rounded"),
        (len(calls) == 2 * len(parts), counted),
    )
    many = f"sends {sent} bytes in {len(calls)} calls; its {len(parts)} gradients take {nbytes}"
    raise Wrong(case.name, f"{right} {many}", cause=first_of(causes))


def first_of(causes: Iterable[tuple[bool, str]]) -> str:
    """Return the sentence of the first condition that is true, or ''."""
    return next((said for fits, said in causes if fits), "")


def nbytes_of(parts) -> int:
    """Return the size in bytes of these parameters' gradients."""
    return sum(prod(part.shape) * part.dtype.itemsize for part in parts)
