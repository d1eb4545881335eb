"""Test what a command in the jail can reach, and what the jail prevents."""

import os
import sys
from pathlib import Path

import pytest

from labs_helpers.grading.jails import bubblewrap as jail
from labs_helpers.grading.jails import probe
from labs_helpers.grading.jails.bubblewrap import MEGABYTE, Limits, in_jail, why_not
from labs_helpers.grading.jails.no_namespaces import advice
from labs_helpers.launch.process import ProcessFailed, ProcessTimeout, run

needs_jail = pytest.mark.skipif(bool(why_not()), reason=why_not())
SMALL = Limits(seconds=10, memory=512 * MEGABYTE, processes=40, file=MEGABYTE)


def inside(code, readable=(), limits=SMALL, timeout=100):
    return run(in_jail([sys.executable, "-c", code], readable, limits), timeout=timeout, env={"SECRET": "hidden"})


@needs_jail
def test_it_is_nobody_in_an_empty_place_without_our_environment(tmp_path):
    (tmp_path / "key").write_text("the key")
    ours = {Path(prefix).parts[2] for prefix in (sys.prefix, sys.base_prefix) if prefix.startswith("/tmp/")}
    told = inside(
        f"import os; print(os.getuid() != 0, set(os.listdir('.')) == {ours or set()!r}, "
        "'SECRET' in os.environ, os.getpid() < 10, "
        f"os.path.exists({str(tmp_path / 'key')!r}), os.path.exists('/etc/passwd'), os.path.exists({__file__!r}))"
    )
    assert told.split() == ["True", "True", "False", "True", "False", "False", "False"]


@needs_jail
def test_what_is_shown_can_be_read_and_not_written(tmp_path):
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "text").write_text("to read")
    code = f"""
import os
folder = {str(tmp_path / "lab")!r}
print(open(folder + "/text").read())
for path in (folder + "/text", folder + "/new", "/new", "/usr/new", {sys.prefix + "/new"!r}):
    try:
        open(path, "w")
        print("written", path)
    except OSError:
        pass
"""
    assert inside(code, [tmp_path / "lab"]) == "to read\n"
    assert os.listdir(tmp_path / "lab") == ["text"]


@needs_jail
def test_what_it_is_told_no_other_process_of_the_jail_holds():
    """Where a person who is not root grades, the jail's first process is the same user's as an answer."""
    code = """
import os
for number in filter(str.isdigit, os.listdir("/proc")):
    if int(number) != os.getpid():
        try:
            print(os.read(os.open(f"/proc/{number}/fd/0", os.O_RDONLY), 99))
        except OSError:
            pass
print(input())
"""
    words = in_jail([sys.executable, "-c", code], (), SMALL)
    assert set(run(words, input="a token\n", timeout=100, env={}).split("\n")) <= {"a token", "b''", ""}


@needs_jail
def test_there_is_no_network_and_nobody_else_to_signal():
    code = """
import os, signal, socket
for family, address in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("127.0.0.1", 22))):
    try:
        socket.create_connection(address, timeout=2)
        print("connected")
    except OSError:
        pass
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[-1] < 20, os.getppid() < 2)
try:
    os.kill(-1, signal.SIGKILL)
except ProcessLookupError:
    print("nobody")
"""
    assert inside(code).split() == ["True", "True", "nobody"]


@needs_jail
@pytest.mark.parametrize("name, code, words", [
    ("memory", "x = bytearray(10**9)", "MemoryError"),
    ("files", "open('big', 'wb').write(bytes(2**21))", "File too large|File size limit|signal"),
    ("scratch", "[open(str(i), 'wb').write(bytes(2**19)) for i in range(10**4)]", "No space left"),
])  # fmt: skip
def test_it_is_stopped_at_its_limits(name, code, words):
    with pytest.raises(ProcessFailed, match=words):
        inside(code)


@needs_jail
def test_at_its_time_limit_all_of_it_is_gone(tmp_path):
    """Other tests have sleepers of their own."""
    code = "import os, time\nos.setsid() if os.fork() == 0 else None\nprint('begun', flush=True)\ntime.sleep(617)"
    with pytest.raises(ProcessTimeout):
        inside(code, timeout=1.5)
    assert not running("time.sleep(617)")


