"""Test that every launch leaves its counters at zero."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from labs_helpers.compile import counters as module
from labs_helpers.compile.counters import Reserve, counters


def test_counters_of_a_graph_are_handed_out_once_and_end():
    reserve = Reserve(torch.arange(100).int())
    with ThreadPoolExecutor(8) as pool:
        taken = [part for part in pool.map(reserve.take, [7] * 20) if part is not None]
    assert len(taken) == 12 and torch.cat(taken).unique().numel() == 84
    assert all(part.data_ptr() % 16 == taken[0].data_ptr() % 16 for part in taken if part.dtype == torch.int32)
    assert reserve.take(1) is None


def test_without_a_gpu_they_are_made_anew():
    made = counters(5, torch.device("cpu"))
    assert made.tolist() == [0] * 5 and counters(5, torch.device("cpu")) is not made


@pytest.fixture
def gpu(monkeypatch):
    """One GPU, as far as counters look at it: its current stream, and whether that is being captured."""
    state, real = SimpleNamespace(stream=1, capturing=False), torch.zeros
    monkeypatch.setattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: state.capturing, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: state.stream, raising=False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch, "zeros", lambda count, dtype, device: real(count, dtype=dtype))
    monkeypatch.setattr(module, "_counters", {})
    monkeypatch.setattr(module, "_reserves", {})
    return state


def test_a_stream_has_its_own_and_a_captured_launch_too(gpu):
    device = torch.device("cuda", 0)
    gpu.capturing = True
    before = counters(3, device), counters(3, device)
    assert before[0] is not before[1]  # nothing was launched before: the graph writes them
    gpu.capturing = False
    first = counters(3, device)
    assert counters(700, device) is first and first.numel() >= 700 and not first.any()
    assert counters(5000, device).numel() >= 5000
    gpu.stream = 2
    assert counters(3, device).data_ptr() != first.data_ptr()
    gpu.capturing = True
    captured = [counters(3, device) for _ in range(3)]
    assert len({x.data_ptr() for x in captured}) == 3 and all(x.numel() == 3 and not x.any() for x in captured)
