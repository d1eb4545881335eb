"""Hidden inputs of exercise 5: records of a mesh of ranks whose programs differ in random places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labs_helpers.clinic.lab11.recorders import recorded
from labs_helpers.grading.hidden import hidden, kept


@hidden("11/5")
def waits_for(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for case in range(10):
        dp, tp = draw.integers(2, 4, 2).tolist()
        mesh = np.arange(dp * tp).reshape(dp, tp)
        groups = {f"tp{i}": mesh[i] for i in range(dp)} | {f"dp{i}": mesh[:, i] for i in range(tp)}
        members = {name: draw.permutation(ranks).tolist() for name, ranks in groups.items()}
        programs = {rank: _program(draw, rank // tp, rank % tp) for rank in range(dp * tp)}
        for rank in draw.permutation(dp * tp)[: case % 4].tolist():
            _change(draw, programs[rank])
        begun = recorded(programs, members)
        if case % 5 == 4:
            del begun[int(draw.integers(dp * tp))]
        same = kept(begun, members)
        found = function(begun, members)
        yield {str(rank): [int(other) for other in found[rank]] for rank in sorted(found)}
        yield same()


def _program(draw: np.random.Generator, row: int, column: int) -> list[tuple[str, str, int]]:
    return [(f"tp{row}", "all_reduce", 64), (f"tp{row}", "all_reduce", 64), (f"dp{column}", "all_reduce", 512)] * 3


def _change(draw: np.random.Generator, program: list[tuple[str, str, int]]) -> None:
    """Leave a collective out, call it twice, swap it with the next one, or change its size or name."""
    at, way = int(draw.integers(len(program) - 1)), int(draw.integers(5))
    group, name, elements = program[at]
    changed = ([], [program[at]] * 2, [program[at + 1], program[at]], [(group, name, elements + 1)],
               [(group, "broadcast", elements)])[way]  # fmt: skip
    program[at : at + 1 + (way == 2)] = changed
