"""Ranks that watch one another through a store, and name the one that died, was stopped, failed first or is behind.

A rank that waits for a dead or stopped one sees at best that a connection closed or that time ran out, and so does
every other healthy rank. Their errors say nothing about the cause, so no error's words are read here. Instead every
rank sends heartbeats. The culprit is the rank whose heartbeats stop; if none stop, the first rank that reported an
error, or the one that has begun fewer collectives than the others.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labs_helpers.launch.leave import end_process

BEAT_S = 0.5
SILENCE_S = 20.0  # a live rank may be quiet for seconds, while a compiler holds Python's lock; not longer
PROOF = 2  # this many new heartbeats show that a rank is alive; it may have sent the first before it died
RUNNING, FAILED, OVER, GONE = "running", "failed", "over", "gone"


@dataclass
class Heard:
    """A rank's last heartbeat. begun: the number of collectives, by process group; said: its error. quiet: checks of
    this rank without a new heartbeat; fresh: new heartbeats since some rank reported an error."""

    number: int
    state: str
    begun: dict[str, int]
    said: str = ""
    quiet: int = field(default=0, compare=False)
    fresh: int = field(default=0, compare=False)


class Watch(threading.Thread):
    """Sends this rank's heartbeats from `start` to `finish`, and monitors those of the other ranks.

    As soon as any rank knows the culprit, all ranks learn its verdict from the store. A rank that is still running then
    calls `end` with it, which by default prints it and ends the process, because an NCCL kernel would wait forever.
    Time is counted in this rank's own checks, so that a job that was paused as a whole continues.

    store: a separate connection, because a wait in another thread would block a shared one. keeper: a description of
    the process that keeps the store; keeps: whether this process keeps it. begun: this rank's collectives so far, by
    process group ("0" is all ranks). timeout: seconds within which all ranks must arrive, and some rank must begin a
    collective or another noted activity; limit: seconds of the whole run.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        begun: Callable[[], dict[str, int]],
        timeout: float,
        limit: float,
        *,
        keeper: str = "rank 0",
        keeps: bool = False,
        silence: float | None = None,
        end: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self.store, self.rank, self.size, self.begun = store, rank, size, begun
        self.timeout, self.limit, self.keeper, self.keeps = timeout, limit, keeper, keeps
        self.silence, self.end = min(silence or SILENCE_S, timeout), end or end_process
        self.state, self.said, self.verdict = RUNNING, "", ""
        self.all_here, self.wake, self.done = threading.Event(), threading.Event(), threading.Event()
        self.heard: dict[int, Heard] = {}
        self.looks = self.moved = 0  # looks so far; the look at which a rank was seen to go on
        self.failing = False  # whether some rank has reported an error

    def start(self) -> None:
        super().start()
        threading.Thread(target=self._watch_store, name="watch of the store", daemon=True).start()

    def note(self, what: str) -> None:
        """Note the activity that this rank begins, for a later message about it."""
        self.moved = self.looks
        self.store.set(f"at {self.rank}", what)

    def finish(self, said: str = "") -> str:
        """Report that this rank has ended, with the error `said` or without one. Wait for all ranks, and return the
        verdict: '' if no rank failed."""
        self.state, self.said = (FAILED, said) if said else (OVER, "")
        self.wake.set()
        self.join()
        return self.verdict

    def run(self) -> None:
        try:
            while not (self.verdict or self._all_over()):
                self.wake.wait(BEAT_S)
                self.wake.clear()
                self._beat()
                self._look()
                self.verdict = self._agreed()
            at_work, self.state = self.state == RUNNING, GONE
            self._beat()
            while self.keeps and any(one.state != GONE and not self._is_quiet(one) for one in self.heard.values()):
                self.done.wait(BEAT_S)  # the other ranks still have to read the verdict
                self._look()
        except Exception:  # of the store
            at_work = self.state == RUNNING
            self.verdict = self.verdict or self._without_store()
        self.done.set()
        if at_work:
            self.end(f"{self.verdict} Rank {self.rank} ends.")

    def _beat(self) -> None:
        if self.state == FAILED:
            self.store.compare_set("first", "", str(self.rank))
        mine = [self.looks, self.state, self.begun(), self.said]
        self.store.set(f"rank {self.rank}", json.dumps(mine))

    def _look(self) -> None:
        self.looks += 1
        for rank in range(self.size):
            before = self.heard.get(rank)
            if before is None and not self.store.check([f"rank {rank}"]):
                continue
            now = Heard(*json.loads(self.store.get(f"rank {rank}")))
            if now == before:
                before.quiet += 1
                continue
            if before is None or now.begun != before.begun:
                self.moved = self.looks
            now.fresh = before.fresh + self.failing if before else 0
            self.heard[rank] = now
        self.failing = self.failing or any(one.state == FAILED for one in self.heard.values())
        if len(self.heard) == self.size:
            self.all_here.set()

    def _agreed(self) -> str:
        """Return the verdict of the first rank that reached one; '' until then."""
        if self.store.check(["verdict"]):
            return str(self.store.get("verdict").decode())
        mine = self._conclude()
        return str(self.store.compare_set("verdict", "", mine).decode()) if mine else ""

    def _conclude(self) -> str:
        known = self.heard
        if silent := self._silent():
            return _sentence(
                f"rank {rank} does not answer (killed, or stopped) since {self._what(rank)}" for rank in silent
            )
        if self.failing and all(
            one.fresh >= PROOF or one.state != RUNNING or rank == self.rank for rank, one in known.items()
        ):
            first = int(self.store.get("first"))
            return _sentence([f"rank {first} failed: {known[first].said}"])
        if len(known) < self.size and self._seconds() > self.timeout:
            late = [rank for rank in range(self.size) if rank not in known]
            return _sentence(
                f"rank {rank} has not arrived within {self.timeout:g} s (killed, stopped or never started)"
                for rank in late
            )
        if self._seconds(self.moved) > self.timeout:
            return f"no rank has gone on for {self.timeout:g} s: {self._who_is_behind()}."
        if self._seconds() > self.limit:
            return f"the run has not ended within {self.limit:g} s: {self._who_is_behind()}."
        return ""

    def _who_is_behind(self) -> str:
        """Return the ranks that have begun fewer collectives than another rank of the same process group."""
        counts = {rank: one.begun for rank, one in self.heard.items() if one.state == RUNNING}
        most: dict[str, int] = {}
        for group, count in (pair for of_rank in counts.values() for pair in of_rank.items()):
            most[group] = max(count, most.get(group, 0))
        behind = [rank for rank in counts if any(count < most[group] for group, count in counts[rank].items())]
        if behind:
            return "; ".join(f"rank {rank} is stuck since {self._what(rank)}" for rank in behind)
        late = [rank for rank in counts if len(counts) < len(self.heard)] or list(self.heard)
        return "; ".join(f"rank {rank} is at {self._what(rank)}" for rank in late)

    def _what(self, rank: int) -> str:
        key, count = f"at {rank}", self.heard[rank].begun.get("0")
        what = self.store.get(key).decode() if self.store.check([key]) else "its start"
        return f"{what}, collective {count}" if count else what

    def _silent(self) -> list[int]:
        return [
            rank for rank, one in sorted(self.heard.items()) if self._is_quiet(one) and one.state in (RUNNING, OVER)
        ]

    def _is_quiet(self, one: Heard) -> bool:
        return one.quiet * BEAT_S > self.silence

    def _all_over(self) -> bool:
        return len(self.heard) == self.size and all(one.state in (OVER, GONE) for one in self.heard.values())

    def _seconds(self, look: int = 0) -> float:
        return (self.looks - look) * BEAT_S

    def _watch_store(self) -> None:
        """End this rank if a call to the store does not return, because the process that keeps it is stopped."""
        seen, quiet = -1, 0
        while not self.done.wait(BEAT_S):
            seen, quiet = self.looks, quiet + 1 if self.looks == seen else 0
            if quiet * BEAT_S > self.silence:
                self.end(f"{self._without_store()} Rank {self.rank} ends.")
                return

    def _without_store(self) -> str:
        return f"{self.keeper}, which keeps the store, does not answer (killed, or stopped)."


def _sentence(parts: Any) -> str:
    return "; ".join(parts).rstrip(".") + "."
