"""The commands of the course, started without an activated environment."""

import sys

import pytest

from labs_helpers.launch import start
from labs_helpers.launch.flavour import Flavour
from labs_helpers.launch.process import run

OPEN_MPI, MPICH = (Flavour(name, "5", "/x/mpirun") for name in ("Open MPI", "MPICH"))


def test_a_topic_means_its_study_and_a_module_itself():
    assert start.study("gemm", None, ["--quick"]) == [sys.executable, "-m", "labs_helpers.gemm.study", "--quick"]
    assert start.module_of("gemm.lab02.ladder") == "labs_helpers.gemm.lab02.ladder"
    assert start.study("data_parallel.race", 2, [])[1:] == [
        "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "labs_helpers.data_parallel.race",
    ]  # fmt: skip


@pytest.mark.parametrize("call", [lambda: start.module_of("gem"), lambda: start.module_of("")])
def test_another_topic_is_told_which_there_are(call):
    with pytest.raises(ValueError, match="attention, clinic, collectives, data_parallel, first_kernels.lab00, gemm"):
        call()


@pytest.mark.parametrize(("flavour", "option"), [(OPEN_MPI, "--host"), (MPICH, "-hosts")], ids=["Open MPI", "MPICH"])
def test_a_script_runs_under_this_environment_s_mpirun(flavour, option, monkeypatch):
    monkeypatch.setattr(start, "find_flavour", lambda: flavour)
    monkeypatch.setattr("os.environ", {})
    command = start.on_ranks("hello", 3, "a:2,b:1", ["--barrier"])
    assert command[:5] == ["/x/mpirun", "-n", "3", option, "a:2,b:1"] and command[-1] == "--barrier"
    with pytest.raises(ValueError, match="The scripts are: bench_collectives, check_collectives, hello, train_2d"):
        start.on_ranks("nothing", 3, "", [])


def test_it_runs_as_root_with_more_ranks_than_cores_and_leaves_a_program_its_own_options():
    command = [sys.executable, "-m", "labs_helpers.launch.start", "--ranks", "5", "mpirun", "hello", "--barrier"]
    assert run(command, timeout=100).count("Hello from rank") == 5
