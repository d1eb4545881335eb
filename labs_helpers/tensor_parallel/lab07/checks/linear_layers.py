"""Run a student's layers on practice ranks, all forward and then backward in reverse order, and judge the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from torch import Tensor

from labs_helpers.communication.interface import ring_bytes
from labs_helpers.course.verdict import Wrong, one_thread
from labs_helpers.course.verdict.tree_causes import nearly
from labs_helpers.course.verdict.trees import Comparison, rounded
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import (
    CALLS,
    GRADIENTS,
    OPERANDS,
    Case,
    Cut,
    Layer,
    layers_of,
    operands_of,
)
from labs_helpers.tensor_parallel.lab07.checks.linear_mistakes import mistakes
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass, expect_passes, watched
from labs_helpers.tensor_parallel.lab07.checks.rank_group import Group, in_groups

BOUND = rounded(16)
FEWER_BITS = "some step uses fewer bits than the input tensors have: float16, bfloat16, or float32 for float64"
WORDS = {
    "why": "the rounding errors of sums this long",
    "advice": "work out {where} by hand: which products does it contain, and which ranks hold them?",
}
KEPT = "backward writes into tensors that an earlier call returned; each call has to make new ones"


@dataclass(frozen=True)
class Scheme:
    """A way to split a layer over ranks.

    own maps each result that a rank computes alone to the reason. The remaining result is the sum over the ranks, from
    one all-reduce; the other pass sends nothing, and `nothing` says why.
    """

    cut: Cut
    own: Mapping[str, str]
    nothing: str

    @property
    def summed(self) -> str:
        return next(name for name in ("out", *GRADIENTS) if name not in self.own)


def layer_lines(student: Callable, scheme: Scheme, cases: Sequence[Case]) -> Iterator[str]:
    """Yield a line per case in which the student's layer is right; raise Wrong."""
    for case in cases:
        groups = layers_of(case, scheme.cut)
        own = [[operands_of(case, layer, rank) for layer in layers] for layers in groups for rank in range(case.ranks)]
        with one_thread():
            seen = in_groups(case, student, _on_rank, [(one,) for one in own])
            for i in reversed(range(case.layers)):
                title = f"{case.name}, the {('first', 'second')[i]} layer" if case.layers > 1 else case.name
                for layers, ranks in zip(groups, seen, strict=True):
                    _judge(
                        title, scheme, case, sum(groups, []), layers[i], [layers_of_rank[i] for layers_of_rank in ranks]
                    )
        forward, backward, *_ = seen[0][0][0]
        yield f"{case.name}: " + (
            f"forward sends {forward.sent:,} bytes per rank, backward {backward.sent:,}"
            if case.ranks > 1
            else "nothing is sent"
        )


def _two_parts(answer: Any) -> bool:
    """Decide whether an answer could be (out, backward)."""
    return isinstance(answer, (tuple, list)) and len(answer) == 2 and callable(answer[1])


def _on_rank(student: Callable, group: Group, layers: list[tuple]) -> list[list[Pass]]:
    """Return for each layer its forward pass, followed by one backward pass per call."""
    passes, answers, kept = [], [], []
    for operands, _ in layers:
        answer, forward = watched(group, dict(zip(OPERANDS, operands, strict=False)), student, *operands, group)
        passes.append([forward])
        answers.append(answer)
        kept.append((forward, answer))
    for (operands, grad_outs), some, answer in reversed(list(zip(layers, passes, answers, strict=True))):
        for grad_out in grad_outs if _two_parts(answer) else ():
            given = dict(zip(OPERANDS, [*operands, grad_out], strict=True))
            gradients, backward = watched(group, given, answer[1], grad_out)
            some.append(backward)
            kept.append((backward, gradients))
    for one, returned in kept:
        one.compare(returned)
    return passes


def _judge(title: str, scheme: Scheme, case: Case, layers: list[Layer], layer: Layer, seen: list[list[Pass]]) -> None:
    """Raise Wrong unless `layer`, one of `layers`, is right. seen: the passes of each rank of its group."""
    forwards = [one[0] for one in seen]
    for rank, one in enumerate(forwards):
        _expect_form(title, rank, one.returned)
    expect_passes(title, "forward", forwards)
    _expect_result(title, scheme, case, "out", layers, layer, 0, forwards, [one.returned[0] for one in forwards])
    _expect_sent(title, "forward", forwards[0], forwards[0].returned[0], scheme, case.ranks)
    for call in range(CALLS):
        again = f"{title}, backward called again" if call else title
        passes = [one[1 + call] for one in seen]
        _expect_gradients(again, layer.results[call], [one.returned for one in passes])
        expect_passes(again, "backward", passes)
        for part, name in enumerate(GRADIENTS):
            found = [one.returned[part] for one in passes]
            _expect_result(again, scheme, case, name, layers, layer, call, passes, found)
        _expect_sent(again, "backward", passes[0], passes[0].returned[0], scheme, case.ranks)
    for rank, one in enumerate(seen):
        for names, earlier in zip((("out",), *[GRADIENTS] * CALLS), one, strict=True):
            if changed := [names[part] for part in earlier.overwritten if part < len(names)]:
                found = f"rank {rank}'s {changed[0]} of one call changes during a later call"
                raise Wrong(title, found, cause=KEPT)