def running(text):
    """The processes with this text in their command."""
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if text.encode() in _read(path)]


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_without_rights_of_root_the_jail_is_a_user_namespace(monkeypatch):
    monkeypatch.setattr(jail.os, "geteuid", lambda: 1000)
    words = in_jail(["true"])
    rest = words[words.index("--unshare-user") :]
    assert rest[1:6] == ["--cap-drop", "ALL", "--disable-userns", "--assert-userns-disabled", "--"]
    assert words[words.index("--remount-ro") + 1] == "/dev"  # this user could write there
    assert rest[6] == "prlimit" and rest[-1] == "true" and "setpriv" not in words


def test_root_gives_each_jail_a_user_whose_processes_are_counted_alone(monkeypatch):
    monkeypatch.setattr(jail.os, "geteuid", lambda: 0)
    users = {word for _ in range(3) for word in in_jail(["true"]) if word.startswith("--reuid=")}
    assert len(users) == 3 and all(61184 <= int(user.partition("=")[2]) < 65520 for user in users)


@needs_jail
def test_what_hides_a_folder_leaves_the_rest(tmp_path):
    (tmp_path / "lab" / "answers").mkdir(parents=True)
    (tmp_path / "lab" / "answers" / "one").write_text("the answer")
    (tmp_path / "lab" / "text").write_text("to read")
    code = f"import os; print(*map(os.listdir, {[str(tmp_path / 'lab' / 'answers'), str(tmp_path / 'lab')]}))"
    command = in_jail([sys.executable, "-c", code], [tmp_path / "lab"], SMALL, [tmp_path / "lab" / "answers"])
    assert run(command, timeout=100, env={}) in ("[] ['answers', 'text']\n", "[] ['text', 'answers']\n")


@needs_jail
def test_a_probe_finds_no_way_out():
    assert probe.leaks(jail.run_in_jail) == ""


def test_a_probe_finds_what_is_no_jail():
    def in_no_jail(command, readable, **given):
        return run(command, **given)

    told = probe.leaks(in_no_jail)
    assert "can signal processes that are not its own" in told
    assert "can read " in told and "has no limit on memory" in told


def test_a_machine_without_bubblewrap_says_so(monkeypatch):
    monkeypatch.setattr(jail.shutil, "which", lambda name: None if name == "bwrap" else name)
    assert why_not.__wrapped__() == "bwrap is not installed: it is in the package bubblewrap"


def test_a_machine_that_makes_no_namespaces_says_so(monkeypatch):
    def blocked(command, **given):
        raise ProcessFailed(command, 1, "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted")

    monkeypatch.setattr(jail.shutil, "which", lambda name: name)
    monkeypatch.setattr(jail, "run", blocked)
    told = why_not.__wrapped__()
    assert told.startswith("bubblewrap does not work here: bwrap: loopback: Failed RTM_NEWADDR")
    assert "--unsafe" in told and "--image course.sif" in told


@pytest.mark.parametrize("said", [  # the first two on Ubuntu 24.04, by its own bubblewrap and by others
    "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "bwrap: setting up uid map: Permission denied",
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces.", "bwrap: Creating new namespace failed: Operation not permitted",
    "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
])  # fmt: skip
@pytest.mark.parametrize("setting, value, words", [
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict"),
    ("kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "0", "sysctl user.max_user_namespaces"),
    ("kernel/other", "1", "Inside a container"),
])  # fmt: skip
def test_the_cause_is_looked_for_and_what_to_do_is_said(tmp_path, said, setting, value, words):
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")
    told = advice(said, tmp_path)
    assert words in told and told.endswith("as yourself")
    assert all(len(line) <= 120 for line in told.splitlines())


def test_another_fault_of_bubblewrap_gets_no_advice(tmp_path):
    assert advice("bwrap: execvp prlimit: No such file or directory", tmp_path) == ""
