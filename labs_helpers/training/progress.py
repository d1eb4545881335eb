"""Report the progress of a run."""

from __future__ import annotations

import time
from statistics import fmean


def duration(seconds: float) -> str:
    """Format seconds as '0.4 s', '40 s', '3 min' or '2 h 05 min'."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


class Progress:
    """The progress of a run of `steps` steps, `done` of which were completed before."""

    def __init__(self, steps: int, done: int = 0) -> None:
        self.steps, self.before, self.begun = steps, done, time.perf_counter()

    def line(self, done: int, losses: list[float]) -> str:
        """Return the line after step `done`: the mean loss since the last line, and the estimated time left."""
        spent = (time.perf_counter() - self.begun) / max(1, done - self.before)
        left = f", {duration(spent * (self.steps - done))} left" if done < self.steps else ""
        step = f"step {done:>{len(str(self.steps))}} of {self.steps}"
        return f"{step}: loss {fmean(losses):.4f}, {1e3 * spent:.3g} ms per step{left}"
