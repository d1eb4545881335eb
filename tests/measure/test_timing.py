import functools
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from labs_helpers.measure import machine, timing
from labs_helpers.measure.timing import MeasurementError, Timing, measure, measure_rounds, unsteady

ROOT = Path(__file__).resolve().parents[2]


class Clock:
    """A clock that only the measured functions move."""

    def __init__(self, monkeypatch):
        self.seconds = 0.0
        self.calls = []
        monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: self.seconds))

    def task(self, name, *durations_ms):
        """A function that takes the given times one after another, and the last one from then on."""
        durations = list(durations_ms)

        def fn():
            self.calls.append(name)
            self.seconds += (durations.pop(0) if len(durations) > 1 else durations[0]) * 1e-3

        return fn


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_warm_up_is_not_measured_and_the_budget_sets_the_runs(clock):
    t = measure(clock.task("f", 500, 8), warmup_ms=504, repeat_ms=80, device="cpu")
    assert t.median_ms == pytest.approx(8) and t.p80_ms == pytest.approx(8)
    assert 10 <= t.runs <= 11
    assert len(clock.calls) == t.runs + 2


def test_a_slow_function_still_gets_its_least_runs(clock):
    t = measure(clock.task("f", 1000), warmup_ms=0, repeat_ms=10, min_runs=7, device="cpu")
    assert t.runs == 7 and len(clock.calls) == 8


def test_a_clock_that_stands_still_does_not_hang(clock):
    t = measure(clock.task("f", 0), warmup_ms=0, repeat_ms=1e-3, device="cpu")
    assert t.median_ms == 0 and math.isnan(t.spread)


