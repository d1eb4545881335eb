"""A group that sends nothing: it times the compute of one rank's part alone, with tensors of the right shapes."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from labs_helpers.communication.interface import Communication, Done, Request


class SilentCommunication(Communication):
    """Rank `rank` of `size`, for timing compute alone. The rank takes its own values for everybody's, so results are
    wrong but finite and immediate."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size

    def hide_from_compiler(self) -> None:
        pass

    def _count(self, name: str, nbytes: int) -> None:
        pass  # otherwise torch.compile would recompile after each step

    def _all_reduce(self, x: Tensor, op: str, in_place: bool) -> Tensor:
        return x if in_place else x.clone()

    def _start_all_reduce(self, x: Tensor) -> Request:
        return Done()

    def _all_gather(self, x: Tensor, parts: Tensor) -> None:
        parts.copy_(x.expand_as(parts))

    def _reduce_scatter(self, parts: Tensor) -> Tensor:
        return parts[self.rank].clone()

    def _broadcast(self, x: Tensor, root: int) -> None: ...

    def _start_send(self, x: Tensor, to: int) -> Request:
        return Done()

    def _start_receive(self, x: Tensor, source: int) -> Request:
        x.zero_()  # a message contains no value of this rank
        return Done()

    def _split(self, axes: Mapping[str, list[int]]) -> dict[str, Communication]:
        return {name: SilentCommunication(ranks.index(self.rank), len(ranks)) for name, ranks in axes.items()}
