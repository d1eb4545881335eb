"""A timeline's intervals come from the step with the median time of the slowest rank, or from a trace's kernels."""

from time import perf_counter

import pytest

from labs_helpers.measure.step_timeline import TAKEN, by_clock, by_trace


class TwoRanks:
    """This rank, whose steps take less than a second, and one whose steps take `others` ms."""

    def __init__(self, others):
        self.others = others

    def barrier(self): ...

    def gather(self, mine):
        return [mine, self.others]


def test_the_median_step_of_the_slowest_rank_is_kept_with_its_own_messages():
    steps, sent = iter(range(TAKEN)), []

    def phases():
        number = next(steps)
        yield f"forward {number}", lambda: sent.append((now := perf_counter(), now + 0.001, number))
        yield "update", lambda: None

    def messages():
        taken, sent[:] = [*sent], []
        return taken

    sent.append((0.0, 1.0, 99))  # from before the first step
    forward, update, message = by_clock(phases, messages, TwoRanks([5e3, 1e3, 3e3, 2e3, 4e3]))
    assert forward[:2] == ["compute", "forward 2"] and update[:2] == ["compute", "update"]
    assert message[:2] == ["communication", "all-reduce"] and message[4] == 2
    assert 0 <= forward[2] <= message[2] <= forward[3] <= update[2] <= update[3]
    assert message[3] - message[2] == pytest.approx(1, abs=0.0015)


def test_kernels_of_a_trace_are_merged_but_for_nccls():
    def event(cat, name, start, length):
        return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": length, "tid": 1, "args": {}}

    kernels = [("gemm", 1000.0, 50.0), ("add", 1055.0, 5.0), ("ncclDevKernel", 1056.0, 100.0), ("gemm", 1500.0, 10.0),
               ("ncclDevKernel", 1157.0, 20.0)]  # fmt: skip
    events = [event("kernel", *one) for one in kernels] + [event("cpu_op", "aten::mm", 0.0, 9.0)]
    assert by_trace(events) == [
        ["compute", "kernels", 0.0, 0.06, None], ["compute", "kernels", 0.5, 0.51, None],
        ["communication", "all-reduce", 0.056, 0.156, None], ["communication", "all-reduce", 0.157, 0.177, None],
    ]  # fmt: skip
    assert by_trace(events[-1:]) == []
