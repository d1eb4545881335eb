"""Test that the practice GPU keeps time like a queue, and that its trace has the form of a real one."""

import doctest
import math
import random
from itertools import accumulate

import pytest
import torch

from labs_helpers.measure.trace import busy, by_operation, launches
from labs_helpers.transformer.lab01 import exercises, practice_gpu
from labs_helpers.transformer.lab01.practice_gpu import GPU_BOUND, HOST_BOUND, UPDATE_HOST_BOUND, Phase, PracticeGPU

MODELS = {"GPU-bound": GPU_BOUND, "host-bound": HOST_BOUND, "update host-bound": UPDATE_HOST_BOUND}


def step(gpu: PracticeGPU, wait_between: bool = False) -> None:
    loss = gpu.forward()
    if wait_between:
        gpu.synchronize()
    gpu.backward(loss)
    if wait_between:
        gpu.synchronize()
    gpu.update()


def us(gpu: PracticeGPU, *calls) -> int:
    """How long the calls take the CPU, in µs."""
    started = gpu.clock()
    for call in calls:
        call()
    return round(1e6 * (gpu.clock() - started))


def of(gpu: PracticeGPU, category: str) -> list[dict]:
    return [event for event in gpu.timeline() if event["cat"] == category]


def test_the_example_in_its_docstring():
    assert doctest.testmod(practice_gpu).failed == 0


def test_a_call_takes_its_launches_and_synchronize_the_rest():
    gpu = PracticeGPU(forward=Phase(kernels=4, host_us=50, gpu_us=500))
    assert us(gpu, gpu.forward) == 4 * 50
    assert us(gpu, gpu.synchronize) == 50 + 4 * 500 - 4 * 50
    assert us(gpu, gpu.synchronize) == us(gpu) == 0


def test_where_launching_takes_longer_the_gpu_waits_for_each_kernel():
    gpu = PracticeGPU(forward=Phase(kernels=10, host_us=90, gpu_us=30))
    assert us(gpu, gpu.forward, gpu.synchronize) == 10 * 90 + 30
    assert busy(gpu.timeline()) == pytest.approx(10 * 30 / 930)


def latest(launched: list[float], durations: list[float]) -> list[float]:
    """When each kernel ends: the latest, over all before it, of a launch and all that ran since without a gap."""
    before = [0.0, *accumulate(durations)]
    return [max(launched[j] + before[i + 1] - before[j] for j in range(i + 1)) for i in range(len(durations))]


@pytest.mark.parametrize("seed", range(8))
def test_kernels_end_when_an_independent_model_of_the_queue_says(seed):
    rng = random.Random(seed)
    phases = [Phase(rng.randint(0, 5), rng.randint(1, 60), rng.randint(1, 60)) for _ in range(3)]
    gpu = PracticeGPU(*phases, compile_us=(70, 20), late_us=(0, 5, 11))
    for _ in range(6):
        step(gpu, wait_between=rng.random() < 0.3)
        if rng.random() < 0.3:
            gpu.synchronize()
    calls, kernels = ([e for e in of(gpu, "cuda_runtime") if "Launch" in e["name"]], of(gpu, "kernel"))
    launched, durations = [e["ts"] + e["dur"] for e in calls], [e["dur"] for e in kernels]
    assert [e["ts"] + e["dur"] for e in kernels] == latest(launched, durations)
    assert len(calls) == len(kernels) == 6 * sum(phase.kernels for phase in phases)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_waiting_between_the_phases_makes_a_step_longer(model):
    gpu = PracticeGPU(**model)
    together = us(gpu, lambda: step(gpu), gpu.synchronize)
    assert us(gpu, lambda: step(gpu, wait_between=True), gpu.synchronize) > together


def test_the_models_are_bound_by_what_their_names_say():
    ran = {}
    for name, model in MODELS.items():
        gpu = PracticeGPU(**model)
        step(gpu)
        gpu.synchronize()
        ran[name] = busy(gpu.timeline())
    assert ran["GPU-bound"] > 0.95 and ran["host-bound"] < 0.5
    assert ran["host-bound"] < ran["update host-bound"] < 0.9


def test_the_first_calls_of_each_function_compile():
    gpu = PracticeGPU(compile_us=(1000, 100))
    launching = {name: phase.kernels * phase.host_us for name, phase in GPU_BOUND.items()}
    assert [us(gpu, gpu.forward) - launching["forward"] for _ in range(4)] == [1000, 100, 0, 0]
    assert us(gpu, lambda: gpu.backward(practice_gpu.Loss())) - launching["backward"] == 1000
    assert us(gpu, gpu.update) - launching["update"] == 1000


