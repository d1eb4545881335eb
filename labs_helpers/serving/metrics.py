"""The server's counters and histograms, in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats
"""

from __future__ import annotations

import dataclasses
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from labs_helpers.serving.request import Output
from labs_helpers.serving.status import TOTALS

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
PREFIX = "serving_"


class Histogram:
    """Counts of values up to each bound; every value counts as below infinity."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds, self.counts, self.sum = tuple(bounds), [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> Iterator[str]:
        count = 0
        for bound, more in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            count += more
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f"{name}_sum {self.sum}"
        yield f"{name}_count {count}"


class Metrics:
    """What the server counts."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()  # by the reason to finish, or the status of an error
        self.prompt_tokens = self.generated_tokens = 0
        self.first_token, self.between_outputs, self.whole = Histogram(), Histogram(), Histogram()

    def text(self, open_requests: int, engine: Any) -> str:
        """Return all metrics. engine: its statistics, a dataclass whose numbers become metrics."""
        lines: list[str] = []

        def add(name: str, kind: str, told: str, found: Iterator[str] | Sequence[str]) -> None:
            lines.extend((f"# HELP {PREFIX}{name} {told}", f"# TYPE {PREFIX}{name} {kind}", *found))

        by_result = [f'{PREFIX}requests_total{{result="{result}"}} {n}' for result, n in sorted(self.answers.items())]
        add("requests_total", "counter", "Answered requests, by reason to finish or status", by_result)
        for name, value in (("prompt", self.prompt_tokens), ("generated", self.generated_tokens)):
            name = f"{name}_tokens_total"
            add(name, "counter", "Tokens of requests with an output", [f"{PREFIX}{name} {value}"])
        for name, told, histogram in (
            ("time_to_first_token_seconds", "From a request's body to its first output", self.first_token),
            ("time_between_outputs_seconds", "From one output of a request to the next", self.between_outputs),
            ("request_seconds", "From a request's body to its last output", self.whole),
        ):
            add(name, "histogram", told, histogram.lines(PREFIX + name))
        add("open_requests", "gauge", "Requests without a whole answer", [f"{PREFIX}open_requests {open_requests}"])
        for field in dataclasses.fields(engine):
            value = getattr(engine, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                total = field.name in TOTALS
                name = f"engine_{field.name}{'_total' if total else ''}"
                told = f"The engine's {field.name.replace('_', ' ')}, {'since its start' if total else 'now'}"
                add(name, "counter" if total else "gauge", told, [f"{PREFIX}{name} {value}"])
        return "\n".join([*lines, ""])


class Timing:
    """The times of one request, from now on; they go into the histograms of the metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began = self._last = time.monotonic()

    def add(self, output: Output) -> None:
        """Count an output that is about to be sent."""
        metrics, now = self._metrics, time.monotonic()
        if self._last == self._began:
            metrics.first_token.observe(now - self._began)
            metrics.prompt_tokens += output.prompt_tokens
        else:
            metrics.between_outputs.observe(now - self._last)
        metrics.generated_tokens += len(output.tokens)
        if output.finished:
            metrics.whole.observe(now - self._began)
        self._last = now
