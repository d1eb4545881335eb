"""Test that a prepared launch passes the same arguments to Triton's launcher as an ordinary one, over a fake CUDA
driver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labs_helpers.compile.prepared_launch import prepare
from labs_helpers.gemm.kernels.hopper import gluon_fits

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def answer():
    if not gluon_fits():
        pytest.skip("this Triton's Gluon is another")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(ROOT / "build/prepared_launches")}
    command = [sys.executable, str(Path(__file__).with_name("prepared_launch_worker.py"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_launcher_gets_the_same_arguments(answer):
    assert answer["cases"] == 8 and answer["different"] == []
    # The first prepared launch makes its four tensor maps, those after it none.
    assert answer["encoded"] == [[4, 4]] * 4


def test_a_kernel_of_pointers_gets_the_addresses_of_the_tensors(answer):
    assert answer["pointers"] == [[True, True]] * 9


def test_no_operand_is_kept_alive_and_the_maps_are_bounded(answer):
    assert answer["kept alive"] is False and answer["maps"] == 1024


def test_threads_share_one_launch(answer):
    launches, different, own_operands = answer["threads"]
    assert (launches, different, own_operands) == (1600, 8, True)


def test_a_profilers_hooks_another_device_or_another_triton_take_the_usual_launch(answer):
    assert answer["hooked"] and answer["other device"] and answer["fits"] and answer["other version"]


def test_what_is_no_compiled_kernel_is_not_prepared():
    assert prepare(None) is None and prepare(object()) is None
