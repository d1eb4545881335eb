"""Run lab 09's answers on ranks, explain their error messages, and check what a step sends."""

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
ERRORS = (  # pairs (pattern, cause); those of an exercise take precedence
    NAMES_OF_RANKS,
    (
        r"'NoneType' .* '(reshape|flatten|view|numel|clone|shape|ravel)'",
        "a .grad is None: it was released before it was read, or has not arrived yet",
    ),
    (r"'NoneType' .* '\w+_'|for \+=: 'NoneType'", "a .grad is None until you assign one: x.grad = …"),
    (r"'NoneType' .* '(sqrt|item|sum|chunk)'", "a collective writes into its tensor and returns None"),
    (r"tuple index out of range", "dist.get_rank() without the group returns the rank in the whole job"),
)


on_ranks = partial(on_practice_ranks, ranks=practice_process_groups, messages=ERRORS, unwaited=UNWAITED)


def alone(whole, gradients: Sequence, make: Callable, numels=(), decays=()) -> list[torch.Tensor]:
    """Return a float64 copy of `whole`, followed by its value after a step with each gradient, in one process.

    numels, decays: parameters with a weight decay each, if there are several; padding may follow.
    """
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


WHOLE = (
    "an all-reduce gives every rank the whole, although it needs only its "
    "shard, and sends twice as much as a reduce-scatter"
)
SLOW = {
    ("reduce-scatter", "all-reduce"): WHOLE,
    ("reduce-scatter", "reduce"): "you call one reduce per shard, but one reduce-scatter does the work for all ranks",
    (
        "reduce-scatter",
        "all-gather",
    ): "you send whole gradients to all ranks; a reduce-scatter adds them on the way",
    ("all-gather", "broadcast"): "you call one broadcast per shard, but one all-gather does the work for all ranks",
    ("all-gather", "all-reduce"): "you add shards padded with zeros, which sends twice as much as an all-gather",
}


def _too_many(made: Sequence[tuple[str, int]], wanted: Sequence[tuple[str, int]]) -> str:
    often = list(Counter(kind for kind, _ in made) - Counter(kind for kind, _ in wanted))
    if len(often) != 1:
        return "something is sent more often than necessary: which call's result is never used?"
    return f"you call more {often[0]}s than a step needs: which result is unused, or already available?"


def _listed(collectives: Sequence[tuple[str, int]]) -> str:
    """'all-reduce of 1, twice' …"""
    found = Counter(collectives).items()
    return "; ".join(f"{kind} of {n}" + f", {times} times" * (times > 1) for (kind, n), times in found) or "nothing"


def sent(run: ProcessRun, rank: int, counts: Callable[[int, Sequence[int]], bool] = lambda *_: True) -> list:
    """Return (kind, elements of the whole) of a rank's collectives in order, without groups of one rank.

    counts: selects collectives by a rank and the ranks of its group.
    """
    calls = (c for c in run.of(rank) if len(c.ranks) > 1 and c.name != "barrier" and counts(rank, c.ranks))
    return [(re.sub(r"_((into_)?tensor|coalesced)$", "", c.name).replace("_", "-"), c.elements) for c in calls]


def expect_sent(
    case: str,
    run: ProcessRun,
    wanted: Sequence[tuple[str, int]],
    why: Callable[[list], str] = lambda made: "",
    counts: Callable[[int, Sequence[int]], bool] = lambda *_: True,
) -> None:
    """Raise Wrong unless every rank's collectives are `wanted`, in any order; the values must be right already.

    why: another cause, from what a rank sends, for cases outside SLOW. counts: as in `sent`.
    """
    for rank in range(len(run.results)):
        made = sent(run, rank, counts)
        if sorted(made) == sorted(wanted):
            continue
        kinds, right = {kind for kind, _ in made}, {kind for kind, _ in wanted}
        causes = [said for (one, other), said in SLOW.items() if one in right - kinds and other in kinds - right]
        if not causes and kinds == right:
            more = len(made) > len(wanted)
            same = sum(n for _, n in made) == sum(n for _, n in wanted)
            pieces = "you send the same bytes in several pieces, and pay the latency of each call"
            causes = [pieces if same else _too_many(made, wanted) if more else ""]
        found = f"the values are right, but rank {rank} sends {_listed(made)} (elements of the whole)"
        cause = why(made) or (causes[0] if len(causes) == 1 else "")
        raise Wrong(case, f"{found}. Enough would be: {_listed(wanted)}", cause=cause)