def _expect_result(title, scheme, case, name, layers, layer, call, passes, found) -> None:
    def causes():
        return mistakes(name, layers, layer, call, scheme.cut, passes[0], scheme.own.get(name, ""))

    comparison = Comparison(f"rank {{0}}'s {name}", bound=BOUND, slack=1e-4, otherwise=(nearly(FEWER_BITS),), **WORDS)
    comparison.expect(title, found, layer.results[call][name], causes)
    for rank, mine in enumerate(found):
        if mine.dtype != case.dtype:
            raise Wrong(title, f"rank {rank}'s {name} is {mine.dtype}, expected {case.dtype}, the dtype of the inputs")


def _expect_form(title: str, rank: int, answer: Any) -> None:
    """Raise Wrong unless a rank's answer is (out, backward)."""
    if _two_parts(answer) and not callable(answer[0]):
        return
    said, cause = f"{answer!r:.80}", ""
    if isinstance(answer, Tensor):
        said = f"one tensor of shape {tuple(answer.shape)}"
    elif isinstance(answer, tuple) and len(answer) == 2:
        said = f"a {type(answer[1]).__name__} as second value"
        cause = "return the function backward itself, without calling it; it is called later, with grad_out"
        if callable(answer[0]):
            said, cause = "a function as first value", "the two are swapped"
    raise Wrong(title, f"rank {rank} returned {said}; expected (out, backward)", cause=cause)


def _expect_gradients(title: str, right: Mapping[str, list[Tensor]], answers: list) -> None:
    """Raise Wrong unless backward returned a tuple of three gradients in the right order on each rank."""
    expected = f"({', '.join(GRADIENTS)})"
    for rank, answer in enumerate(answers):
        if not isinstance(answer, tuple) or len(answer) != len(GRADIENTS):
            of = f"{len(answer)} values" if isinstance(answer, tuple) else f"{answer!r:.60}"
            raise Wrong(title, f"rank {rank}'s backward returned {of}; expected {expected}")
    for order in permutations(GRADIENTS):
        fits = Comparison("", bound=BOUND).same(answers, list(zip(*(right[name] for name in order), strict=True)))
        if fits and order != GRADIENTS:
            found = f"backward returned ({', '.join(order)}); expected {expected}"
            raise Wrong(title, found, cause="the values are right, but their order is not")


def _expect_sent(title: str, phase: str, one: Pass, result: Tensor, scheme: Scheme, ranks: int) -> None:
    """Raise Wrong unless a pass makes one all-reduce of its result if that is a sum, and no collective otherwise."""
    is_summed = (phase == "forward") == (scheme.summed == "out")
    nbytes = result.nbytes if is_summed and ranks > 1 else 0
    if one.payload == ({"all_reduce": nbytes} if nbytes else {}) and one.calls.total() == bool(nbytes):
        return
    said = f"{phase}'s values are right, but it calls {one.listed}: {one.sent:,} bytes leave each rank"
    if not is_summed:
        raise Wrong(title, f"{said}; none are needed", cause=f"{phase} needs no collective: {scheme.nothing}")
    least = ring_bytes("all_reduce", nbytes, ranks)
    said += f"; 1 × all_reduce of {scheme.summed} takes {least:,}"
    causes = (
        (
            set(one.calls) == {"all_gather"},
            "every rank receives the tensors of all others and adds them up itself; all_reduce adds up along the way",
        ),
        (set(one.calls) == {"all_gather", "reduce_scatter"}, "together the two make an all-reduce, in two calls"),
        (
            one.payload["all_reduce"] == nbytes,
            "the same bytes travel in several messages; a single message with the whole tensor is faster",
        ),
        (
            one.calls == {"all_reduce": 1} and one.payload["all_reduce"] == 2 * nbytes,
            "the message has twice the bytes: it is float64, or it holds two tensors",
        ),
        (one.calls["all_reduce"] > 1, "it also reduces a tensor that needs no reduction"),
    )
    raise Wrong(title, said, cause=next((cause for fits, cause in causes if fits), ""))
