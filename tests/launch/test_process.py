import hashlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.launch import process
from labs_helpers.launch.process import ProcessFailed, ProcessTimeout, run
from tests.processes import PATIENCE_S, eventually, started

needs_setpriv = pytest.mark.skipif(not shutil.which("setpriv"), reason="util-linux's setpriv is not installed")


TREE = Path(__file__).with_name("tree.py")


def python(source, **options):
    return run([sys.executable, "-c", textwrap.dedent(source)], **{"timeout": 30, **options})


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def read_pids(file):
    eventually(file.exists)
    return [int(pid) for pid in file.read_text().split()]


def test_stdout_and_stderr_come_back_together_in_order():
    source = "import os; os.write(1, b'a\\n'); os.write(2, b'b\\n'); os.write(1, 'ü\\n'.encode())"
    assert python(source) == "a\nb\nü\n"


def test_output_that_is_not_utf8_is_kept_as_replacement_characters():
    assert python(r"import os; os.write(1, b'a\xff')") == "a\ufffd"


@pytest.mark.parametrize("text", ["", "one\ntwo", "ü" * 300_000, b"\x00\x01"])
def test_input_arrives_whole(text):
    expected = text if isinstance(text, bytes) else text.encode()
    source = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    assert python(source, input=text).strip() == hashlib.sha256(expected).hexdigest()


def test_input_that_is_never_read_blocks_nobody():
    assert python("print('done')", input="x" * 10**7) == "done\n"


def test_stdin_is_empty_without_input():
    assert python("import sys; print(repr(sys.stdin.read()))") == "''\n"


def test_environment_and_folder(tmp_path):
    env = {**os.environ, "COLOUR": "green"}
    shown = python("import os; print(os.environ['COLOUR'], os.getcwd())", env=env, cwd=tmp_path)
    assert shown == f"green {tmp_path.resolve()}\n"


def test_env_is_the_whole_environment(monkeypatch):
    monkeypatch.setenv("COLOUR", "green")
    assert python("import os; print('COLOUR' in os.environ)", env={}) == "False\n"


def test_programs_beside_this_python_are_found(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert run([os.path.basename(sys.executable), "-c", "print(1)"], timeout=100) == "1\n"


def test_leave_prints_all_and_skips_the_end_of_python():
    source = """
        import atexit, sys
        from labs_helpers.launch.leave import leave
        atexit.register(print, "finalized")
        sys.stdout.write("said")
        leave()
    """
    assert python(source) == "said"


def test_failure_names_command_status_and_both_ends_of_the_output():
    with pytest.raises(ProcessFailed) as caught:
        python("for i in range(100): print('line', i)\nraise SystemExit(3)")
    error, message = caught.value, str(caught.value)
    assert error.returncode == 3 and error.command[0] == sys.executable and error.output.startswith("line 0\n")
    assert "status 3" in message and "line 0\n" in message and "line 99" in message
    assert "\nline 19\n... (60 lines left out)\nline 80\n" in message
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ProcessFailed and str(again) == message and again.output == error.output


def test_a_signal_is_named():
    with pytest.raises(ProcessFailed, match="SIGKILL"):
        python("import os; os.kill(os.getpid(), 9)")


def test_command_not_found_is_named():
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        run(["no-such-program"], timeout=1)


def test_file_that_is_not_executable_is_named(tmp_path):
    (tmp_path / "notes").write_text("")
    with pytest.raises(FileNotFoundError, match="notes"):
        run(["./notes"], timeout=1, cwd=tmp_path)


def test_relative_program_is_looked_for_in_the_folder(tmp_path):
    script = tmp_path / "hello"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    assert run(["./hello"], timeout=100, cwd=tmp_path) == "hello\n"


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        run(["true"], timeout=1, cwd=tmp_path / "absent")


@pytest.mark.parametrize("command", ["ls -l", b"ls", [], None, 3])
def test_command_must_be_a_list(command):
    with pytest.raises(TypeError, match="list"):
        run(command, timeout=1)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), None, "3"])
def test_timeout_must_be_positive(timeout):
    with pytest.raises(ValueError, match="timeout"):
        run(["true"], timeout=timeout)


def test_timeout():
    with pytest.raises(ProcessTimeout, match="within 0.3 s"):
        run(["sleep", "600"], timeout=0.3)


@pytest.fixture
def pids(monkeypatch, tmp_path):
    """The file of a tree's pids; the time limit of a run expires as soon as it is there."""
    file = tmp_path / "pids"

    def wait(popen, timeout, over):
        read_pids(file)
        raise subprocess.TimeoutExpired(popen.args, timeout)

    monkeypatch.setattr(process, "_wait", wait)
    return file


