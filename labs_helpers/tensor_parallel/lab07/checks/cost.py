"""What the ranks of a group sent for a right result: one collective, and no more bytes than it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from labs_helpers.course.verdict import Wrong
from labs_helpers.practice.groups import GroupRun
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import WORLD

LATENCY = "every collective costs its latency anew"
WIDER = "what travels has a wider dtype than the input, or there is more of it"


def expect_one_collective(
    case: str, run: GroupRun, groups: Iterable[tuple], cheap: tuple, nbytes: int, costly: Mapping[str, str]
) -> None:
    """Raises Wrong unless the ranks of each of `groups` made one collective, one of `cheap`, of up to `nbytes`.

    cheap: names; the first is the one to ask for. costly: name → what that one costs more. A group of one rank may
    have made none.
    """
    for group in groups:
        calls = [call for call in run.calls if set(call.ranks) & set(group)]
        if other := next((call for call in calls if call.ranks != tuple(group)), None):
            found = f"{other.name} of ranks {_listed(other.ranks)}; the ranks of this model are {_listed(group)}"
            raise Wrong(case, found, cause=WORLD)
        if len(calls) == 1 and calls[0].name in cheap and calls[0].nbytes <= nbytes or len(calls) < len(group) == 1:
            continue
        counted = Counter((call.name, call.nbytes) for call in calls)
        made = ", ".join(f"{times} × {name}{_of(size)}" for (name, size), times in counted.items()) or "no collective"
        cause = next((costly[call.name] for call in calls if call.name in costly), "")
        raise Wrong(
            case,
            f"the values are right, but ranks {_listed(group)} make {made}; one {cheap[0]}{_of(nbytes)} is enough",
            cause=cause or (LATENCY if len(calls) > 1 else WIDER),
            advice="count the bytes that leave each rank",
        )


def _of(nbytes: int) -> str:
    return f" of {nbytes:,} bytes" if nbytes else ""


def _listed(ranks: Iterable[int]) -> str:
    return ", ".join(map(str, ranks))
