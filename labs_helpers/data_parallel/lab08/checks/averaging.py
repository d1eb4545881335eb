"""What exercises 2 and 3 of lab 08 share: replicas with gradients, averaged on practice ranks."""

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
    stuck: str = "which collective is called depends on the rank: an `if` with the rank in it, or the order of a set"
    groups: Sequence[Sequence[int]] | None = None
    stale: bool = False  # what is frozen has a .grad from before it was
    infinite: bool = False  # the last rank's first gradient begins with an infinite number


ABSENT = "a rank without a gradient skips it or comes to it in another place: it sends zeros, in the same order"
FROZEN_STUCK = "a frozen parameter is not sent: requires_grad tells"
ZEROS = "zeros in place of a .grad that is None have its parameter's dtype: torch.zeros_like(parameter)"
HALF_USED = tuple(part._replace(kind="unused") if part.name.startswith("norm") else part for part in MIXED)
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
    Case("three dtypes", 3, MIXED),
    Case("dtypes, of which rank 1 has not used two", 3, HALF_USED, ZEROS),
    Case("1 rank", 1, (*TIED, TRANSPOSED[2])),
)
TWICE = "the weight that two layers share is sent twice: model.parameters() has it once, modules and state_dict() twice"
SPECIAL = {
    (KINDS["unused"], NONE): "a .grad that is None counts as 0, and gets the mean like the others",
    (KINDS["idle"], NONE): "no rank has used it: the mean of nothing but zeros is 0, and .grad is set to it",
}


def on_replicas(comparison: Comparison, case: Case, student: Callable) -> ProcessRun:
    """Run one call on every rank; run.results: .grad, by name, and the memory that each lies in.

    Raises Wrong unless all gradients are the means, or where more is sent than each of them once.
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
            p.grad = None  # as it was
    replicas.expect_kept(model, before)
    return replicas.taken(model), replicas.places(model)


def _cut_elsewhere(own, groups, parts):
    """What each rank has where something else is averaged, or the flat tensor is cut at other places."""
    full, right = with_zeros(own, parts), means(own, groups, parts)
    names = list(full[0])
    used_first = [sorted(names, key=lambda n, one=one: one[n] is None) for one in own]

    def flat(tensors, order=names):
        return torch.cat([tensors[n].reshape(-1) for n in order])

    def cut(whole, order):
        pieces = whole.split([full[0][n].numel() for n in order])
        return {n: piece.view(full[0][n].shape) for n, piece in zip(order, pieces, strict=True)}

    both = {r: sum(flat(full[o], used_first[o]) for o in group) / len(group) for group in groups for r in group}
    order = "the order in the flat tensor depends on which .grad are None; it is the same on all ranks"
    yield order, {r: cut(one, used_first[r]) for r, one in both.items()}
    yield f"{order}, and that of the parts", {r: cut(one, names) for r, one in both.items()}
    parameters = "the parameters themselves are averaged, and not their gradients"
    yield parameters, dict.fromkeys(right, replicas.copies(replicas.replica(parts)))
    begin = "every part is the beginning of the flat tensor"
    yield begin, {r: {n: flat(one)[: x.numel()].view(x.shape) for n, x in one.items()} for r, one in right.items()}
    turned = "the gradients stand in another order in the flat tensor than among the parts"
    yield turned, {r: cut(flat(one), names[::-1]) for r, one in right.items()}


def _expect_no_more(case: Case, calls, rank: int) -> None:
    """Raise Wrong where a rank sends more than each trained gradient once, or by something else than all-reduces."""
    parts = [part for part in case.parts if part.kind != "frozen"]
    nbytes, sent = nbytes_of(parts), sum(call.nbytes for call in calls)
    names = {call.name for call in calls}
    right, cause = f"the values are right, but rank {rank}", ""
    if names - {"all_reduce", "all_reduce_coalesced"}:
        cause = "an all-reduce brings the sum to all ranks in one call"
        if any("all_gather" in name for name in names):
            cause = "an all-gather brings everybody's gradients to everybody, p tensors in place of one sum"
        elif "barrier" in names:
            cause = "a collective waits for all ranks by itself: no barrier is needed"
        raise Wrong(case.name, f"{right} calls {', '.join(sorted(names))}", cause=cause)
    if not calls:
        cause = "" if case.size > 1 else "one rank is a group too; a special case for it is not needed"
        raise Wrong(case.name, f"{right} calls nothing: all ranks call the same", cause=cause)
    if sent == nbytes and len(calls) <= len(parts):
        return
    dtypes = {call.dtype for call in calls}
    tied = nbytes_of(part for part in parts if part.kind == "tied")
    frozen = nbytes_of(part for part in case.parts if part.kind == "frozen")
    wide = "gradients travel in float64, twice the bytes" if "float64" in dtypes else "everything is sent twice"
    one_dtype = "gradients are cast to one dtype for the way: some are rounded, or have more bytes than they need"
    counted = "who has not used a parameter counts as 0, so that nobody has to be counted: one all-reduce each"
    causes = (
        (sent - nbytes == tied > 0, TWICE),
        (sent - nbytes == frozen > 0, "the frozen parameter is sent too"),
        (len({part.dtype for part in parts}) > len(dtypes), one_dtype),
        (sent == 2 * nbytes, wide),
        (2 * sent == nbytes, "gradients travel in fewer bits than they have: the sum is rounded"),
        (len(calls) == 2 * len(parts), counted),
    )
    many = f"sends {sent} bytes in {len(calls)} calls; its {len(parts)} gradients have {nbytes}"
    raise Wrong(case.name, f"{right} {many}", cause=first_of(causes))


def first_of(causes: Iterable[tuple[bool, str]]) -> str:
    """The sentence of the first condition that is true."""
    return next((said for fits, said in causes if fits), "")


def nbytes_of(parts) -> int:
    """The bytes of the gradients of these parameters."""
    return sum(prod(part.shape) * part.dtype.itemsize for part in parts)
