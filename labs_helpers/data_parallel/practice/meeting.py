"""A collective of a practice group: the ranks that have come, and in what their calls differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labs_helpers.collectives.practice.collective import Call, Meeting, Mismatch


class TorchMeeting(Meeting):
    """As Meeting, in torch.distributed's words."""

    def join(self, place: int, call: Call, finish: Callable[[list[Any]], Any]) -> bool:
        for other in self.calls.values():
            if call.name != other.name:
                raise Mismatch(
                    f"rank {call.rank} calls {call.name} where rank {other.rank}, of the same group, calls "
                    f"{other.name}; all ranks of a group call the same collectives in the same order"
                )
            for what, mine in call.alike.items():
                if mine != (theirs := other.alike[what]):
                    raise Mismatch(
                        f"{call.name}: {what} is {mine} on rank {call.rank} and {theirs} on rank {other.rank}"
                    )
        return super().join(place, call, finish)
