"""Ranks that watch one another through a store, and name the one that died, was stopped, failed first or is behind.

A rank that waits for a dead or stopped one sees at best that a connection closed or that time ran out, and so does
every other healthy rank. Their errors say nothing about the cause, so no error's words are read here. Instead every
rank sends heartbeats. The culprit is the rank whose heartbeats stop; if none stop, the first rank that reported an
error, or the one that has begun fewer collectives than the others. A rank may be quiet and yet at work, while a
compiler holds Python's lock; so the ranks of one host also ask the system whether the process of a quiet one is dead
or stopped.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from labs_helpers.launch.leave import end_process
from labs_helpers.launch.stuck import place_of
from labs_helpers.launch.worker import DEAD, STOPPED, state_and_start, where_pids_mean_the_same

BEAT_S = 0.5
SILENCE_S = 20.0  # a live rank may be quiet for seconds, while a compiler holds Python's lock; not longer
# A dead or stopped process is named after this time: until then, the other ranks of a job that was paused may continue,
# and torchrun may name a dead one by itself.
STILL_S = 4.0
PROOF = 2  # this many new heartbeats show that a rank is alive; it may have sent the first before it died
RUNNING, FAILED, OVER, GONE = "running", "failed", "over", "gone"


@dataclass
class Heard:
    """A rank's last heartbeat. begun: the number of collectives, by process group; said: its error; at: the activity;
    where: the line of its program; process: number, start, and where such numbers mean the same. quiet: checks of this
    rank without a new heartbeat; still: the last of them, in which the process was dead or stopped; life: its state
    then, as /proc has it; fresh: new heartbeats since some rank reported an error."""

    number: int
    state: str
    begun: dict[str, int]
    said: str = ""
    at: str = "its start"
    where: str = ""
    process: Sequence[str] = ("", "", "")
    quiet: int = field(default=0, compare=False)
    still: int = field(default=0, compare=False)
    life: str = field(default="", compare=False)
    fresh: int = field(default=0, compare=False)


class Watch(threading.Thread):
    """Sends this rank's heartbeats from `start` to `finish`, and monitors those of the other ranks.

    As soon as any rank knows the culprit, all ranks learn its verdict from the store. A rank that is still running then
    prints it and ends its process, because an NCCL kernel would wait forever, and kills the stopped ranks of its host,
    which cannot end themselves. Time is counted in this rank's own checks, so that a job that was paused as a whole
    continues.

    store: a separate connection, because a wait in another thread would block a shared one. by_torchrun: whether
    torchrun keeps it; otherwise rank 0 does. begun: this rank's collectives so far, by process group ("0" is all
    ranks). timeout: seconds within which all ranks must arrive, and some rank must begin a collective or another noted
    activity; limit: seconds of the whole run. end: gets the message and the processes to kill.
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
        by_torchrun: bool = False,
        silence: float | None = None,
        end: Callable[[str, list[int]], None] | None = None,
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self.store, self.rank, self.size, self.begun = store, rank, size, begun
        self.timeout, self.limit, self.by_torchrun = timeout, limit, by_torchrun
        self.silence, self.end_process = min(silence or SILENCE_S, timeout), end or end_process
        self.state, self.said, self.at, self.verdict = RUNNING, "", "its start", ""
        self.process = [str(os.getpid()), state_and_start("self")[1], where_pids_mean_the_same()]
        self.all_here, self.wake, self.done = threading.Event(), threading.Event(), threading.Event()
        self.heard: dict[int, Heard] = {}
        self.looks = self.moved = 0  # looks so far; the look at which a rank was seen to go on
        self.failing = False  # whether some rank has reported an error

    def start(self) -> None:
        super().start()
        threading.Thread(target=self._watch_store, name="watch of the store", daemon=True).start()

    def note(self, what: str) -> None:
        """Note the activity that this rank begins, for a later message about it."""
        self.moved, self.at = self.looks, what
        self._beat()

    def finish(self, said: str = "") -> str:
        """Report that this rank has ended, with the error `said` or without one. Wait for all ranks, and return the
        verdict: '' if no rank failed."""
        self.state, self.said = (FAILED, said) if said else (OVER, "")
        self.wake.set()
        self.join()
        return self.verdict

    def end(self, told: str) -> None:
        """Print the verdict, kill the ranks of this host that are stopped, and end this process."""
        stopped = [int(one.process[0]) for one in list(self.heard.values()) if self._life(one) == STOPPED]
        self.end_process(told, stopped)

    def run(self) -> None:
        try:
            if self.rank and not self.by_torchrun:
                self.store.get("rank 0")  # if it, and with it the store, is stopped, its process has to be known
                self._look()
            while not (self.verdict or self._all_over()):
                self.wake.wait(BEAT_S)
                self.wake.clear()
                self._beat()
                self._look()
                self.verdict = self._agreed()
            at_work, self.state = self.state == RUNNING, GONE
            self._beat()
            keeps = self.rank == 0 and not self.by_torchrun
            while keeps and any(one.state != GONE and not self._is_quiet(one) for one in self.heard.values()):
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
        where = place_of(sys._current_frames().get(threading.main_thread().ident or 0))
        mine = [self.looks, self.state, self.begun(), self.said, self.at, where, self.process]
        self.store.set(f"rank {self.rank}", json.dumps(mine))

    def _look(self) -> None:
        self.looks += 1
        for rank in range(self.size):
            before = self.heard.get(rank)
            if before is None and not self.store.check([f"rank {rank}"]):
                continue
            now = Heard(*json.loads(self.store.get(f"rank {rank}")))
            if now == before:
                self._count_quiet(before)
                continue
            if before is None or (now.begun, now.at) != (before.begun, before.at):
                self.moved = self.looks
            now.fresh = before.fresh + self.failing if before else 0
            self.heard[rank] = now
        self.failing = self.failing or any(one.state == FAILED for one in self.heard.values())
        if len(self.heard) == self.size:
            self.all_here.set()

    def _count_quiet(self, one: Heard) -> None:
        one.quiet, one.life = one.quiet + 1, self._life(one)
        one.still = one.still + 1 if one.life in (STOPPED, *DEAD) else 0

    def _life(self, one: Heard) -> str:
        """Return the state of a rank's process as /proc has it; '' if this rank cannot know it."""
        number, start, place = one.process
        if place != self.process[2] or not self.process[1]:  # a process that does not see itself sees no other
            return ""
        life, started = state_and_start(number)
        return life if started in (start, "") else ""

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
            return "; ".join(f"rank {rank} is stuck since {self._what(rank)}{self._where(rank)}" for rank in behind)
        late = [rank for rank in counts if len(counts) < len(self.heard)] or list(self.heard)
        return "; ".join(f"rank {rank} is at {self._what(rank)}{self._where(rank)}" for rank in late)

    def _what(self, rank: int) -> str:
        what, count = self.heard[rank].at, self.heard[rank].begun.get("0")
        return f"{what}, collective {count}" if count else what

    def _where(self, rank: int) -> str:
        where = self.heard[rank].where
        return f", {where}" if where else ""

    def _silent(self) -> list[int]:
        return [
            rank for rank, one in sorted(self.heard.items())
            if self._is_quiet(one) and (one.state == RUNNING or one.state == OVER and one.life not in DEAD)
        ]  # fmt: skip

    def _is_quiet(self, one: Heard) -> bool:
        return one.quiet * BEAT_S > self.silence or one.still * BEAT_S > STILL_S

    def _all_over(self) -> bool:
        return len(self.heard) == self.size and all(one.state in (OVER, GONE) for one in self.heard.values())

    def _seconds(self, look: int = 0) -> float:
        return (self.looks - look) * BEAT_S

    def _watch_store(self) -> None:
        """End this rank if a call to the store does not return, because the process that keeps it is stopped."""
        seen, keeper = -1, Heard(0, RUNNING, {})
        while not self.done.wait(BEAT_S):
            if self.looks == seen:
                self._count_quiet(keeper)
            else:
                seen, keeper = self.looks, replace(self._keeper() or keeper, quiet=0, still=0)
            if self._is_quiet(keeper):
                self.end(f"{self._without_store()} Rank {self.rank} ends.")
                return

    def _without_store(self) -> str:
        who = "torchrun" if self.by_torchrun else "rank 0"
        since = f" since {self._what(0)}" if self._keeper() else ""
        return f"{who}, which keeps the store, does not answer (killed, or stopped){since}."

    def _keeper(self) -> Heard | None:
        return None if self.by_torchrun else self.heard.get(0)


def _sentence(parts: Any) -> str:
    return "; ".join(parts).rstrip(".") + "."
