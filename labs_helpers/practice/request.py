"""The requests that Isend and Irecv return on practice ranks, and a replacement for MPI.Request's class functions."""

from __future__ import annotations

from labs_helpers.practice.mailbox import COLLECTIVE, Operation


class PracticeRequest:
    """A request whose data is in its buffer after Wait, or after a Test that returns True, never before."""

    def __init__(self, comm, operations: list[Operation]):
        self._comm, self._operations = comm, operations
        comm._scheduler.requests += operations
        comm._scheduler.know_requests(Requests)

    def Wait(self, status=None) -> bool:
        """Wait until the message has been sent, or received into its buffer."""
        self._comm._wait(self._operations, status)
        return True

    def Test(self, status=None) -> bool:
        """Return True if it is done. Other ranks run first, so a loop of Tests ends."""
        scheduler, rank = self._comm._scheduler, self._operations[0].rank if self._operations else None
        if rank is not None:
            scheduler.wait(rank, [Operation(COLLECTIVE, rank, done=scheduler.clock[rank] + 1)])
        if any(one.done is None or one.done > scheduler.clock[rank] for one in self._operations):
            return False
        return self.Wait(status)

    wait, test = Wait, Test  # mpi4py has both spellings

    @classmethod
    def Waitall(cls, requests, statuses=None) -> bool:
        """Wait for all of them."""
        requests = list(requests)
        if requests:
            requests[0]._comm._wait([one for request in requests for one in request._operations])
        return True

    waitall = Waitall

    @classmethod
    def Testall(cls, requests, statuses=None) -> bool:
        return all([request.Test() for request in requests])

    def __getattr__(self, name: str):
        raise AttributeError(f"requests of practice ranks know Wait, Waitall, Test and Testall, not {name!r}")


class Requests:
    """Replaces MPI.Request while practice ranks run: its class functions accept their requests, and real ones too."""

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name: str):
        real = getattr(self._real, name)
        if name not in ("Waitall", "waitall", "Testall"):
            return real
        return lambda requests, *rest: self._of(requests := list(requests), name, real)(requests, *rest)

    def _of(self, requests, name: str, real):
        """Return the function of the class that the requests belong to: practice ranks' own, or its counterpart
        elsewhere."""
        return real if not requests or isinstance(requests[0], self._real) else getattr(requests[0], name)

    def __instancecheck__(self, instance) -> bool:
        return isinstance(instance, self._real | PracticeRequest)

    def __call__(self, *arguments):
        return self._real(*arguments)
