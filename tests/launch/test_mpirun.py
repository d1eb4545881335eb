import inspect
import linecache
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from labs_helpers.launch import process, worker
from labs_helpers.launch.flavour import Flavour, _recognise, find_flavour, own_cores, shared_memory
from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, mpirun, run_on_ranks
from labs_helpers.launch.process import OUTPUT_LIMIT
from labs_helpers.launch.stuck import name_ranks, read_frames
from tests.launch.deadlocks import DEADLOCKS, arrive, arrived, expire_on_arrival, killed, left
from tests.processes import PATIENCE_S, eventually, started

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(tmp_path):
    def write(source):
        file = tmp_path / "script.py"
        file.write_text(textwrap.dedent(source))
        return file

    return write


def size(file):
    """Return a file's bytes; 0 if its rank has removed it in the meantime."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_results_come_back_in_rank_order_from_more_ranks_than_cores():
    def squares(comm, scale):
        return np.arange(3) * scale * comm.allreduce(1) + comm.rank

    results = run_on_ranks(squares, 5, 2, timeout=60)
    assert [list(result) for result in results] == [[r, 10 + r, 20 + r] for r in range(5)]


def test_what_ranks_print_is_printed_in_rank_order(capfd):
    def speak(comm):
        for other in range(comm.size):
            comm.Barrier()
            if other == comm.size - 1 - comm.rank:
                print("rank", comm.rank)
                os.write(2, b"over\n")

    run_on_ranks(speak, 3, timeout=60)
    assert capfd.readouterr().out == "rank 0\nover\nrank 1\nover\nrank 2\nover\n"


def test_scripts_get_their_arguments_and_environment(script):
    file = script("""
        import os, sys
        import labs_helpers
        from mpi4py import MPI
        print(MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, sys.argv[1:], os.environ["COLOUR"], __name__, sys.path[0])
    """)
    outputs = mpirun(file, 2, "--size", 3, timeout=60, env={"COLOUR": "grün"})
    assert outputs == [f"{rank} 2 ['--size', '3'] grün __main__ {file.parent}\n" for rank in range(2)]


def test_hello():
    outputs = mpirun(ROOT / "mpi_scripts/hello.py", 3, "--barrier", timeout=60)
    assert [text.split(" on ")[0] for text in outputs] == [f"Hello from rank {rank} of 3" for rank in range(3)]
    assert "--barrier" in mpirun(ROOT / "mpi_scripts/hello.py", 1, "--help", timeout=60)[0]


CELLS = """
from labs_helpers.launch.mpirun import run_on_ranks
#
def helper(comm):
    if comm.rank == 1:
        raise ValueError("odd one")
    comm.recv(source=1)
#
def shift(comm):
    comm.Barrier()
    helper(comm)
#
import re
try:
    run_on_ranks(shift, 3, timeout=60)
except Exception as error:
    print("told:", error)
