"""Time a function: warm-up, many runs, and their median and spread.

On a GPU the time is the device's, between events, with a cold L2 cache before each run (`triton.testing.do_bench`). On
a CPU it is `time.perf_counter`'s.
"""

import functools
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from labs_helpers.measure.progress import progress

Name = TypeVar("Name")
STEADY = 0.2  # times that spread more are not worth comparing


class MeasurementError(RuntimeError):
    """The measured function raised an error; `__cause__` is that error."""


@dataclass(frozen=True)
class Timing:
    """The times of one call in milliseconds over `runs` runs: the median, and the 20th and 80th percentiles."""

    median_ms: float
    p20_ms: float
    p80_ms: float
    runs: int

    @classmethod
    def of(cls, samples_ms: list[float]) -> "Timing":
        """Summarize samples in milliseconds, interpolating linearly between them."""
        import numpy

        p20, median, p80 = (float(q) for q in numpy.quantile(samples_ms, (0.2, 0.5, 0.8)))
        return cls(median, p20, p80, len(samples_ms))

    def record(self, name: str = "") -> dict[str, float | int]:
        """Return its fields for a record: 'median_ms', 'p20_ms', 'p80_ms' and 'runs'; for a named time such as
        "step", 'step_ms', 'step_p20_ms', 'step_p80_ms' and 'runs'."""
        part = f"{name}_" if name else ""
        median = {f"{name or 'median'}_ms": self.median_ms}
        return median | {f"{part}p20_ms": self.p20_ms, f"{part}p80_ms": self.p80_ms, "runs": self.runs}

    @property
    def spread(self) -> float:
        """Return the width of the middle 60% of runs as a fraction of the median; NaN if the median is 0."""
        return (self.p80_ms - self.p20_ms) / self.median_ms if self.median_ms else math.nan

    @property
    def steady(self) -> bool:
        """Return True if the spread is at most STEADY."""
        return not self.spread > STEADY

    def __str__(self) -> str:
        return f"{self.median_ms:.4g} ms (spread {self.spread:.0%}, {self.runs} runs)"


def measure(
    fn: Callable[[], object],
    *,
    warmup_ms: float = 25,
    repeat_ms: float = 100,
    min_runs: int = 5,
    device: str | None = None,
    graph: bool = False,
) -> Timing:
    """Time `fn()`: about `warmup_ms` unmeasured, then about `repeat_ms` and at least `min_runs` runs.

    device: 'cuda' or 'cpu', by default this machine's. `fn` takes no arguments; a time of a microsecond or less is
    mostly the cost of the call itself. graph: replay `fn` from a CUDA graph, back to back, without launch overhead and
    with an L2 cache that keeps whatever fits.

    Raises TypeError if `fn` cannot be called, ValueError for senseless settings, and MeasurementError if `fn` raises.
    """
    return Timing.of(_samples(_name(fn), fn, warmup_ms, repeat_ms, min_runs, device, graph))


