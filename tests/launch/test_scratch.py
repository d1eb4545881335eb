"""Test that a temporary folder disappears, whatever ends its process."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from labs_helpers.launch.process import ProcessFailed, run
from tests.processes import eventually

ROOT = Path(__file__).parents[2]
OWNER = """
import os, signal, time
from labs_helpers.launch.scratch import scratch
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with scratch("owner-") as folder:
    (folder / "file").touch()
    {end}
"""


@pytest.mark.parametrize("end", ["pass", "raise OSError", "os._exit(1)", "os.kill(os.getpid(), 9)", "time.sleep(600)"])
def test_nothing_is_left(end, tmp_path):
    owner = [sys.executable, "-c", OWNER.format(end=end)]
    with suppress(ProcessFailed):
        run(owner, timeout=2, cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert eventually(lambda: not list(tmp_path.iterdir()))
