"""Test traces written as text: launched events get their launch's numbers, and traces are drawn."""

import pytest

from labs_helpers.measure.written_trace import drawn, of, trace

TEXT = """
    op aten::mm 3+20 #1 @2 > launch 8 =4 > kernel gemm 12+13 @13 > kernel reduce 25.5
    wait 30+2 =9; memset 31+0.5 =5
"""


def test_what_is_launched_has_the_numbers_of_what_launched_it():
    operation, launch, gemm, reduce, wait, memset = of(trace(TEXT))
    assert operation == {
        "ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 3.0, "dur": 20.0, "tid": 2, "args": {"External id": 1},
    }  # fmt: skip
    assert (launch["name"], launch["tid"], launch["dur"]) == ("cudaLaunchKernel", 1, 1.0)
    assert launch["args"] == {"correlation": 4, "External id": 1}
    assert gemm["args"] == {"correlation": 4, "External id": 1, "stream": 13} == gemm["args"] | {"stream": gemm["tid"]}
    assert (reduce["name"], reduce["ts"], reduce["tid"], reduce["args"]["correlation"]) == ("reduce", 25.5, 7, 4)
    assert (wait["cat"], wait["args"]) == ("cuda_runtime", {"correlation": 9})
    assert (memset["cat"], memset["name"]) == ("gpu_memset", "Memset")


def test_labels_and_arrows_took_no_time():
    assert len(trace(TEXT)) > len(of(trace(TEXT))) == 6
    assert of(trace(TEXT), "kernel", "gpu_memset") == of(trace(TEXT))[2:4] + of(trace(TEXT))[5:]


def test_what_is_no_event_is_an_error():
    with pytest.raises(ValueError, match="'kernel 12 gemm' is no event"):
        trace("op aten::mm 3+20; kernel 12 gemm")


def test_a_drawing_has_a_line_for_each_event_in_order_of_their_place():
    *lines, last = drawn(trace(TEXT)).splitlines()
    assert [line.split()[0] + line.split()[1] for line in lines] == [
        "thread1", "thread1", "thread2", "stream7", "stream7", "stream13",
    ]  # fmt: skip
    assert last.endswith("29 µs")
    assert lines[2].endswith("3 … 23: cpu_op aten::mm, External id 1")
    assert "correlation" not in drawn(trace(TEXT), numbers=False)