def measure_rounds(
    functions: dict[str, Callable[[], object]],
    *,
    rounds: int = 5,
    warmup_ms: float = 25,
    repeat_ms: float = 100,
    min_runs: int = 5,
    device: str | None = None,
    graph: bool = False,
) -> dict[str, Timing]:
    """Time several functions round by round, so that a drift of the machine affects all of them equally.

    Each round measures every function once and starts with a different one; see `turns`. `repeat_ms` and `min_runs` are
    a function's share over all rounds. `warmup_ms` is spent in every round, since the other functions have cooled the
    caches. A function whose times spread by more than STEADY gets a second try, and the calmer try counts; in a
    notebook, a line names those that still spread. Raises as `measure` does.
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}; at least 1 is needed")
    runs = math.ceil(min_runs / rounds)

    def tried(names: list[str], told: str = "") -> dict[str, Timing]:
        samples: dict[str, list[float]] = {name: [] for name in names}
        for i, name in turns(names, rounds):
            say(f"timing {name}, round {i + 1} of {rounds}{told} …")
            samples[name] += _samples(name, functions[name], warmup_ms, repeat_ms / rounds, runs, device, graph)
        return {name: Timing.of(times) for name, times in samples.items()}

    with progress() as say:
        first = tried(list(functions))
        again = tried([name for name, timing in first.items() if not timing.steady], ", once more")
    kept = {
        name: again[name] if name in again and again[name].spread < timing.spread else timing
        for name, timing in first.items()
    }
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None and (said := unsteady(kept)):
        print(said)
    return kept


def turns(names: Iterable[Name], rounds: int) -> Iterator[tuple[int, Name]]:
    """Yield (round, name), every name once per round. Each round starts with the next name in line, so that none is
    always first or always follows a pause."""
    order = list(names)
    for number in range(rounds if order else 0):
        first = number % len(order)
        for name in order[first:] + order[:first]:
            yield number, name


def unsteady(timings: Mapping[str, Timing]) -> str:
    """Return a sentence that names the functions whose times spread by more than STEADY; '' if none does."""
    wide = [f"{name} ({timing.spread:.0%})" for name, timing in timings.items() if not timing.steady]
    if not wide:
        return ""
    return (
        f"⚠ Times that spread by more than {STEADY:.0%}, twice: {', '.join(wide)}.\n"
        "  Something else runs here. Do not compare them closely; run the cell again when the machine is quiet."
    )


def _samples(
    name: str,
    fn: Callable[[], object],
    warmup_ms: float,
    repeat_ms: float,
    min_runs: int,
    device: str | None,
    graph: bool,
) -> list[float]:
    if not callable(fn):
        raise TypeError(
            f"{name}: a function without arguments is measured, not a {type(fn).__name__}; "
            "pass a lambda, as in measure(lambda: torch.matmul(a, b))"
        )
    if min(warmup_ms, repeat_ms) < 0 or min_runs < 1:
        raise ValueError(
            f"warmup_ms={warmup_ms} and repeat_ms={repeat_ms} may not be negative, "
            f"and min_runs={min_runs} has to be 1 or more"
        )
    if device is None:
        from labs_helpers.measure.machine import this_machine

        device = this_machine().device
    if device not in ("cuda", "cpu"):
        raise ValueError(f"device is {device!r}; it may be 'cuda' or 'cpu'")
    if graph and device != "cuda":
        raise ValueError("graph=True needs a GPU: there are no CUDA graphs on a CPU")
    clock = _graph_samples if graph else _device_samples if device == "cuda" else _cpu_samples
    try:
        return clock(fn, warmup_ms, repeat_ms, min_runs)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise MeasurementError(f"{name} failed while it was measured: {what}") from error


def _cpu_samples(fn: Callable[[], object], warmup_ms: float, repeat_ms: float, min_runs: int) -> list[float]:
    started = time.perf_counter()
    fn()
    while (time.perf_counter() - started) * 1e3 < warmup_ms:
        fn()
    samples: list[float] = []
    total = 0.0
    while total < repeat_ms or len(samples) < min_runs:
        started = time.perf_counter()
        fn()
        samples.append((time.perf_counter() - started) * 1e3)
        # At least 1 ns per turn, so that a coarse clock cannot keep the loop running forever.
        total += max(samples[-1], 1e-6)
    return samples


def _device_samples(fn: Callable[[], object], warmup_ms: float, repeat_ms: float, min_runs: int) -> list[float]:
    from triton.testing import do_bench

    samples = do_bench(fn, warmup=warmup_ms, rep=repeat_ms, return_mode="all")
    # do_bench chooses the number of runs by time alone, so a slow function may run only once.
    while len(samples) < min_runs:
        repeat_ms = 2 * max(repeat_ms, min_runs * max(samples))
        samples = do_bench(fn, warmup=0, rep=repeat_ms, return_mode="all")
    return samples


def _graph_samples(fn: Callable[[], object], warmup_ms: float, repeat_ms: float, min_runs: int) -> list[float]:
    from triton.testing import do_bench_cudagraph

    # Triton captures `rep` ms of calls in one graph, replays it ten times, and returns the mean call of each replay.
    return do_bench_cudagraph(fn, rep=max(repeat_ms / 10, 1), return_mode="all")


def _name(fn: Callable[..., object]) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__qualname__", None) or type(fn).__name__
