"""Runs layers on practice ranks: forward of all, then backward of the last, and so on to the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from labs_helpers.practice.groups import GroupRun
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import OPERANDS, Case, Layer, operands_of
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks
from labs_helpers.tensor_parallel.lab07.checks.passes import Pass, watched
from labs_helpers.tensor_parallel.lab07.checks.rank_group import group_of, place_of
from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import ERRORS, explained


@dataclass
class Seen:
    """What a rank's calls for one layer gave."""

    forward: Pass
    backward: list[Pass]

    @property
    def passes(self) -> list[Pass]:
        return [self.forward, *self.backward]


def run_layers(case: Case, student: Callable, groups: list[list[Layer]], sizes: dict[str, int]) -> GroupRun:
    """Its results: each rank's list of a Seen per layer. sizes: names of dimensions, for errors. Raises Wrong."""
    places = [place_of(rank, case.ranks, case.groups) for rank in range(case.ranks * case.groups)]
    own = [(case.groups, [operands_of(case, layer, place) for layer in groups[group]]) for group, place in places]
    with explained(sizes):
        return on_ranks(case.name, student, _on_rank, own, errors=ERRORS)


def two_parts(answer: Any) -> bool:
    """Whether it could be (out, backward)."""
    return isinstance(answer, (tuple, list)) and len(answer) == 2 and callable(answer[1])


def _on_rank(student: Callable, comm: Any, groups: int, layers: list[tuple]) -> list[Seen]:
    group = group_of(comm, groups)
    seen, answers, kept = [], [], []
    for operands, _ in layers:
        answer, forward = watched(group, _named(operands), student, *operands, group)
        seen.append(Seen(forward, []))
        answers.append(answer)
        kept.append((forward, answer))
    for (operands, grad_outs), one, answer in reversed(list(zip(layers, seen, answers, strict=True))):
        for grad_out in grad_outs if two_parts(answer) else ():
            gradients, backward = watched(group, _named([*operands, grad_out]), answer[1], grad_out)
            one.backward.append(backward)
            kept.append((backward, gradients))
    for one, returned in kept:
        one.compare(returned)
    return seen


def _named(operands: list) -> dict:
    return dict(zip(OPERANDS, operands, strict=False))
