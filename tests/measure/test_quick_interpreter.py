"""Test that the accelerated interpreter gives the same values and errors as Triton's own."""

import os
import sys
from pathlib import Path

from labs_helpers.labs import ROOT
from labs_helpers.launch.process import run


def test_every_kernel_finds_the_same_in_both():
    program = str(Path(__file__).with_name("quick_interpreter_cases.py"))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
    assert run([sys.executable, program], timeout=60, env=environment) == "8 of 12 are errors\n"
