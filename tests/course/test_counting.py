"""Tally, PyTorch's traffic, the sanitizer: three ways to see what code does to memory."""

from importlib.util import find_spec

import pytest
import torch
import triton
import triton.language as tl

from labs_helpers.compile.report import print_compile_report
from labs_helpers.course.tally import tally
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.interpreted import verify_interpreted
from labs_helpers.course.verdict.sanitizer import sanitize
from labs_helpers.gemm.lab02 import checks as check
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.measure.machine import this_machine
from tests.planted import planted


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
    else:
        for _ in range(0, n, n):  # what happens in a loop is told when the loop ends
            tl.store(y_ptr + i, tl.load(x_ptr + i), mask=i < n)


def masked(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32, MASKED=True)
    return y


def unmasked(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32, MASKED=False)
    return y


def test_a_tally_counts_inputs_and_result():
    counted = tally(exercises.copy_tiles, torch.randn(64, 128))
    assert counted.launches == 1 and counted.bytes_loaded == counted.bytes_stored == 64 * 128 * 4
    assert counted.bytes_moved == 2 * 64 * 128 * 4 and (counted.loads[0] == 1).all()
    assert counted.writer[::32, ::64].tolist() == [[0, 1], [2, 3]] and (counted.stores == 1).all()


def test_keywords_reach_the_function():
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    assert tally(exercises.tile_matmul, a, b, BLOCK_M=16, BLOCK_N=16).bytes_loaded == 2 * 4 * 64 * 64 * 4


def test_torch_traffic_counts_each_operation_and_no_view():
    a, b = torch.randn(8, 4), torch.randn(4, 6)
    with TorchTraffic() as traffic:
        torch.relu(a @ b.t().t() + 1)
    assert [(o.name, o.bytes_read, o.bytes_written) for o in traffic.operations] == [
        ("mm", 4 * (32 + 24), 4 * 48),
        ("add", 4 * 48, 4 * 48),
        ("relu", 4 * 48, 4 * 48),
    ]
    assert traffic.bytes == sum(o.bytes for o in traffic.operations)
    ones = torch.ones(2, 3, 4, 4)
    with TorchTraffic() as traffic:
        ones @ ones.mT
    assert [o.name for o in traffic.operations] == ["bmm"]


@pytest.mark.skipif(
    find_spec("triton_viz") is None or not triton.__version__.startswith(("3.6.", "3.7.")),
    reason="triton-viz is absent, or does not know this Triton",
)
def test_the_sanitizer_names_the_tensor_and_the_line():
    told = sanitize(unmasked, torch.randn(100))
    assert "leaves x_ptr at" in told and "tl.load(x_ptr + i), mask=i < n)" in told
    assert sanitize(masked, torch.randn(100)) == ""


def test_print_compile_report_says_yes_or_no_for_each_target(capsys):
    half = torch.zeros(64, 64, dtype=torch.float16, device=this_machine().device)
    print_compile_report(exercises.tile_matmul, half, half, targets=("sm_75", "sm_90"))
    turing, hopper = capsys.readouterr().out.splitlines()
    assert turing.startswith("sm_75") and hopper.startswith("sm_90")
    assert "tensor cores? yes" in hopper and "wgmma" in hopper and "B shared" in hopper


def test_counting_in_another_process_gives_the_same():
    """What a machine with a GPU does."""
    x = torch.randn(64, 128)
    here, there = tally(exercises.copy_tiles, x), tally(exercises.copy_tiles, x)
    assert (here.bytes_moved, here.launches) == (there.bytes_moved, there.launches)
    assert (here.writer == there.writer).all() and (here.loads[0] == there.loads[0]).all()


@pytest.mark.skipif(not this_machine().interpreted, reason="a GPU's own verdict says more")
def test_a_check_in_another_process_says_the_same(tmp_path):
    """What a machine with a GPU does first, before it runs the answer there."""
    lines = list(verify_interpreted(check.copy_tiles, exercises.copy_tiles))
    assert lines == [f"{line}  (interpreter)" for line in check.copy_tiles.verify(exercises.copy_tiles)]
    bug = planted(exercises.copy_tiles, tmp_path, ("tl.program_id(0) * BLOCK_M", "tl.program_id(0)"))
    with pytest.raises(Wrong, match="its tile begins at row 32"):
        list(verify_interpreted(check.copy_tiles, bug))
