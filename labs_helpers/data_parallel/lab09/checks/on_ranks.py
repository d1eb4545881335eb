"""How lab 09 runs answers on ranks, what its error messages mean, and what a step may send."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import torch

from labs_helpers.course.verdict import Wrong, on_practice_ranks
from labs_helpers.course.verdict.messages.distributed import NAMES_OF_RANKS, UNWAITED
from labs_helpers.practice.process_groups import ProcessRun, practice_process_groups

DTYPES = r"gradient with dtype|dtypes? .*(differ|match)|(float32|float64|Float|Double).*(float32|float64|Float|Double)"
ERRORS = (  # pairs (pattern, cause); those of an exercise come before them
    NAMES_OF_RANKS,
    (
        r"'NoneType' .* '(reshape|flatten|view|numel|clone|shape|ravel)'",
        "a .grad that is None: it was let go of before it was read, or has not come yet",
    ),
    (r"'NoneType' .* '\w+_'|for \+=: 'NoneType'", "a .grad is None until one is assigned: x.grad = …"),
    (r"'NoneType' .* '(sqrt|item|sum|chunk)'", "a collective writes into its tensor and returns None"),
    (r"tuple index out of range", "dist.get_rank() without the group is the rank in the whole job"),
)


on_ranks = partial(on_practice_ranks, ranks=practice_process_groups, messages=ERRORS, unwaited=UNWAITED)


def alone(whole, gradients: Sequence, make: Callable, numels=(), decays=()) -> list[torch.Tensor]:
    """A copy of `whole` in float64, and what it is behind a step with each of the gradients, in one process. numels,
    decays: of parameters with a weight decay each, if it is not one parameter; padding may follow."""
    flat = whole.double().clone()
    sizes = [*numels, len(flat) - sum(numels)]
    parts = [torch.nn.Parameter(part) for part in flat.split(sizes)]
    groups = [{"params": [p], "weight_decay": decay} for p, decay in zip(parts, decays, strict=False)]
    optimizer, found = make(groups or parts), [flat.clone()]
    for gradient in gradients:
        for p, part in zip(parts, gradient.split(sizes), strict=True):
            p.grad = part.clone()
        optimizer.step()
        found.append(flat.clone())
    return found


WHOLE = "an all-reduce gives every rank the whole, of which it needs its shard: twice the bytes of a reduce-scatter"
SLOW = {
    ("reduce-scatter", "all-reduce"): WHOLE,
    ("reduce-scatter", "reduce"): "a reduce per shard: one reduce-scatter does it for all ranks at once",
    ("reduce-scatter", "all-gather"): "whole gradients go to every rank; a reduce-scatter adds them up on the way",
    ("all-gather", "broadcast"): "a broadcast per shard: one all-gather does it for all ranks at once",
    ("all-gather", "all-reduce"): "a sum of shards between zeros is an all-gather at twice the bytes",
}


def _too_many(made: Sequence[tuple[str, int]], wanted: Sequence[tuple[str, int]]) -> str:
    often = list(Counter(kind for kind, _ in made) - Counter(kind for kind, _ in wanted))
    if len(often) != 1:
        return "something is sent more often than it has to be: which call's result does nobody need?"
    return f"there are more {often[0]}s than one step needs: whose result does nobody use, or have already?"


def _listed(collectives: Sequence[tuple[str, int]]) -> str:
    """'all-reduce of 1, twice' …"""
    found = Counter(collectives).items()
    return "; ".join(f"{kind} of {n}" + f", {times} times" * (times > 1) for (kind, n), times in found) or "nothing"


def sent(run: ProcessRun, rank: int, counts: Callable[[int, Sequence[int]], bool] = lambda *_: True) -> list:
    """(kind, elements of the whole) of each collective of a rank, in order, without groups of one rank. counts: by a
    rank and the ranks of its group."""
    calls = (c for c in run.of(rank) if len(c.ranks) > 1 and c.name != "barrier" and counts(rank, c.ranks))
    return [(re.sub(r"_((into_)?tensor|coalesced)$", "", c.name).replace("_", "-"), c.elements) for c in calls]


def expect_sent(
    case: str,
    run: ProcessRun,
    wanted: Sequence[tuple[str, int]],
    why: Callable[[list], str] = lambda made: "",
    counts: Callable[[int, Sequence[int]], bool] = lambda *_: True,
) -> None:
    """Raises Wrong unless every rank's collectives are `wanted`, in any order; the values were right. why: another
    cause, of what a rank sends, for what SLOW does not know. counts: as `sent` has it."""
    for rank in range(len(run.results)):
        made = sent(run, rank, counts)
        if sorted(made) == sorted(wanted):
            continue
        kinds, right = {kind for kind, _ in made}, {kind for kind, _ in wanted}
        causes = [said for (one, other), said in SLOW.items() if one in right - kinds and other in kinds - right]
        if not causes and kinds == right:
            more = len(made) > len(wanted)
            same = sum(n for _, n in made) == sum(n for _, n in wanted)
            pieces = "in pieces: as many bytes, and the latency of each call"
            causes = [pieces if same else _too_many(made, wanted) if more else ""]
        found = f"the values are right, but rank {rank} sends (with numbers of elements): {_listed(made)}"
        cause = why(made) or (causes[0] if len(causes) == 1 else "")
        raise Wrong(case, f"{found}. Enough is: {_listed(wanted)}", cause=cause)
