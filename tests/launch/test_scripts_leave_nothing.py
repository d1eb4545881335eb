"""Test that a program of mpi_scripts/ started without the course's launcher leaves nothing in /dev/shm.

Other tests run at the same time, so each program is asked while it runs which files it has mapped.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labs_helpers.launch.flavour import SESSION_FOLDER, SHARED_MEMORY_FOLDER, find_flavour

SCRIPTS = Path(__file__).parents[2] / "mpi_scripts"
LONG = "--data text --length 16 --width 32 --heads 4 --batch 8 --steps 100000 --report 1".split()
PROGRAMS = {
    "hello.py": [],
    "check_collectives.py": ["--functions", "allreduce", "--sizes", "3", "--dtypes", "int32"],
    "bench_collectives.py": ["--functions", "allreduce", "--largest", "8", "--seconds", "0.001"],
    "train_2d.py": [*LONG[:-4], "--steps", "2"],
}
WATCHED = """
import runpy, sys
del sys.argv[0]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print("maps:", *{line.split()[-1] for line in open("/proc/self/maps") if "/dev/shm/" in line})
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /dev/shm")


@pytest.fixture
def environ(tmp_path):
    """Without the folders that a launcher or a lab's kernel has named. TMPDIR is this test's."""
    clean = {name: value for name, value in os.environ.items() if name not in (*SESSION_FOLDER, *SHARED_MEMORY_FOLDER)}
    return find_flavour().environment() | clean | {"TMPDIR": str(tmp_path), "OMPI_MCA_btl": "^ofi"}


def mapped(pids):
    """The files in /dev/shm that these processes have mapped, and the folders that they are in."""
    found = set()
    for pid in pids:
        found |= set(map(Path, re.findall(r"(/dev/shm/\S*sm_segment\S+)", Path(f"/proc/{pid}/maps").read_text())))
    return found | {file.parent for file in found if file.parent != Path("/dev/shm")}


def all_gone(files):
    deadline = time.monotonic() + 20
    while any(file.exists() for file in files) and time.monotonic() < deadline:
        time.sleep(0.02)
    return [str(file) for file in files if file.exists()] == []


SOAK = pytest.mark.soak


@pytest.mark.parametrize("program", ["hello.py", *(pytest.param(name, marks=SOAK) for name in list(PROGRAMS)[1:])])
def test_a_program_that_ends_by_itself(program, environ, tmp_path):
    out = ["--out", str(tmp_path / "out.jsonl")] if program == "bench_collectives.py" else []
    command = [sys.executable, "-c", WATCHED, SCRIPTS / program, *PROGRAMS[program], *out]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("maps:")]
    files = [Path(name) for name in line.split()[1:]]
    assert files and all_gone(files)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, *(pytest.param(number, marks=SOAK) for number in (signal.SIGINT, signal.SIGTERM))]
)
def test_a_program_that_is_interrupted_or_killed(number, environ):
    with subprocess.Popen(
        [sys.executable, SCRIPTS / "train_2d.py", *LONG],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline().split()[:2] == ["step", "1"]
            files = mapped([process.pid])
            process.send_signal(number)
            process.wait(60)
        finally:
            process.kill()
    assert files and all_gone(files)


def test_mpirun_that_is_killed(environ):
    flavour = find_flavour()
    command = [*flavour.command(2), sys.executable, "-m", "mpi4py", SCRIPTS / "train_2d.py", "--dp", "2", *LONG]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        ranks = []
        try:
            assert process.stdout.readline().split()[:2] == ["step", "1"]
            ranks = [int(pid) for pid in Path(children).read_text().split()]
            files = mapped(ranks)
            process.kill()
            process.wait(60)
            assert len(ranks) == 2 and len(files) == 4 and all_gone(files)
        finally:
            process.kill()
            for pid in ranks:
                subprocess.run(["kill", "-9", str(pid)], stderr=subprocess.DEVNULL)
