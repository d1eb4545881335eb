"""Of ranks on GPUs: what ends a rank, by name of the guilty one, while it waits inside NCCL for one that never comes.

gloo raises where it waits. NCCL's kernels spin on the GPU instead, Python waits for the GPU, and PyTorch's own watchdog
says after the time limit that a collective has timed out, but not because of whom.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

BEAT_S = 0.5
SILENCE_S = 20.0  # of a live rank at most: compilers hold Python's lock for seconds


class Watch(threading.Thread):
    """Tells the other ranks through the store, twice per second, that this one lives and which collective it is at, and
    looks at theirs. `end` gets the words when a rank has failed, stays silent for `silence` s (SILENCE_S), or when no
    rank has begun a collective for `timeout` seconds; by default it prints them and ends the process.

    store: a connection of its own, since a wait in another thread would block a shared one; what `world` notes is read
    there, too. at: this rank's place, (number of the collective, what has begun).
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        at: Callable[[], tuple[int, str]],
        timeout: float,
        silence: float | None = None,
        end: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self.store, self.rank, self.size, self.at = store, rank, size, at
        self.timeout, self.silence, self.end = timeout, silence or SILENCE_S, end or _end
        self.over = threading.Event()
        self.beats: dict[int, tuple[str, float]] = {}  # by rank, the last one and when it was new
        self.places: dict[int, tuple[int, str]] = {}
        self.moved = monotonic()  # when a rank began a collective, as far as is known here

    def run(self) -> None:
        number = 0
        try:
            while not self.over.wait(BEAT_S):
                number += 1
                collective, what = self.at()
                self.store.set(f"beat {self.rank}", f"{number}|{collective}|{what}")
                if told := self._look():
                    self.end(f"{told} Rank {self.rank} ends.")
                    return
            self.store.set(f"beat {self.rank}", "over")
        except Exception:
            if not self.over.is_set():
                self.end(f"rank 0, which keeps the store, does not answer. Rank {self.rank} ends.")

    def stop(self) -> None:
        """This rank has come to its end, and is not missed."""
        self.over.set()
        self.join(5 * BEAT_S)  # the store may be gone, and a call to it wait for long

    def _look(self) -> str:
        """What is wrong, or nothing."""
        now = monotonic()
        for rank in range(self.size):
            key = f"beat {rank}"
            beat = self.store.get(key).decode() if self.store.check([key]) else ""
            before, since = self.beats.get(rank, (None, now))
            if beat != before:
                self.beats[rank] = beat, now
                if beat not in ("", "over"):
                    _, collective, what = beat.split("|", 2)
                    place = int(collective), what
                    if place != self.places.get(rank):
                        self.places[rank], self.moved = place, now
            elif beat != "over" and now - since > self.silence:
                return f"rank {rank} does not answer (killed, or stopped) since {self._what(rank)}."
            if rank != self.rank and self.store.check([f"failed {rank}"]) and now - since > self.silence / 4:
                return f"rank {rank} failed: {self.store.get(f'failed {rank}').decode()}."
        if now - self.moved > self.timeout:
            return self._stalled()
        return ""

    def _stalled(self) -> str:
        last = max(collective for collective, _ in self.places.values())
        behind = [rank for rank, (collective, _) in sorted(self.places.items()) if collective < last]
        if not behind:
            return f"no rank has gone on for {self.timeout:g} s, since {self._what(self.rank)}."
        who = "; ".join(f"rank {rank} is stuck since {self._what(rank)}" for rank in behind)
        return f"{who}: the others wait in collective {last} for {self.timeout:g} s."

    def _what(self, rank: int) -> str:
        if rank in self.places:
            collective, what = self.places[rank]
            return f"{what}, collective {collective}" if collective else what
        key = f"at {rank}"  # where `world` notes it at once
        return self.store.get(key).decode() if self.store.check([key]) else "its start"


def _end(told: str) -> None:
    """Ends the process without its exit handlers, which would wait for the GPU."""
    print(told, file=sys.stderr, flush=True)
    os._exit(1)
