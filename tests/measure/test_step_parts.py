"""The parts of a step fill its time, without overlap, and each moment belongs to the part that the text says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.measure.step_parts import PARTS, merged, passes_marked, shares, step_parts, without
from labs_helpers.measure.trace import record

moments = st.integers(0, 30)
spans = st.lists(st.tuples(moments, moments).map(lambda pair: (float(min(pair)), float(max(pair)))), max_size=8)


def inside(found, moment):
    return any(start <= moment < stop for start, stop in found)


@given(spans, spans)
def test_union_and_difference_moment_by_moment(some, others):
    union, other = merged(some), merged(others)
    rest = without(union, other)
    for moment in range(31):
        moment += 0.5
        assert inside(union, moment) == inside(some, moment)
        assert inside(rest, moment) == (inside(some, moment) and not inside(others, moment))
    for found in (union, rest):
        assert found == sorted(found) and all(
            stop < start for (_, stop), (start, _) in zip(found, found[1:], strict=False)
        )


def event(cat, name, start, stop, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": stop - start, "tid": 1, "args": args}


def kernel(name, start, stop, launched=None):
    number = next(NUMBERS)
    at = start if launched is None else launched
    return [event("cpu_op", f"aten::{name}", at, at + 0.1, **{"External id": number}),
            event("kernel", name, start, stop, **{"External id": number})]  # fmt: skip


NUMBERS = iter(range(1, 1000))


def test_a_step_with_everything():
    events = [
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 10),
        *kernel("add", 2, 4),  # the loader's own work
        event("user_annotation", "forward of a step", 10, 20),
        *kernel("mm", 11, 20),
        *kernel("mul", 20, 22),  # the loss, behind the forward mark
        event("user_annotation", "backward of a step", 23, 40),
        event("user_annotation", "forward of a step", 25, 27),  # computed again
        *kernel("mm", 23, 35),
        event("user_annotation", "gloo:all_reduce", 30, 50),  # hidden until 35
        *kernel("norm", 50, 51, launched=45),  # clipping, between backward and the optimizer
        event("user_annotation", "Optimizer.step#AdamW.step", 52, 60),
        *kernel("addcdiv", 53, 60),
        event("user_annotation", "something else", 60, 64),
    ]
    assert step_parts(events) == {
        "data": [(0, 10)],
        "forward": [(11, 22)],
        "backward": [(23, 35)],
        "communication": [(35, 50)],
        "optimizer": [(50, 51), (53, 60)],
        "idle": [(10, 11), (22, 23), (51, 53), (60, 64)],
    }
    assert sum(shares(step_parts(events)).values()) == pytest.approx(1)


def test_a_trace_without_events_has_empty_parts():
    assert step_parts([]) == {part: [] for part in PARTS}
    assert set(shares(step_parts([])).values()) == {0.0}


def test_a_real_step_is_divided_by_its_marks():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters())
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 64)), 32)

    def step():
        (x,) = next(iter(loader))
        model(x).square().mean().backward()
        optimizer.step()

    with passes_marked():
        trace = record(step)
    parts = step_parts(trace.events)
    assert all(parts[part] for part in ("data", "forward", "backward", "optimizer", "idle"))
    assert not parts["communication"]
    assert max(stop for _, stop in parts["data"]) <= min(start for start, _ in parts["forward"])
    assert max(stop for _, stop in parts["forward"]) <= min(start for start, _ in parts["backward"])


def test_marks_leave_nothing_behind():
    before = torch.autograd.backward
    with pytest.raises(ZeroDivisionError), passes_marked():
        assert torch.autograd.backward is not before
        raise ZeroDivisionError
    assert torch.autograd.backward is before
    assert not torch.nn.modules.module._global_forward_hooks
