"""Test grading without a jail: it ends only the processes that an answer started, and applies limits, an empty
folder and no environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import labs_helpers
from labs_helpers.grading.cases import own_answers
from labs_helpers.grading.jails import without_jail
from labs_helpers.grading.jails.bubblewrap import MEGABYTE, Limits, run_in_jail, why_not
from labs_helpers.grading.jails.ending import alone, ending
from labs_helpers.grading.jails.kinds import BUBBLEWRAP, chosen
from labs_helpers.grading.jails.without_jail import run_without_jail
from labs_helpers.grading.reading.lab_imports import imports_of
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.reading.submission import Answer, shipped_exercises
from labs_helpers.grading.verdict import RIGHT, TIMEOUT, verdicts
from labs_helpers.labs import LABS
from labs_helpers.launch.process import ProcessFailed

needs_jail = pytest.mark.skipif(bool(why_not()), reason=why_not())
COURSE = Path(labs_helpers.__file__).parent
SMALL = Limits(seconds=10, memory=512 * MEGABYTE, processes=40, file=MEGABYTE)


@pytest.fixture
def own(monkeypatch):
    """What runs is this test's user, root or not."""
    monkeypatch.setattr(without_jail.os, "geteuid", lambda: 1000)


@pytest.fixture
def bystander():
    """A process of this user, which has nothing to do with grading."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


LEAVES_MUCH = """
import os, signal, sys, time
from labs_helpers.grading.jails.ending import ending
end = ending()
reads, writes = os.pipe()
child = os.fork()
if child == 0:
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork() == 0:
                os.write(writes, b"%d " % os.getpid())
                os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
            os._exit(0)
    time.sleep(600)
left = b""
while left.count(b" ") < 3:
    left += os.read(reads, 100)
end(child)
print(len(set(left.split())), *filter(os.path.exists, (f"/proc/{int(one)}/exe" for one in left.split())))
"""


def test_what_an_answer_left_behind_is_ended_and_a_bystander_is_not(own, bystander):
    assert run_without_jail([sys.executable, "-c", LEAVES_MUCH], timeout=100) == "3\n"
    assert bystander.poll() is None


def test_it_starts_in_an_empty_folder_with_limits_and_without_our_environment(own, monkeypatch):
    monkeypatch.setenv("SECRET", "hidden")
    code = """
import os, resource, tempfile
print(os.getcwd() == os.environ["HOME"] == tempfile.gettempdir(), os.listdir("."), "SECRET" in os.environ)
print(resource.getrlimit(resource.RLIMIT_FSIZE)[0], os.getsid(0))
open("left", "w").write(os.getcwd())
print(os.getcwd())
"""
    told = run_without_jail([sys.executable, "-c", code], limits=SMALL, timeout=100).splitlines()
    size, session = map(int, told[1].split())
    assert told[0] == "True [] False" and size == MEGABYTE and session != os.getsid(0)
    assert not os.path.exists(told[2])


@pytest.mark.parametrize("code, words", [
    ("x = bytearray(10**9)", "MemoryError"), ("open('big', 'wb').write(bytes(2**21))", "File too large|signal"),
])  # fmt: skip
def test_it_is_stopped_at_its_limits(own, code, words):
    with pytest.raises(ProcessFailed, match=words):
        run_without_jail([sys.executable, "-c", code], limits=SMALL, timeout=100)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lose")
def test_as_root_it_is_another_user_or_nothing_at_all():
    code = ["/usr/bin/env", "sh", "-c", "id -u; grep CapEff /proc/self/status; touch here && ls -ld here"]
    user, rights, *_ = run_without_jail(code, timeout=100).splitlines()
    assert user != "0" and set(rights.split()[1]) == {"0"}


def test_outside_of_a_jail_there_is_no_safe_end(monkeypatch):
    assert not alone() and ending() is None


@needs_jail
def test_who_has_company_is_not_alone():
    code = """
import os, sys, time
from labs_helpers.grading.jails.ending import alone
print(alone(), flush=True)
if os.fork() == 0:
    time.sleep(60)
if os.fork() == 0:
    print(alone(), flush=True)
    os._exit(0)
os.wait()
"""
    assert run_in_jail([sys.executable, "-c", code], [COURSE], timeout=100) == "True\nFalse\n"


def test_the_choice_of_a_jail(tmp_path):
    assert chosen() is BUBBLEWRAP and not BUBBLEWRAP.warning
    assert chosen(tmp_path / "course.sif").name == "apptainer"
    unsafe = chosen(unsafe=True)
    assert unsafe.name == "none" and unsafe.warning.startswith("Graded without a jail")


@pytest.mark.soak
def test_answers_are_judged_as_in_a_jail(own, bystander):
    lab = LABS[0]
    first = shipped_exercises(lab)[0]
    source = own_answers(lab)[first.id]
    leaves = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nos._exit(0)"  # its pipe is open
    )
    answers = [Answer(first, text) for text in (source, leaves, source)]
    found = verdicts(answers, imports_of(read_cells(lab.path)), Limits(seconds=6), seeds=(5,), run_in=run_without_jail)
    assert [one.status for one in found] == [RIGHT, TIMEOUT, RIGHT]
    assert bystander.poll() is None