def test_synchronize_is_late_by_turns_and_only_where_it_waits():
    gpu = PracticeGPU(late_us=(0, 7, 30))
    late = []
    for _ in range(7):
        late.append(us(gpu, gpu.forward, gpu.synchronize, gpu.synchronize) - 2050)
    assert late == [0, 7, 30, 0, 7, 30, 0]


def test_a_loss_is_for_one_backward_pass_as_pytorch_says():
    gpu, x = PracticeGPU(), torch.ones(2, requires_grad=True)
    loss, torchs = gpu.forward(), (x * x).sum()
    texts = []
    for backward in (lambda: gpu.backward(loss), torchs.backward):
        backward()
        with pytest.raises(RuntimeError) as error:
            backward()
        texts.append(str(error.value).split(" (")[0])
    assert texts[0] == texts[1]
    assert launches(gpu.timeline()) == GPU_BOUND["forward"].kernels + GPU_BOUND["backward"].kernels
    with pytest.raises(TypeError, match="not None"):
        gpu.backward(None)


def test_an_update_without_gradients_does_nothing():
    gpu = PracticeGPU()
    assert us(gpu, gpu.update) == us(gpu, gpu.forward, gpu.update) - us(gpu, gpu.forward) == 0
    gpu.backward(gpu.forward())
    assert us(gpu, gpu.update) == 3 * 40
    assert us(gpu, gpu.update) == 0


def test_it_remembers_what_was_queued_when_the_clock_was_read():
    gpu = PracticeGPU(late_us=(9,))
    gpu.clock()
    gpu.forward()
    gpu.clock()
    gpu.synchronize()
    gpu.clock()
    assert gpu.queued_us == [0, 2050 - 200, 0]


def test_the_timeline_is_a_trace_from_zero_in_order():
    gpu = PracticeGPU(**UPDATE_HOST_BOUND, compile_us=(500,), late_us=(9,))
    started, seen = gpu.clock(), []
    assert gpu.timeline() == []
    for _ in range(2):
        step(gpu)
        gpu.synchronize()
        seen.append(gpu.timeline())
    events = gpu.timeline()
    assert events == seen[1] and events[: len(seen[0])] == seen[0]
    assert events[0]["ts"] == 0 and [e["ts"] for e in events] == sorted(e["ts"] for e in events)
    elapsed = 1e6 * (gpu.clock() - started)
    assert max(e["ts"] + e["dur"] for e in events) == pytest.approx(elapsed)
    assert {e["cat"] for e in events} == {"cpu_op", "cuda_runtime", "kernel", "gpu_user_annotation"}
    assert all(set(e) == {"ph", "cat", "name", "ts", "dur", "tid", "args"} and e["ph"] == "X" for e in events)
    events[0]["ts"] = math.nan
    assert gpu.timeline()[0]["ts"] == 0


def test_launches_kernels_and_calls_find_each_other():
    gpu = PracticeGPU(**UPDATE_HOST_BOUND)
    step(gpu)
    gpu.synchronize()
    calls = {event["args"]["External id"]: event for event in of(gpu, "cpu_op")}
    launched = {event["args"]["correlation"]: event for event in of(gpu, "cuda_runtime")}
    assert len(calls) == 3 and len(launched) == len(of(gpu, "cuda_runtime"))
    for kernel in of(gpu, "kernel"):
        call, launch = calls[kernel["args"]["External id"]], launched[kernel["args"]["correlation"]]
        assert kernel["name"] == call["name"] and launch["args"]["External id"] == kernel["args"]["External id"]
        assert call["ts"] <= launch["ts"] and launch["ts"] + launch["dur"] <= call["ts"] + call["dur"]
        assert launch["ts"] + launch["dur"] <= kernel["ts"] and kernel["tid"] == kernel["args"]["stream"]


def test_what_reads_a_trace_reads_the_timeline():
    gpu = PracticeGPU(**GPU_BOUND)
    step(gpu)
    gpu.synchronize()
    kernels = sum(phase.kernels for phase in GPU_BOUND.values())
    whole = 50 + sum(phase.kernels * phase.gpu_us for phase in GPU_BOUND.values())
    assert launches(gpu.timeline()) == kernels
    assert exercises.gpu_time(gpu.timeline()) == (kernels, pytest.approx(1 - 50 / whole), 0)
    assert by_operation(gpu.timeline()) == {
        "backward": (1, 8 * 520), "forward": (1, 4 * 500), "update": (1, 3 * 250)
    }  # fmt: skip
