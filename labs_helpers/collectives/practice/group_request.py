"""What a collective that does not block returns."""

from __future__ import annotations

from labs_helpers.collectives.practice.communicator import PracticeRequest
from labs_helpers.collectives.practice.mailbox import COLLECTIVE, Operation


class GroupRequest(PracticeRequest):
    """The result is in its buffer after Wait, or after a Test that says so, never before."""

    def Test(self) -> bool:
        """Whether it is done. Others come to their turn first, so that a loop of Tests ends."""
        baton, rank = self._comm._baton, self._operations[0].rank
        baton.wait(rank, [Operation(COLLECTIVE, rank, done=baton.clock[rank] + 1)])
        if any(one.done is None or one.done > baton.clock[rank] for one in self._operations):
            return False
        for one in self._operations:
            one.finish()
        return True

    wait, test = PracticeRequest.Wait, Test  # mpi4py has both

    def __getattr__(self, name: str):
        raise AttributeError(f"requests of practice ranks know Wait, Waitall and Test, not {name!r}")
