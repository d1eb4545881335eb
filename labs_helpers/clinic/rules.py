"""Rules that name the cause of a job's trouble from its findings, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labs_helpers.clinic.causes import HEALTHY

COMPARISONS = {"<": float.__lt__, ">": float.__gt__}


@dataclass(frozen=True)
class Rule:
    """If all conditions (finding, '<' or '>', bound) hold, the cause is `cause`."""

    cause: str
    conditions: tuple[tuple[str, str, float], ...]

    def holds(self, findings: Mapping[str, Any]) -> bool:
        """A finding that no instrument made fulfils no condition."""
        return all(
            name in findings and COMPARISONS[sign](float(findings[name]), float(bound))
            for name, sign, bound in self.conditions
        )


def diagnose(findings: Mapping[str, Any], rules: Sequence[Rule]) -> str:
    """Return the cause of the first rule that holds, or HEALTHY."""
    return next((rule.cause for rule in rules if rule.holds(findings)), HEALTHY)


REFERENCE = (
    Rule("dead rank", (("dead ranks", ">", 0),)),
    Rule("deadlock", (("waiting ranks", ">", 0),)),
    Rule("diverging replicas", (("replicas that differ", ">", 0),)),
    Rule("overflow", (("steps without a change", ">", 0.5),)),
    Rule("same data", (("shared data", ">", 0.2),)),
    Rule("leak", (("growth", ">", 0.005),)),
    Rule("activations", (("headroom", "<", 0), ("activations", ">", 0.5))),
    Rule("fragmentation", (("refused requests", ">", 0), ("headroom", ">", 0.1))),
    Rule("recompilation", (("compilations", ">", 0.2),)),
    Rule("printing", (("lines printed", ">", 0.8), ("waits", ">", 4))),
    Rule("waiting for values", (("waits", ">", 4),)),
    Rule("straggler", (("spread of FLOPs", ">", 1.5),)),
    Rule("across nodes", (("avoidable", ">", 0.2),)),
    Rule("small messages", (("collectives", ">", 8), ("bytes per collective", "<", 1e6))),
    Rule("starved loader", (("data", ">", 0.2), ("without loading", "<", 0.8))),
    Rule("tiny batch", (("with twice the batch", "<", 1.35), ("headroom", ">", 0.5))),
)

# The tree of a guide to distributed training, in its order: utilization below 50% means data loading; free memory, a
# batch to enlarge; an all-reduce above 20% of the step, or a scaling efficiency below 70%, communication to reduce. Its
# question about memory bandwidth leads to no cause of ours, but to fused kernels.
GUIDE = (
    Rule("starved loader", (("utilization", "<", 0.5),)),
    Rule("tiny batch", (("headroom", ">", 0.2),)),
    Rule("small messages", (("communication", ">", 0.2),)),
    Rule("small messages", (("without communication", "<", 0.7),)),
)
