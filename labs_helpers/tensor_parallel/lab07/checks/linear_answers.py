"""What has to be so of a layer's answers beside their values: form, order, operands left alone, collectives."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

from torch import Tensor

from labs_helpers.communication.interface import ring_bytes
from labs_helpers.course.verdict import Wrong
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import GRADIENTS, Parts
from labs_helpers.tensor_parallel.lab07.checks.linear_runs import Seen, two_parts
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass
from labs_helpers.tensor_parallel.lab07.checks.rank_tensors import off_by

KEPT = "backward writes into tensors that an earlier call has returned; each call makes new ones"


def expect_form(title: str, answers: list) -> None:
    """Raises Wrong unless each rank's answer is (out, backward)."""
    for rank, answer in enumerate(answers):
        if not two_parts(answer) or callable(answer[0]):
            said, cause = _described(answer)
            raise Wrong(title, f"rank {rank} returned {said}; (out, backward) is asked for", cause=cause)


def _described(answer) -> tuple[str, str]:
    """What another answer is, and the likely cause, or ''."""
    if callable(answer):
        return "a function alone", ""
    if isinstance(answer, Tensor):
        return f"one tensor of shape {tuple(answer.shape)}", ""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return f"{len(answer)} things" if isinstance(answer, tuple) else f"{answer!r:.80}", ""
    if callable(answer[0]):
        return "a function first", "the two are swapped"
    called = "backward itself is to be returned, not what it gives: it is called later, with grad_out"
    return f"a {type(answer[1]).__name__} second", called


def expect_gradients_form(title: str, rights: Parts, bounds: Parts, answers: list) -> None:
    """Raises Wrong unless each rank's answer of backward is a tuple of three, and in the order that is asked for."""
    asked = f"({', '.join(GRADIENTS)})"
    for rank, answer in enumerate(answers):
        if not isinstance(answer, tuple) or len(answer) != len(GRADIENTS):
            of = f"{len(answer)} things" if isinstance(answer, tuple) else f"{answer!r:.60}"
            raise Wrong(title, f"rank {rank}'s backward returned {of}; {asked} is asked for")
    for order in permutations(GRADIENTS):
        if order != GRADIENTS and all(_agrees(rights, bounds, order, *one) for one in enumerate(answers)):
            found = f"backward returned ({', '.join(order)}); {asked} is asked for"
            raise Wrong(title, found, cause="the values are right, the order is not")


def _agrees(rights: Parts, bounds: Parts, order: tuple[str, ...], rank: int, answer: tuple) -> bool:
    """Whether a rank's answer is these gradients, in that order."""
    for found, name in zip(answer, order, strict=True):
        right, bound = rights[name][rank], bounds[name][rank]
        if not isinstance(found, Tensor) or found.shape != right.shape or bool((off_by(found, right, bound) > 0).any()):
            return False
    return True


def expect_kept(title: str, seen: list[Seen]) -> None:
    """Raises Wrong where a call has changed what an earlier one returned."""
    for rank, one in enumerate(seen):
        for names, earlier in [(("out",), one.forward), *((GRADIENTS, passed) for passed in one.backward)]:
            if changed := [names[part] for part in earlier.overwritten if part < len(names)]:
                found = f"rank {rank}'s {changed[0]} of one call is no longer the same after a later one"
                raise Wrong(title, found, cause=KEPT)


def expect_sent(title: str, phase: str, one: Pass, whole: Tensor | None, ranks: int, summed: str, nothing: str) -> None:
    """Raises Wrong unless a pass of right values calls one all-reduce of `whole`, called `summed`; None: nothing.

    nothing: why nothing has to be sent in the pass that sends nothing."""
    nbytes = whole.nbytes if whole is not None and ranks > 1 else 0
    if one.payload == ({"all_reduce": nbytes} if nbytes else {}) and one.calls.total() == bool(nbytes):
        return
    calls = ", ".join(f"{times} × {name}" for name, times in one.calls.items()) or "nothing"
    said = f"{phase}'s values are right, but it calls {calls}: {one.sent:,} bytes leave each rank"
    if whole is None:
        raise Wrong(title, f"{said}; none have to", cause=f"{phase} needs no collective: {nothing}")
    least = ring_bytes("all_reduce", nbytes, ranks)
    said += f"; 1 × all_reduce of {summed} takes {least:,}"
    raise Wrong(title, said, cause=_too_much(one.calls, one.payload["all_reduce"], nbytes))


def _too_much(calls: Mapping[str, int], payload: int, nbytes: int) -> str:
    """Why more was sent than one all-reduce of nbytes, as far as it is known."""
    if set(calls) == {"all_gather"}:
        return "every rank receives what all others have, and adds it up itself; all_reduce adds up on the way"
    if set(calls) == {"all_gather", "reduce_scatter"}:
        return "the two are an all-reduce in two calls"
    if calls == {"all_reduce": 1} and payload == 2 * nbytes:
        return "what is sent has twice the bytes: in float64, or two tensors in one"
    if payload == nbytes:
        return "the same bytes go in several messages; one of the whole tensor is quicker"
    return "something is reduced that needs no reducing" if calls.get("all_reduce", 0) > 1 else ""