"""


def test_functions_from_notebook_cells():
    from jupyter_client.manager import start_new_kernel

    told = []
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60, cwd=ROOT)
    try:
        for cell in CELLS.split("#\n"):
            hook = lambda message: told.append(message["content"].get("text", ""))  # noqa: E731
            client.execute_interactive(cell, timeout=60, output_hook=hook)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    told = "".join(told)
    assert "rank 1 raised:\nTraceback (most recent call last):\n  cell [3], line 3, in shift\n    helper(comm)" in told
    assert "ValueError: odd one" in told
    assert "ranks 0, 2: in helper, line 4 of cell [2]: comm.recv(source=1)\n" in told
    assert "    called from shift, line 3 of cell [3]: helper(comm)" in told


def test_a_rank_that_raises_ends_the_others():
    def fail(comm):
        print("before")
        if comm.rank == 1:
            raise KeyError("odd one")
        comm.recv(source=1)

    with pytest.raises(RanksFailed, match="fail failed on 3 ranks") as caught:
        run_on_ranks(fail, 3, timeout=60)
    error = caught.value
    assert list(error.errors) == [1] and error.errors[1].endswith("KeyError: 'odd one'")
    assert "worker.py" not in str(error) and error.outputs == ["before\n"] * 3 and error.silent == []
    for rank in 0, 2:
        assert (error.stuck[rank][-1].function, error.stuck[rank][-1].line) == ("fail", line_of(fail, "comm.recv"))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.stuck == error.stuck


def test_the_same_error_on_every_rank_is_told_once():
    def fail(comm):
        raise ValueError("everybody")

    with pytest.raises(RanksFailed, match="ranks 0-2 raised") as caught:
        run_on_ranks(fail, 3, timeout=60)
    assert str(caught.value).count("ValueError: everybody") == 1


@pytest.mark.parametrize("before", ["", "from mpi4py import MPI"])
@pytest.mark.parametrize("end, told", [("sys.exit(3)", "SystemExit: 3"), ("raise OSError('full')", "OSError: full")])
def test_a_script_that_fails(script, before, end, told):
    with pytest.raises(RanksFailed, match="script.py failed on 2 ranks") as caught:
        mpirun(script(f"import sys\n{before}\nprint('so far')\n{end}"), 2, timeout=60)
    assert told in str(caught.value) and "so far\n" in caught.value.outputs


def test_a_crash_is_told():
    def crash(comm):
        if comm.rank == 0:
            import ctypes

            ctypes.string_at(0)
        comm.Barrier()

    with pytest.raises(RanksFailed, match="rank 0 crashed: Fatal Python error: Segmentation fault"):
        run_on_ranks(crash, 2, timeout=60)


@pytest.mark.parametrize("deadlock", DEADLOCKS)
def test_a_deadlock_is_told_and_leaves_nothing(deadlock, monkeypatch, tmp_path):
    expire_on_arrival(monkeypatch, tmp_path, 3)
    with pytest.raises(RanksTimeout, match=f"{deadlock.__name__} on 3 ranks did not end within 60 s") as caught:
        run_on_ranks(deadlock, 3, tmp_path, timeout=60, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == []
    assert [caught.value.stuck[rank][-1].function for rank in range(3)] == [deadlock.__name__] * 3
    assert f"in {deadlock.__name__}, line " in str(caught.value) or "called from" in str(caught.value)


@pytest.mark.parametrize("victim", range(3))
def test_a_killed_rank_ends_the_others(victim, tmp_path):
    with pytest.raises(RanksFailed, match=f"rank {victim} ended without a word: killed") as caught:
        run_on_ranks(killed, 3, tmp_path, victim, timeout=60, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == [] and caught.value.silent == [victim]
    assert sorted(caught.value.stuck) == sorted({0, 1, 2} - {victim})


def test_killed_mpirun_is_named(tmp_path):
    def kill(comm):
        if comm.rank == 0:
            os.kill(os.getppid(), signal.SIGKILL)
        comm.recv(source=0)

    with pytest.raises(RanksFailed, match="mpirun itself was ended by SIGKILL, and the ranks with it") as caught:
        run_on_ranks(kill, 2, timeout=60, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == [] and "ended without a word" not in str(caught.value)


def test_ranks_that_have_ended_are_named_and_what_they_print_for_ever_is_bounded(tmp_path, monkeypatch):
    """Rank 0 prints until it is ended, rank 1 has returned, rank 2 has left."""

    def on_rank(comm, folder):
        arrive(folder, comm)
        if comm.rank == 2:
            sys.exit()
        while comm.rank == 0:
            print("x" * 10**6)

    folder = []
    wait = process._wait

    def expire(popen, timeout, over):
        if "worker.py" not in str(popen.args):
            return wait(popen, timeout, over)
        here = Path(popen.args[popen.args.index(worker.__file__) + 1])
        assert eventually(lambda: len(list(here.glob("*.done"))) == 2 and list(here.glob("0.output.??")))
        folder.append(sum(map(size, here.glob("0.output*"))))
        raise subprocess.TimeoutExpired(popen.args, timeout)

    monkeypatch.setattr(process, "_wait", expire)
    with pytest.raises(RanksTimeout) as caught:
        run_on_ranks(on_rank, 3, tmp_path, timeout=60, env={"TOKEN": str(tmp_path)})
    assert folder[0] <= 4 * worker.OUTPUT_PART and left(str(tmp_path)) == []
    assert "rank 1 had returned before.\nrank 2 had ended before.\nWhen they were ended:\nrank 0: in on_rank" in str(
        caught.value
    )
    assert "bytes of output left out" in caught.value.outputs[0] and len(caught.value.outputs[0]) <= OUTPUT_LIMIT + 100
    assert len(str(caught.value)) < 3000


def test_a_child_with_a_session_and_an_environment_of_its_own_is_ended(tmp_path):
    def start_a_child(comm):
        child = subprocess.Popen(["sleep", "600"], env={}, start_new_session=True)
        return child.pid

    (child,) = run_on_ranks(start_a_child, 1, timeout=60)
    assert not worker.lives(str(child))


@pytest.fixture
def caller(tmp_path):
    """A process that waits for three deadlocked ranks."""
    module, token = [sys.executable, "-m", "tests.launch.deadlocks", str(tmp_path)], {"TOKEN": str(tmp_path)}
    with started(module, stderr=subprocess.PIPE, cwd=ROOT, env=os.environ | token) as caller:
        arrived(tmp_path, 3)
        yield caller


def test_interrupt_tells_where_the_ranks_stood(caller, tmp_path):
    caller.send_signal(signal.SIGINT)
    told = caller.communicate(timeout=PATIENCE_S)[1].decode()
    assert left(str(tmp_path)) == [] and "KeyboardInterrupt" in told
    assert "everybody_receives_first on 3 ranks was interrupted" in told
    assert "ranks 0-2: in everybody_receives_first, line" in told


def test_ranks_end_with_their_killed_caller(caller, tmp_path):
    caller.kill()
    caller.communicate(timeout=PATIENCE_S)
    assert eventually(lambda: not left(str(tmp_path)))


def test_killed_ranks_leave_no_files(tmp_path):
    def die(comm):
        places = [os.environ[name] for name in ("OMPI_MCA_btl_sm_backing_directory", "OMPI_MCA_orte_tmpdir_base")]
        (tmp_path / "places").write_text("\n".join(places))
        comm.Barrier()
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RanksFailed):
        run_on_ranks(die, 2, timeout=60)
    places = (tmp_path / "places").read_text().splitlines()
    assert len(places) == 2 and not any(map(os.path.exists, places))


@pytest.mark.parametrize("ranks", [0, -1, 1.5, "2", None, True])
def test_the_number_of_ranks_is_checked(ranks):
    with pytest.raises(ValueError, match="ranks must be a positive whole number"):
        run_on_ranks(print, ranks, timeout=60)


def test_missing_files_are_named(tmp_path, script):
    with pytest.raises(FileNotFoundError, match="script does not exist: .*absent.py"):
        mpirun(tmp_path / "absent.py", 2, timeout=60)
    with pytest.raises(FileNotFoundError, match="hostfile does not exist: .*hosts"):
        mpirun(script(""), 2, timeout=60, hostfile=tmp_path / "hosts")


@pytest.mark.parametrize("timeout", [0, -1, None])
def test_the_time_limit_is_checked(timeout):
    with pytest.raises(ValueError, match="timeout"):
        run_on_ranks(print, 1, timeout=timeout)


def test_what_cannot_travel_is_refused():
    with pytest.raises(TypeError, match="pickle"):
        run_on_ranks(print, 1, threading.Lock(), timeout=60)


def test_host_file(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("localhost slots=2\n")
    file = script("import os; from mpi4py import MPI; print(MPI.COMM_WORLD.rank, os.environ['COLOUR'])")
    outputs = mpirun(file, 2, timeout=60, hostfile="hosts", env={"COLOUR": "green"})
    assert outputs == ["0 green\n", "1 green\n"] and sorted(os.listdir(tmp_path)) == ["hosts", "script.py"]


@pytest.mark.parametrize("said, expected", [
    ("mpirun (Open MPI) 5.0.11\n\nReport bugs to https://www.open-mpi.org/", ("Open MPI", "5.0.11")),
    ("mpirun (Open MPI) 4.1.2\n", ("Open MPI", "4.1.2")),
    ("HYDRA build details:\n    Version:      5.0.2\n    CC: gcc", ("MPICH", "5.0.2")),
    ("Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005", ("MPICH", "2021.11")),
])  # fmt: skip
def test_flavours_are_recognised(said, expected):
    assert _recognise(said) == expected


def test_command_lines():
    assert Flavour("MPICH", "5", "m").command(3, "hosts", ["A"]) == ["m", "-n", "3", "-f", "hosts"]
    assert Flavour("Open MPI", "5", "m").command(3, "hosts", ["A"]) == "m -n 3 --hostfile hosts -x A".split()
    assert Flavour("MPICH", "5", "m").environment("/tmp", "/dev/shm").keys() == {"OMP_NUM_THREADS"}
    assert Flavour("Open MPI", "5", "m").environment()["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    assert find_flavour().mpirun.startswith(str(Path(sys.executable).parent))


def _threads(comm):
    return int(os.environ["OMP_NUM_THREADS"])


def test_ranks_share_the_cores_unless_the_user_says_how_many_threads_each_has(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert run_on_ranks(_threads, 2, timeout=60) == [max(1, len(own_cores()) // 2)] * 2
    assert run_on_ranks(_threads, 1, timeout=60, env={"OMP_NUM_THREADS": "3"}) == [3]
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert run_on_ranks(_threads, 1, timeout=60) == [5]


def test_shared_memory_left_by_mpich_is_removed():
    file = Path("/dev/shm/mpich_shm_test_of_the_launcher")
    with shared_memory(Flavour("MPICH", "5", "m")):
        file.touch()
    assert not file.exists()


def test_the_names_of_ranks():
    assert [name_ranks(ranks) for ranks in ([2], [1, 0], [0, 1, 2], [0, 2, 3])] == [
        "rank 2", "ranks 0, 1", "ranks 0-2", "ranks 0, 2, 3"]  # fmt: skip


def test_only_the_first_dump_counts_and_only_the_users_calls():
    dump = f"""Current thread 0x01 [python] (most recent call first):
  File "{linecache.__file__}", line 5 in getline
  File "/home/me/ring.py", line 7 in ring
  File "/home/me/lab.py", line 3 in shift
  File "{ROOT}/labs_helpers/launch/worker.py", line 50 in _call
Current thread 0x01 [python] (most recent call first):
  File "/home/me/lab.py", line 9 in other
"""
    assert [(frame.function, frame.line) for frame in read_frames(dump)] == [("ring", 7), ("shift", 3)]
    assert read_frames("") == ()