def test_median_and_spread():
    t = Timing.of([5.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    assert (t.median_ms, t.p20_ms, t.p80_ms, t.runs) == (3.5, 2.0, 5.0, 6)
    assert t.spread == pytest.approx(3 / 3.5)
    assert str(t) == "3.5 ms (spread 86%, 6 runs)"


def test_peers_take_turns(clock):
    peers = {"fast": clock.task("fast", 5), "slow": clock.task("slow", 40)}
    timings = measure_rounds(peers, rounds=3, warmup_ms=0, repeat_ms=0, min_runs=6, device="cpu")
    fast, slow = ["fast"] * 3, ["slow"] * 3  # runs of a turn; every round begins with another
    assert clock.calls == fast + slow + slow + fast + fast + slow
    assert {name: t.runs for name, t in timings.items()} == {"fast": 6, "slow": 6}
    assert timings["slow"].median_ms == pytest.approx(40)


def test_a_drift_of_the_machine_hits_all_peers_alike(clock):
    def drifting(name):
        def fn():
            clock.calls.append(name)
            clock.seconds += 1e-3 * (1 + len(clock.calls))

        return fn

    timings = measure_rounds(
        {"a": drifting("a"), "b": drifting("b")},
        rounds=40,
        warmup_ms=0,
        repeat_ms=0,
        min_runs=1,
        device="cpu",
    )
    assert timings["a"].median_ms == pytest.approx(timings["b"].median_ms, rel=0.05)
    assert timings["a"].spread > 0.3


def test_what_spreads_is_tried_again_and_the_calmer_try_counts(clock, capsys, monkeypatch):
    class Shell:
        @staticmethod
        def get_ipython():
            return True

    round_ = (5, 1, 9)  # the first is for warming up
    times = {"calm": [5], "noisy once": [*round_, *round_, 5], "noisy": round_ * 4}
    functions = {name: clock.task(name, *durations) for name, durations in times.items()}
    monkeypatch.setitem(sys.modules, "IPython", Shell)
    timings = measure_rounds(functions, rounds=2, warmup_ms=0, repeat_ms=0, min_runs=4, device="cpu")
    assert timings["noisy once"].steady and timings["noisy"].spread > 1 and timings["calm"].steady
    assert clock.calls.count("calm") * 2 == clock.calls.count("noisy once") == clock.calls.count("noisy")
    told = capsys.readouterr().out
    assert told == unsteady(timings) + "\n" and "twice: noisy (1" in told and "calm" not in told


@pytest.mark.parametrize(("session", "lines"), [("lab.ipynb", 3), (None, 0)])
def test_who_waits_is_shown_what_is_timed_and_nothing_stays(session, lines, monkeypatch):
    from labs_helpers.measure import progress

    shown = []
    monkeypatch.setattr("IPython.get_ipython", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda data, **how: shown.append(data) or Handle())
    for name in ("JPY_SESSION_NAME", "VSCODE_PID", "COLAB_RELEASE_TAG"):
        monkeypatch.delenv(name, raising=False)
    if session:
        monkeypatch.setenv("JPY_SESSION_NAME", session)

    class Handle:
        def update(self, data, **how):
            shown.append(data)

    with progress.progress() as say:
        say("too early")
        monkeypatch.setattr(progress, "AFTER_S", 0)
        say("a")
        say("b")
    assert [line["text/plain"] for line in shown] == ["a", "b", ""][:lines]


def test_a_function_that_fails_is_named_and_its_error_kept():
    def broken_kernel():
        raise IndexError("row 9 of 9")

    with pytest.raises(MeasurementError, match=r"broken_kernel failed .* IndexError: row 9 of 9") as caught:
        measure(broken_kernel, device="cpu")
    assert isinstance(caught.value.__cause__, IndexError)
    with pytest.raises(MeasurementError, match="broken_kernel failed"):
        measure(functools.partial(broken_kernel), device="cpu")
    with pytest.raises(MeasurementError, match="mine failed"):
        measure_rounds({"mine": broken_kernel}, device="cpu")


def test_an_interrupt_is_not_swallowed():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(interrupted, device="cpu")


@pytest.mark.parametrize("settings, error, words", [
    ({"fn": 3.0}, TypeError, "pass a lambda"),
    ({"min_runs": 0}, ValueError, "min_runs"),
    ({"repeat_ms": -1}, ValueError, "repeat_ms"),
    ({"device": "tpu"}, ValueError, "'tpu'"),
])  # fmt: skip
def test_bad_settings(settings, error, words):
    with pytest.raises(error, match=words):
        measure(**({"fn": lambda: None, "device": "cpu"} | settings))


def test_rounds_have_to_be_positive():
    with pytest.raises(ValueError, match="rounds is 0"):
        measure_rounds({}, rounds=0)


DEVICE_TWIN = """
import time
from types import SimpleNamespace
from labs_helpers.measure.machine import prepare_triton
prepare_triton()
import triton
from labs_helpers.measure.timing import MeasurementError, measure

clock, cleared, calls = [0.0], [0], [0]

class Event:
    def __init__(self, enable_timing): assert enable_timing
    def record(self): self.at = clock[0]
    def elapsed_time(self, end): return (end.at - self.at) * 1e3

def clear(cache): cleared[0] += 1

triton.runtime.driver.set_active(SimpleNamespace(
    get_device_interface=lambda: SimpleNamespace(Event=Event, synchronize=lambda: None),
    get_empty_cache_for_benchmark=lambda: None, clear_cache=clear))

def takes(ms):
    def fn():
        calls[0] += 1
        clock[0] += ms * 1e-3
    return fn

t = measure(takes(2), warmup_ms=10, repeat_ms=100, device="cuda")
assert abs(t.median_ms - 2) < 1e-6 and 49 <= t.runs <= 50 and cleared[0] >= t.runs, t
t = measure(takes(300), warmup_ms=10, repeat_ms=100, min_runs=5, device="cuda")
assert abs(t.median_ms - 300) < 1e-6 and t.runs >= 5, t
try:
    measure(lambda: 1 / 0, device="cuda")
except MeasurementError as error:
    assert isinstance(error.__cause__, ZeroDivisionError)
    print("measured")
"""


def test_the_device_path_through_the_real_do_bench_with_a_driver_that_keeps_a_clock():
    environment = os.environ | {"LABS_DEVICE": "cpu", "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-c", DEVICE_TWIN], env=environment, capture_output=True, text=True, timeout=60
    )
    assert answer.stdout.strip() == "measured", answer.stderr


@pytest.mark.skipif(machine.interpreting(), reason="needs a GPU")
def test_on_a_gpu_the_device_s_time_is_measured_not_the_launch():
    import torch

    source = torch.ones(2**28, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    small = measure(lambda: target[: 2**20].copy_(source[: 2**20]))
    large = measure(lambda: target.copy_(source))
    assert large.runs >= 5 and large.median_ms > 2 * small.median_ms
