"""Test that all processes of a jail share its limits, however they are enforced, and do not affect a neighbor."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from labs_helpers.course.stub import cell_of
from labs_helpers.grading.jails import together
from labs_helpers.grading.jails.bubblewrap import MEGABYTE, Limits, in_jail, why_not
from labs_helpers.grading.jails.memory import MEMORY
from labs_helpers.grading.jails.together import CGROUP, SUM
from labs_helpers.grading.reading.submission import Answer, shipped_exercises
from labs_helpers.grading.verdict import RIGHT, verdicts
from labs_helpers.labs import LABS
from labs_helpers.launch.process import ProcessFailed, run
from tests.grading.test_jail import running
from tests.processes import started

needs_jail = pytest.mark.skipif(bool(why_not()), reason=why_not())
SMALL = Limits(seconds=10, memory=512 * MEGABYTE, processes=40, file=256 * MEGABYTE)
TOGETHER = "all its processes together need more than the 0.5 GiB of memory"
PARTS = f"""
import os, signal
def take(megabytes):
    return b"x" * (megabytes * {MEGABYTE})
"""
MORE_THAN_THEIR_SHARE = {
    "three processes": "for _ in range(3):\n    if os.fork() == 0: x = take(200); signal.pause()\nsignal.pause()",
    "orphans in sessions of their own": """
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: x = take(200); signal.pause()
        os._exit(0)
signal.pause()""",
    "threads that outlive the first": """
import ctypes, threading
def stay(): x = take(200); signal.sigwait([signal.SIGUSR1])
for _ in range(3):
    if os.fork() == 0:
        threading.Thread(target=stay).start()
        ctypes.CDLL(None).syscall({"x86_64": 60}.get(os.uname().machine, 93), 0)
signal.pause()""",
    "files": """
for folder in ("/dev/shm", "/tmp"):
    try: open(folder + "/file", "wb").write(take(200))
    except OSError as error: assert "No space left" in str(error)
x = take(300)
signal.pause()""",
}


@pytest.fixture(params=[CGROUP, SUM])
def mechanism(request, monkeypatch):
    if request.param == CGROUP != together.mechanism():
        pytest.skip("this user can make no cgroup here")
    monkeypatch.setattr(together, "mechanism", lambda: request.param)


@pytest.fixture
def neighbour(mechanism):
    """A process in a jail of its own, which has to be able to start others and to use memory afterwards."""
    code = "import subprocess; print('begun', flush=True); input(); subprocess.run(['true']); print(len(b'x' * 10**8))"
    with _begun(in_jail([sys.executable, "-c", code], limits=SMALL)) as process:
        yield
        assert process.communicate("go\n", timeout=100)[0] == f"{10**8}\n"


@contextmanager
def _begun(command):
    """A process that has printed a line."""
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        yield process


@needs_jail
@pytest.mark.parametrize("what", MORE_THAN_THEIR_SHARE)
def test_processes_that_exceed_the_limit_together_are_killed(neighbour, what):
    code = PARTS + MORE_THAN_THEIR_SHARE[what]
    with pytest.raises(ProcessFailed) as failed:
        run(in_jail([sys.executable, "-c", code], limits=SMALL), timeout=100, env={})
    assert TOGETHER in failed.value.output
    assert not running(code)


@needs_jail
def test_a_fork_bomb_gets_no_further_than_its_jail(neighbour):
    code = """
import os
first = os.getpid()
while True:
    try: os.fork()
    except BlockingIOError:
        if os.getpid() == first: print("no more"); break"""
    assert run(in_jail([sys.executable, "-c", code], limits=SMALL), timeout=100, env={}) == "no more\n"
    assert not running(code)


@needs_jail
def test_such_an_answer_needs_too_much_memory_and_the_one_before_it_is_right(mechanism):
    first = shipped_exercises(LABS[0])[0]
    source = PARTS + MORE_THAN_THEIR_SHARE["three processes"].replace("200", "800")
    answers = [Answer(first, cell_of(LABS[0].exercises()[0].reference)), Answer(first, source)]
    right, greedy = verdicts(answers, ["import torch"], Limits(memory=2**31), seeds=(5,))
    assert (right.status, greedy.status) == (RIGHT, MEMORY) and "more than the 2 GiB of memory" in greedy.message


@needs_jail
@pytest.mark.parametrize("call", [
    "os.memfd_create('x')", "libc('shmget', 0, 2**28, 0o1600)", "libc('unshare', 0x10000000)",
    "libc('syscall', {'x86_64': 56}.get(os.uname().machine, 220), 0x10000011, 0, 0, 0, 0)",
])  # fmt: skip
def test_memory_that_nobody_counts_and_namespaces_are_refused(call):
    code = f"""
import ctypes, os
def libc(name, *given):
    if ctypes.CDLL(None, use_errno=True)[name](*given) < 0: raise OSError(ctypes.get_errno(), name)
try: {call}
except PermissionError: print("refused")"""
    assert run(in_jail([sys.executable, "-c", code]), timeout=100, env={}) == "refused\n"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts processes' memory")
def test_the_sum_counts_shared_pages_once_and_threads_as_processes():
    """In a process that has no others, as pytest's have."""
    parts = f"""{PARTS}
x = take(200)
for _ in range(3):
    if os.fork() == 0: signal.pause()
print("begun", flush=True)
input()"""
    program = f"""
import subprocess, sys
from labs_helpers.grading.jails.together import _Sum
command = [sys.executable, "-c", {parts!r}]
with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, start_new_session=True) as made:
    made.stdout.readline()
    for memory, processes in ((400, 40), (150, 40), (400, 3)):
        print(_Sum(memory * {MEGABYTE}, processes).exceeds())
    import os, signal
    os.killpg(made.pid, signal.SIGKILL)"""
    nothing, memory, processes, _ = run([sys.executable, "-c", program], timeout=100).split("\n")
    assert nothing == "" and "together need more than" in memory and "more than the 3 processes" in processes


def test_a_cgroup_of_version_2_is_made_beside_the_own_one_and_removed(tmp_path, monkeypatch):
    """A folder stands for the kernel's."""
    (tmp_path / "user" / "labs-jail-0").mkdir(parents=True)  # of a maker that was killed
    (tmp_path / "own").write_text("0::/user/shell\n")
    monkeypatch.setattr(together, "CGROUPS", str(tmp_path))
    monkeypatch.setattr(together, "OWN_CGROUPS", str(tmp_path / "own"))
    monkeypatch.setattr(together.os, "rmdir", lambda path: subprocess.run(["rm", "-r", path], check=True))
    with together._cgroup(2**30, 40) as folders:
        (made,) = map(Path, folders)
        written = {path.name: path.read_text() for path in made.iterdir()}
        assert written == {"memory.max": str(2**30), "memory.oom.group": "1", "pids.max": "40"}
        assert os.listdir(tmp_path / "user") == [made.name]
        (made / "memory.events").write_text("oom 1\noom_kill 0\n")
        assert not together._ran_out(folders[0], 2**30)
        (made / "memory.events").write_text("oom 1\noom_kill 3\n")
        assert "more than the 1 GiB" in together._ran_out(folders[0], 2**30)
    assert not made.exists()
