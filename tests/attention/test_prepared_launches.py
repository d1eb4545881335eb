"""Attention's prepared launches pass the same arguments as ordinary ones to Triton's launcher, over a fake driver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labs_helpers.attention.kernels.hopper import gluon_fits

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not gluon_fits(), reason="this Triton's Gluon is another")
def test_the_launcher_gets_the_same_arguments_forward_backward_and_in_a_decode():
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(ROOT / "build/prepared_launches")}
    command = [sys.executable, str(Path(__file__).with_name("prepared_launch_worker.py"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["different"] == []
    launches = dict(answer["same"])
    assert launches == {
        "self, d 64, forward": 1,
        "self, d 64, backward": 3,
        "self, d 80, heads inside, forward": 1,
        "self, d 80, heads inside, backward": 3,
        "long, d 64, forward": 1,
        "long, d 64, backward": 3,
        "grouped, d 64, forward": 1,
        "grouped, d 64, backward": 3,
        "more tiles than programs, forward": 1,
        "more tiles than programs, backward": 3,
        "decode, forward": 2,
        "decode of 5, one part, forward": 1,
    }
    assert answer["prepared"] == 1
    # Two scales and two streams have separate entries; of 1,299 more, not all are kept, and no operand is kept alive.
    assert answer["forward, differ"] == answer["backward, differ"] == 3
    assert all(0 < bound <= 1024 for bound in answer["bound"]) and answer["kept alive"] == 0
