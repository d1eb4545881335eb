"""Run threads in turns: one rank at a time, the one with the smallest logical clock, so that runs repeat exactly."""

from __future__ import annotations

import contextvars
import ctypes
import gc
import queue
import sys
import threading
from collections.abc import Callable, Container
from contextlib import suppress

from labs_helpers.practice.deadlock import Deadlock
from labs_helpers.practice.errors import PracticeError, PracticeTimeout, RankFailed
from labs_helpers.practice.mailbox import BARRIER, RECV, Mailbox, Operation
from labs_helpers.practice.patience import IDLE, PATIENCE, wait_patiently
from labs_helpers.practice.place import place, raised_at
from labs_helpers.practice.schedule import Practice
from labs_helpers.practice.stand_in import stand_in

END_S, TRIES = 1.0, 5  # seconds for a rank to end when the run is over, and how often it is told


class _Ended(BaseException):
    """Raised inside a rank to end it; a student's `except Exception` does not catch it."""


class Scheduler:
    """Runs one function per rank. A rank runs until it waits for an operation that is not done."""

    def __init__(self, size: int, eager_limit: int | None):
        self.size = size
        self.mailbox = Mailbox(size, eager_limit)
        self.clock = [0] * size
        self.waiting: list[list[Operation]] = [[] for _ in range(size)]
        self.ended: set[int] = set()
        self.results = [None] * size
        self.barriers: list[int] = []
        self.requests: list[Operation] = []  # of Isend and Irecv
        self.constants: Container[str] | None = None  # MPI's constants that a negative rank may mean; None: all
        self._undo: Callable | None = None  # a function that restores MPI.Request
        self._arrived: list[Operation] = []
        self._failure: PracticeError | None = None
        self._holder: int | None = None
        self._stopping = False
        self._over = threading.Event()
        self._turns = [queue.SimpleQueue() for _ in range(size)]
        self._threads: list[threading.Thread] = []

    def know_requests(self, kind) -> None:
        """Make MPI.Request accept practice ranks' requests, from the first request to the end of the run."""
        self._undo = self._undo or stand_in(kind)

    def run(self, functions: list[Callable], timeout: float) -> Practice:
        """Run one function per rank to their end. timeout: seconds of processor time. Raises Deadlock, RankFailed,
        PracticeTimeout, and leaves no rank running."""
        for rank, function in enumerate(functions):
            target = contextvars.copy_context().run  # ranks inherit np.errstate
            self._threads.append(threading.Thread(target=target, args=(self._run, rank, function), daemon=True))
        try:
            for thread in self._threads:
                thread.start()
            self._pass_on()
            if late := wait_patiently(self._over, timeout):
                self._fail(self._too_slow(timeout, late))
        finally:
            self._stop()
            if self._undo is not None:
                self._undo()
        practice = Practice(
            self.size,
            self.results,
            sorted(self.mailbox.messages, key=lambda m: m.recv_time),
            self.mailbox.unreceived(),
            self.barriers,
            [str(one) for one in self.requests if not one.finished],
            sum(one.kind == RECV for one in self.requests),
        )
        if self._failure is None:
            return practice
        self._failure.practice = practice
        raise self._failure from getattr(self._failure, "error", None)

    def wait(self, rank: int, operations: list[Operation]) -> None:
        """Return when all `operations` of the calling rank are done, and finish them."""
        if self._stopping:
            raise _Ended
        self.waiting[rank] = operations
        if self._pass_on() != rank:
            self._turns[rank].get()
        if self._stopping:
            raise _Ended
        self.waiting[rank] = []
        self.clock[rank] = self._time(rank, operations)
        for operation in sorted(operations, key=lambda one: one.kind, reverse=True):  # sends first, then receives
            operation.finish()

    def barrier(self, rank: int) -> None:
        arrival = Operation(BARRIER, rank, posted=self.clock[rank])
        self._arrived.append(arrival)
        if len(self._arrived) == self.size:
            self.barriers.append(max(one.posted for one in self._arrived))
            for one in self._arrived:
                one.done = self.barriers[-1]
            self._arrived = []
        self.wait(rank, [arrival])

    def frames(self) -> dict:
        """Return rank → the frame that it is executing."""
        collecting = gc.isenabled()
        gc.disable()  # before 3.11.6 and 3.12.0 a collection inside this call may hang (CPython issue 106883)
        try:
            current = sys._current_frames()
        finally:
            if collecting:
                gc.enable()
        return {rank: current[thread.ident] for rank, thread in enumerate(self._threads) if thread.ident in current}

    def _run(self, rank: int, function: Callable) -> None:
        with suppress(_Ended):  # a second interrupt may arrive while the first is handled
            self._take_part(rank, function)
        self.ended.add(rank)

    def _take_part(self, rank: int, function: Callable) -> None:
        self._turns[rank].get()
        try:
            if not self._stopping:
                self.results[rank] = function()
        except _Ended:
            pass
        except BaseException as error:  # SystemExit too: it must not pass unseen
            where = f"\n  in {at}" if (at := raised_at(error)) else ""
            self._fail(RankFailed(f"rank {rank} raised {type(error).__name__}: {error}{where}", rank, error))
        finally:
            self.ended.add(rank)
            if not self._stopping:
                self._pass_on()

    def _pass_on(self) -> int | None:
        """Give the turn to the rank that can go on and has the smallest clock; return that rank.

        After `put` that rank runs, so anything this one then reads of the common state may belong to a later turn.
        """
        before, self._holder = self._holder, None
        if self._failure is not None:
            return None
        able = [
            rank
            for rank in range(self.size)
            if rank not in self.ended and all(one.done is not None for one in self.waiting[rank])
        ]
        if able:
            self._holder = holder = min(able, key=lambda rank: (self._time(rank, self.waiting[rank]), rank))
            if holder != before:
                self._turns[holder].put(None)
            return holder
        if len(self.ended) < self.size:
            self._fail(Deadlock.of(self))
        else:
            self._over.set()
        return None

    def _time(self, rank: int, operations: list[Operation]) -> int:
        return max([self.clock[rank], *(one.done for one in operations)])

    def _fail(self, failure: PracticeError) -> None:
        if self._failure is None and not self._stopping:
            self._failure = failure
            self._over.set()

    def _too_slow(self, timeout: float, late: str) -> PracticeError:
        rank, frames = self._holder, self.frames()
        if rank not in frames:  # between two ranks
            return PracticeTimeout(f"the ranks were still at work after {timeout:g} s")
        if late == IDLE:
            return PracticeTimeout(
                f"rank {rank} has computed nothing for {PATIENCE * timeout:g} s, in {place(frames[rank])}\n"
                "  What does it wait for? The other ranks wait for their turn."
            )
        return PracticeTimeout(
            f"rank {rank} was still at work after {timeout:g} s, in {place(frames[rank])}\n"
            "  Is there a loop that never ends? The other ranks wait for their turn."
        )

    def _stop(self) -> None:
        """End the remaining ranks, one after another."""
        self._stopping = True
        for rank, thread in enumerate(self._threads):
            self._turns[rank].put(None)
            for _ in range(TRIES):
                if self._holder == rank and thread.is_alive():  # it computes and makes no call
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Ended))
                if thread.ident is not None:
                    thread.join(END_S / TRIES)
                if not thread.is_alive():
                    break
