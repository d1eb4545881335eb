"""Test the leftovers of a process that imports mpi4py.MPI without mpirun."""

import os
import sys
from pathlib import Path

import pytest

from labs_helpers.launch.process import ProcessFailed, run
from tests.processes import eventually

ROOT = Path(__file__).parents[2]
ALONE = """
import os, sys
from labs_helpers.launch.singleton import environment, leave_nothing
leave_nothing()
leave_nothing()
from mpi4py import MPI
names = [name for name in os.environ if name.endswith(("_tmpdir_base", "_backing_directory"))]
folder, = {os.environ[name] for name in names}
assert not set(names) & set(environment())
(file,) = os.listdir(folder)
_, *owner, number, _ = file.split(".")
print(folder, f"{os.environ['TMPDIR']}/ompi.{'.'.join(owner)}/jf.0/{int(number, 16)}", flush=True)
"""


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)"])
def test_nothing_is_left(end, tmp_path):
    try:
        told = run(
            [sys.executable, "-c", ALONE + end], timeout=60, cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)}
        )
    except ProcessFailed as error:
        assert end, error
        told = error.output
    shared, session = map(Path, told.split())
    assert session.is_relative_to(tmp_path)
    assert eventually(lambda: not shared.exists() and not list(tmp_path.iterdir()))
