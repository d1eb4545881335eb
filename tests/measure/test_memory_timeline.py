"""Test the bytes alive between allocations: on the CPU, and from a GPU allocator's history."""

import json
import random

import pytest
import torch

from labs_helpers.measure import memory_timeline as module
from labs_helpers.measure.memory_timeline import memory_timeline
from labs_helpers.measure.peak_memory import peak_memory


def on_the_cpu(function, **options):
    return memory_timeline(function, device="cpu", **options)


def test_every_allocation_and_every_free_is_a_point():
    x = torch.zeros(100)

    def chain(mark):
        y = x + 1
        mark("second")
        y = y + 1
        mark("third")
        return (y + 1).view(10, 10)

    value, timeline = on_the_cpu(chain)
    assert value.sum() == 300
    # The intermediate results go when the next is there, the last of them when the function returns.
    assert timeline["points"] == [[0, 0], [1, 400], [2, 800], [3, 400], [4, 800], [5, 400]]
    assert timeline["marks"] == [[1, "second"], [3, "third"]]
    assert (timeline["device"], timeline["before"], timeline["peak"]) == ("cpu", 0, 800)
    assert json.loads(json.dumps(timeline)) == timeline


def test_what_was_there_before_is_the_ground_and_is_not_counted_again():
    x = torch.zeros(10, 10)
    _, timeline = on_the_cpu(lambda mark: x.add_(1).t()[:5], before=400)
    assert timeline["points"] == [[0, 400]] and timeline["peak"] == timeline["before"] == 400


def test_it_agrees_with_the_peak_over_a_training_step():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 8))
    x = torch.randn(16, 32)

    def step(mark):
        mark("forward")
        loss = model(x).square().mean()
        mark("backward")
        loss.backward()
        mark("end")

    _, peak = peak_memory(lambda *_: step(lambda name: None), x, *model.parameters())
    model.zero_grad(set_to_none=True)
    _, timeline = on_the_cpu(step, before=1000)
    assert timeline["peak"] - 1000 == peak
    # The gradients stay, and nothing else does.
    assert timeline["points"][-1][1] - 1000 == sum(p.numel() * 4 for p in model.parameters())
    (_, forward), (backward, _), (end, _) = timeline["marks"]
    assert forward == "forward" and 0 < backward < end == timeline["points"][-1][0] - 1  # after it the loss goes


def test_thinned_out_it_keeps_ends_and_peaks():
    def up_and_down(mark):
        for i in range(500):
            torch.zeros(10 + (i == 313) * 1000)
        mark("end")
        return [torch.zeros(5) for _ in range(200)]

    whole = on_the_cpu(up_and_down, points=10_000)[1]
    thin = on_the_cpu(up_and_down, points=60)[1]
    assert len(whole["points"]) == 1201 and len(thin["points"]) <= 60
    assert {key: thin[key] for key in ("peak", "marks")} == {key: whole[key] for key in ("peak", "marks")}
    assert max(thin["points"], key=lambda point: point[1]) == [627, 4040]
    assert [thin["points"][0], thin["points"][-1]] == [whole["points"][0], whole["points"][-1]]
    assert all(point in whole["points"] for point in thin["points"])
    assert min(after - point for (point, _), (after, _) in zip(thin["points"], thin["points"][1:], strict=False)) > 0


@pytest.mark.parametrize("points", [1, 3, 4, 17, 400])
def test_no_stretch_hides_its_highest_or_lowest(points):
    draw = random.Random(points)
    alive = [draw.randrange(1000) for _ in range(997)]
    kept = module._worth_keeping(alive, points)
    assert len(kept) <= max(points, 4) and kept == sorted(set(kept)) and kept[0] == 0 and kept[-1] == 996
    assert {max(alive), min(alive)} <= {alive[i] for i in kept}


class Allocator:
    """PyTorch's CUDA allocator as far as its statistics and its history go."""

    def __init__(self):
        self.recording, self.entries = False, []
        self.stats = {"allocation.all.allocated": 70, "allocation.all.freed": 30, "requested_bytes.all.current": 5000}

    def record(self, enabled="all", context="all", stacks="all"):
        if enabled is not None:
            assert context is None and stacks == "python", "the stack of every allocation would be looked for"
        self.recording = enabled is not None
        if not self.recording:
            self.entries = []

    def log(self, action, size):
        if self.recording:
            self.entries.append({"action": action, "addr": 7, "size": size, "stream": 0, "frames": [], "time_us": 1})

    def allocate(self, size):
        self.log("segment_alloc", 2**21)
        self.log("alloc", size)
        self.stats["allocation.all.allocated"] += 1
        self.stats["requested_bytes.all.current"] += size

    def free(self, size):
        self.log("free_requested", size)
        self.log("free_completed", size)
        self.stats["allocation.all.freed"] += 1
        self.stats["requested_bytes.all.current"] -= size


@pytest.fixture
def allocator(monkeypatch):
    allocator = Allocator()
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: dict(allocator.stats))
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", allocator.record)
    snapshot = lambda: {"segments": [], "device_traces": [[], list(allocator.entries)]}  # noqa: E731
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", snapshot)
    return allocator


def test_an_allocators_history_is_read(allocator):
    allocator.record("all", None, "python")
    allocator.allocate(99)  # somebody else's history
    allocator.record(None)

    def step(mark):
        allocator.allocate(1000)
        mark("forward")
        allocator.allocate(3000)
        allocator.free(1000)
        mark("backward")
        allocator.free(500)  # from before
        return 42

    value, timeline = memory_timeline(step, device="cuda")
    assert value == 42
    assert timeline["points"] == [[0, 5099], [1, 6099], [2, 9099], [3, 8099], [4, 7599]]
    assert timeline["marks"] == [[1, "forward"], [3, "backward"]]
    assert (timeline["device"], timeline["before"], timeline["peak"]) == ("cuda", 5099, 9099)
    assert not allocator.recording


def test_the_history_is_switched_off_after_an_error(allocator):
    with pytest.raises(ZeroDivisionError):
        memory_timeline(lambda mark: 1 / 0, device="cuda")
    assert not allocator.recording