def test_timeout_ends_the_whole_tree(pids):
    with pytest.raises(ProcessTimeout):
        run([sys.executable, TREE, pids, "hold"], timeout=100)
    assert not any(map(alive, read_pids(pids)))


def test_a_nested_run_is_ended_with_the_outer_one(pids):
    command = [sys.executable, str(TREE), str(pids), "hold"]
    source = f"from labs_helpers.launch.process import run; run({command!r}, timeout=600)"
    with pytest.raises(ProcessTimeout):
        python(source, cwd=TREE.parents[2])
    assert not any(map(alive, read_pids(pids)))


ON_SIGTERM = """
    import os, signal, sys, time
    signal.signal(signal.SIGTERM, {handler})
    with open({pids!r} + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename({pids!r} + ".part", {pids!r})
    time.sleep(600)
"""


def test_a_command_that_ignores_sigterm_is_killed(monkeypatch, pids):
    monkeypatch.setattr(process, "GRACE_S", 0.2)
    with pytest.raises(ProcessTimeout) as caught:
        python(ON_SIGTERM.format(handler="signal.SIG_IGN", pids=str(pids)))
    assert caught.value.returncode == -signal.SIGKILL and not alive(*read_pids(pids))


def test_sigterm_comes_first(pids):
    with pytest.raises(ProcessTimeout, match="tidied up"):
        python(ON_SIGTERM.format(handler="lambda *_: sys.exit('tidied up')", pids=str(pids)))


def test_what_a_command_leaves_behind_is_ended(tmp_path):
    run([sys.executable, TREE, tmp_path / "pids", "leave"], timeout=100)
    assert not any(map(alive, read_pids(tmp_path / "pids")))


@pytest.fixture
def running(tmp_path):
    """A Python process that waits in `run`, and the pids of the tree that it runs."""
    command = [sys.executable, str(TREE), str(tmp_path / "pids"), "hold"]
    source = f"from labs_helpers.launch.process import run\nrun({command!r}, timeout=600)"
    with started([sys.executable, "-c", source], stderr=subprocess.DEVNULL, cwd=TREE.parents[2]) as caller:
        yield caller, read_pids(tmp_path / "pids")


def test_interrupt_ends_the_whole_tree(running):
    caller, pids = running
    caller.send_signal(signal.SIGINT)
    caller.wait(PATIENCE_S)
    assert not any(map(alive, pids))


@needs_setpriv
def test_command_dies_with_its_killed_caller(running):
    caller, pids = running
    caller.kill()
    # The command alone: a caller that was killed cannot end what the command started.
    assert eventually(lambda: not alive(pids[0]))


def test_two_runs_at_once_leave_each_other_alone():
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(python, "import time; time.sleep(0.3); print('slow')")
        assert python("print('quick')") == "quick\n"
        assert slow.result(100) == "slow\n"


def test_a_flood_keeps_beginning_and_end():
    count = 3 * process.OUTPUT_LIMIT
    text = python(f"import sys; sys.stdout.write('begin' + 'x' * {count} + 'the end')")
    assert text.startswith("beginx") and text.endswith("xthe end")
    assert f"({count + 12 - process.OUTPUT_LIMIT} bytes of output left out)" in text
    assert len(text) < process.OUTPUT_LIMIT + 100


@given(chunks=st.lists(st.binary(max_size=9)), limit=st.integers(1, 20).map(lambda n: 2 * n))
def test_kept_output_is_a_beginning_and_an_end(chunks, limit):
    whole = b"".join(chunks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "OUTPUT_LIMIT", limit)
        output = process._Output()
        for chunk in chunks:
            output.add(chunk)
    head, tail = bytes(output.head), bytes(output.tail)
    assert len(head) + output.left_out + len(tail) == len(whole)
    assert whole.startswith(head) and whole.endswith(tail)
    assert len(head) + len(tail) == min(limit, len(whole))


@pytest.mark.parametrize(
    "given, spins", [({}, "5000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "-")]
)
def test_threads_do_not_spin_long_unless_the_user_says_so(given, spins):
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environ = {name: value for name, value in os.environ.items() if name not in names} | {
        "PYTHONPATH": str(TREE.parents[2])
    }
    source = "import os, labs_helpers; print(os.environ.get('GOMP_SPINCOUNT', '-'))"
    assert run([sys.executable, "-c", source], timeout=60, env=environ | given) == f"{spins}\n"
