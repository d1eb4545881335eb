"""Judges what a layer gave on practice ranks: its form, what became of its operands, values, and what was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from labs_helpers.course.verdict import Candidates, one_thread
from labs_helpers.tensor_parallel.lab07.checks.linear_answers import (
    expect_form,
    expect_gradients_form,
    expect_kept,
    expect_sent,
)
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import (
    CALLS,
    GRADIENTS,
    ROUNDING,
    Case,
    Cut,
    Layer,
    layers_of,
)
from labs_helpers.tensor_parallel.lab07.checks.linear_runs import Seen, run_layers
from labs_helpers.tensor_parallel.lab07.checks.passes import expect_no_detour, expect_unchanged, expect_waited
from labs_helpers.tensor_parallel.lab07.checks.rank_group import place_of
from labs_helpers.tensor_parallel.lab07.checks.rank_tensors import expect_dtype, expect_on_ranks

FEWER_BITS = "a step of it has fewer bits than the tensors that came in: float16, bfloat16, or float32 for float64"


@dataclass(frozen=True)
class Scheme:
    """A way to cut a layer. summed: "out" or "grad_x", which one all-reduce adds up; the rest is local, and the other
    pass, in which `nothing` says why, sends nothing.

    out_causes(layer, made), gradient_causes(layers, layer, call, name, made): the answers of common mistakes.
    made: rank 0's Pass; layers: all that there are, of all groups."""

    cut: Cut
    summed: str
    nothing: str
    out_causes: Callable[..., Candidates]
    gradient_causes: Callable[..., Candidates]


def layer_lines(student: Callable, scheme: Scheme, cases: Sequence[Case]) -> Iterator[str]:
    """A line per case in which the student's layer is right; raises Wrong."""
    for case in cases:
        with one_thread():
            seen = _expect_right(case, student, scheme)
        forward, backward = seen.forward.sent, seen.backward[0].sent
        sent = (
            f"forward sends {forward:,} bytes per rank, backward {backward:,}" if case.ranks > 1 else "nothing is sent"
        )
        yield f"{case.name}: {sent}"


def _expect_right(case: Case, student: Callable, scheme: Scheme) -> Seen:
    """What rank 0 has of the first layer, if all layers are right on all ranks; raises Wrong."""
    groups = layers_of(case, scheme.cut)
    run = run_layers(case, student, groups, _sizes(case))
    for rank, layers in enumerate(run.results):
        expect_no_detour(case.name, rank, [one for seen in layers for one in seen.passes], len(run.of(rank)))
    everything = [layer for layers in groups for layer in layers]
    world = sorted((*place_of(rank, case.ranks, case.groups), rank) for rank in range(len(run.results)))
    for i in reversed(range(case.layers)):
        title = f"{case.name}, the {('first', 'second')[i]} layer" if case.layers > 1 else case.name
        for number, layers in enumerate(groups):
            seen = [run.results[rank][i] for group, _, rank in world if group == number]
            _judge(title, scheme, case, everything, layers[i], seen)
    return run.results[0][0]


def _judge(title: str, scheme: Scheme, case: Case, layers: list[Layer], layer: Layer, seen: list[Seen]) -> None:
    """Raises Wrong unless one of `layers` is right; seen: what each rank of its group gave."""
    forwards, summed = [one.forward for one in seen], scheme.summed
    expect_form(title, [one.returned for one in forwards])
    expect_unchanged(title, forwards)
    expect_waited(title, "forward", forwards)
    outs = [one.returned[0] for one in forwards]
    causes = scheme.out_causes(layer, forwards[0])
    expect_on_ranks(title, "out", outs, layer.out, layer.out_bounds, ROUNDING, causes, nearly=FEWER_BITS)
    expect_dtype(title, "out", outs, case.dtype, "x and weight have that")
    expect_sent(title, "forward", forwards[0], outs[0] if summed == "out" else None, case.ranks, summed, scheme.nothing)
    for call in range(CALLS):
        again = f"{title}, backward called again" if call else title
        passes = [one.backward[call] for one in seen]
        rights, bounds = layer.gradients[call], layer.gradient_bounds[call]
        expect_gradients_form(again, rights, bounds, [one.returned for one in passes])
        expect_unchanged(again, passes)
        expect_waited(again, "backward", passes)
        for part, name in enumerate(GRADIENTS):
            found = [one.returned[part] for one in passes]
            causes = scheme.gradient_causes(layers, layer, call, name, passes[0])
            expect_on_ranks(again, name, found, rights[name], bounds[name], ROUNDING, causes, nearly=FEWER_BITS)
            expect_dtype(again, name, found, case.dtype, "x and weight have that")
        whole = passes[0].returned[0] if summed == "grad_x" else None
        expect_sent(again, "backward", passes[0], whole, case.ranks, summed, scheme.nothing)
    expect_kept(title, seen)


def _sizes(case: Case) -> dict[str, int]:
    """The dimensions that tensors may have here, by name."""
    sizes = {"batch": case.batch, "length": case.length, "batch · length": case.batch * case.length}
    for name, size in (("in", case.features), ("out", case.width)):
        sizes[name] = size
        if case.ranks > 1:
            sizes |= {f"{name} / p": size // case.ranks, f"p · {name}": size * case.ranks}
    return sizes
