import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labs_helpers.launch import namespaces as module
from labs_helpers.launch import pretend_nodes as pretending
from labs_helpers.launch.flavour import Flavour
from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout
from labs_helpers.launch.namespaces import _started, remove_leftovers
from labs_helpers.launch.pretend_nodes import can_pretend, pretend_nodes
from tests.launch.deadlocks import arrive, arrived, everybody_receives_first, expire_on_arrival, left
from tests.processes import PATIENCE_S, eventually, started

ROOT = Path(__file__).parents[2]
REASON = can_pretend()
as_root = pytest.mark.skipif(bool(REASON), reason=f"no nodes can be pretended here: {REASON}")


def ours(pid=None) -> list[str]:
    """The namespaces that a process, by default this one, has made."""
    return [path.name for path in module.NAMES.glob(f"pretended-{pid or os.getpid()}-*")]


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert ours() == [] and not list(Path("/sys/class/net").glob("port*"))


def host(comm):
    return comm.rank, os.uname().nodename


@as_root
def test_ranks_are_where_they_belong_and_share_memory_there():
    def look(comm):
        from mpi4py import MPI

        node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        window = MPI.Win.Allocate_shared(8 if node.rank == 0 else 0, 8, comm=node)
        shared = np.frombuffer(window.Shared_query(0)[0], np.int64)
        if node.rank == 0:
            shared[0] = 10 + comm.rank
        window.Fence()
        seen = int(shared[0])
        window.Free()
        return os.uname().nodename, node.size, seen, comm.allreduce(comm.rank)

    with pretend_nodes(3) as nodes:
        assert nodes.hosts == ["node0", "node1", "node2"]
        results = nodes.run_on_ranks(look, 2, timeout=60)
    assert results == [(f"node{rank // 2}", 2, 10 + rank // 2 * 2, 15) for rank in range(6)]


@as_root
def test_nodes_have_cores_of_their_own():
    cores = os.sched_getaffinity(0)
    with pretend_nodes(2) as nodes:
        first, second = nodes.run_on_ranks(lambda comm: os.sched_getaffinity(0), 1, timeout=60)
    assert first <= cores and second <= cores and len(first) == len(second) == max(1, len(cores) // 2)
    assert len(cores) < 2 or not first & second


@as_root
def test_a_rank_on_another_node_is_an_error(monkeypatch):
    with pretend_nodes(2) as nodes:
        monkeypatch.setitem(pretending.OPEN_MPI_5, "PRTE_MCA_rmaps_default_mapping_policy", "node")
        with pytest.raises(RanksFailed, match="rank 1 was to be on node0, but is on node1"):
            nodes.run_on_ranks(host, 2, timeout=60)


@as_root
def test_the_link_is_no_faster_than_asked_and_shared_memory_is():
    with pretend_nodes(2, rate="200mbit") as nodes:
        across, inside = nodes.measure_rate(), nodes.measure_rate(inside=True)
    assert 8 * across.rate <= 1.15 * 200e6 and across.beta >= 8 / 200e6 / 1.15
    assert 0 < across.alpha == across.seconds[8] and sorted(across.seconds) == list(pretending.SIZES)
    assert 8 * inside.rate > 2 * 200e6
    assert str(across).startswith(f"{8e-9 * across.rate:.3g} Gb/s, α ")


@as_root
def test_uses_within_each_other_and_side_by_side_do_not_meet():
    with pretend_nodes(2) as outer, pretend_nodes(1, rate="1gbit") as inner:
        assert len(ours()) == 3 + 2
        assert inner.run_on_ranks(host, 2, timeout=60) == [(0, "node0"), (1, "node0")]
        other = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + (
            "from labs_helpers.launch.pretend_nodes import pretend_nodes\n"
            "with pretend_nodes(2) as nodes:\n"
            "    print(nodes.run_on_ranks(lambda comm: comm.allreduce(1), 1, timeout=60))"
        )
        beside = subprocess.Popen([sys.executable, "-c", other], stdout=subprocess.PIPE)
        assert outer.run_on_ranks(host, 1, timeout=60) == [(0, "node0"), (1, "node1")]
        assert beside.communicate(timeout=100)[0] == b"[2, 2]\n"
        assert len(ours()) == 3 + 2 and ours(beside.pid) == []


@as_root
def test_an_error_on_a_rank_is_named_and_all_is_taken_down():
    def fail(comm):
        if comm.rank == 3:
            raise KeyError("odd one")
        comm.recv(source=3)

    with pytest.raises(RanksFailed, match="fail failed on 4 ranks") as caught, pretend_nodes(2) as nodes:
        nodes.run_on_ranks(fail, 2, timeout=60)
    assert list(caught.value.errors) == [3] and caught.value.errors[3].endswith("KeyError: 'odd one'")
    assert caught.value.errors[3].count("  File ") == 1
    assert [caught.value.stuck[rank][-1].function for rank in range(3)] == ["fail"] * 3


@as_root
def test_a_hang_is_told_from_every_node_and_stopped(monkeypatch, tmp_path):
    expire_on_arrival(monkeypatch, tmp_path, 4)
    with pretend_nodes(2) as nodes, pytest.raises(RanksTimeout, match="did not end within 60 s") as caught:
        nodes.run_on_ranks(everybody_receives_first, 2, tmp_path, timeout=60, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == []
    assert [caught.value.stuck[rank][-1].function for rank in range(4)] == ["everybody_receives_first"] * 4


@as_root
def test_a_killed_mpirun_leaves_no_rank(tmp_path):
    def kill_mpirun(comm, folder):
        if arrive(folder, comm) == 0:
            arrived(folder, comm.size)
            os.kill(os.getppid(), signal.SIGKILL)
        while True:
            os.sched_yield()

    with pretend_nodes(2) as nodes, pytest.raises(RanksFailed, match="kill_mpirun failed on 4 ranks"):
        nodes.run_on_ranks(kill_mpirun, 2, tmp_path, timeout=60, env={"TOKEN": str(tmp_path)})
    assert left(str(tmp_path)) == []


@as_root
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_all_is_gone_when_this_process_is_ended(number, tmp_path):
    source = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + (
        "from labs_helpers.launch.pretend_nodes import pretend_nodes\n"
        "from tests.launch.deadlocks import everybody_receives_first\n"
        "with pretend_nodes(2, '1gbit') as nodes:\n"
        "    nodes.run_on_ranks(everybody_receives_first, 1, sys.argv[1], timeout=600)"
    )
    command, token = [sys.executable, "-c", source, tmp_path], {"TOKEN": str(tmp_path)}
    with started(command, env=os.environ | token, stderr=subprocess.PIPE) as caller:
        arrived(tmp_path, 2)
        assert len(ours(caller.pid)) == 3
        caller.send_signal(number)
        caller.communicate(timeout=PATIENCE_S)
        assert eventually(lambda: not left(str(tmp_path)) and not ours(caller.pid))


@as_root
def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    another_now = f"pretended-{os.getppid()}-{_started(os.getppid()) + 1}-0-switch"  # its number is in use again
    alive = f"pretended-{os.getppid()}-{_started(os.getppid())}-0-node0"
    names = [f"pretended-{gone.pid}-1-0-switch", another_now, alive, "pretended-not-ours"]
    for name in names:
        subprocess.run(["ip", "netns", "add", name], check=True)
    inside = subprocess.Popen(["ip", "netns", "exec", names[0], "sleep", "600"], stdin=subprocess.DEVNULL)
    try:
        remove_leftovers()
        assert [name for name in names if (module.NAMES / name).exists()] == [alive, "pretended-not-ours"]
        assert inside.wait(100) == -signal.SIGKILL
    finally:
        inside.kill()
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)


@as_root
def test_torch_ranks():
    def total(start):
        import torch
        import torch.distributed as dist

        value = torch.tensor([start + dist.get_rank()])
        dist.all_reduce(value)
        return os.uname().nodename, os.environ["LOCAL_RANK"], dist.get_backend(), value.item()

    with pretend_nodes(2) as nodes:
        assert nodes.run_torch(total, 1, 5, timeout=100) == [(f"node{rank}", "0", "gloo", 11) for rank in range(2)]


@as_root
@pytest.mark.parametrize("rate", ["fast", "1", "0gbit", "1gbit; reboot", 10**9])
def test_rates_are_checked(rate):
    with pytest.raises(ValueError, match="rate must be such as '200mbit'"), pretend_nodes(2, rate):
        pass


@as_root
def test_counts_are_checked():
    with pytest.raises(ValueError, match="count must be a number of nodes"), pretend_nodes(0):
        pass
    with pretend_nodes(1) as nodes, pytest.raises(ValueError, match="ranks_per_node must be a positive whole number"):
        nodes.run_on_ranks(host, 0, timeout=60)


MPICH, OPEN_MPI_4 = Flavour("MPICH", "5.0", "/m"), Flavour("Open MPI", "4.1.6", "/m")


@pytest.mark.parametrize("place, name, value, said", [
    (sys, "platform", "darwin", "are Linux's"),
    (os, "geteuid", lambda: 1000, "only root"),
    (shutil, "which", lambda name, **_: None, "ip, tc, taskset, unshare not found .install iproute2, util-linux"),
    (pretending, "find_flavour", lambda: MPICH, "Open MPI 5 is needed, and /m is MPICH 5.0"),
    (pretending, "find_flavour", lambda: OPEN_MPI_4, "Open MPI 5 is needed, and /m is Open MPI 4.1.6"),
    (module, "_plan", lambda *_: "echo not permitted; false", "as in many containers:\n.*not permitted"),
])  # fmt: skip
@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
def test_what_is_missing_is_said(place, name, value, said, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # whatever this machine is
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/bin/{name}")
    monkeypatch.setattr(pretending, "find_flavour", lambda: Flavour("Open MPI", "5.0.11", "mpirun"))
    monkeypatch.setattr(place, name, value)
    monkeypatch.setattr(pretending, "can_pretend", can_pretend.__wrapped__)
    with pytest.raises(RuntimeError, match=f"(?s)nodes cannot be pretended here: .*{said}"), pretend_nodes(2):
        pass
