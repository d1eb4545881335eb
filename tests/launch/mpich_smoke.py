"""Test the launcher and the collectives under MPICH: .venv-mpich/bin/python tests/launch/mpich_smoke.py

This is a program, not a test: its environment has mpich, mpi4py, numpy and cloudpickle, but no pytest or torch.
"""

import tempfile
from pathlib import Path

from labs_helpers.launch.flavour import find_flavour
from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, mpirun, run_on_ranks
from tests.launch.deadlocks import everybody_receives_first, killed, left

SCRIPTS = Path(__file__).parents[2] / "mpi_scripts"


def fails(kind, function, *args):
    with tempfile.TemporaryDirectory() as folder:
        try:
            run_on_ranks(function, 4, folder, *args, timeout=10, env={"TOKEN": folder})
        except kind as error:
            assert left(folder) == []
            return error
    raise AssertionError(f"{function.__name__} did not fail")


def raises(comm, folder):
    if comm.rank == 1:
        raise ValueError("odd one")
    comm.recv(source=1)


def main():
    assert find_flavour().name == "MPICH"
    assert run_on_ranks(lambda comm: comm.allreduce(comm.rank), 8, timeout=60) == [28] * 8
    hello = mpirun(SCRIPTS / "hello.py", 4, "--barrier", timeout=60)
    assert all(f"Hello from rank {rank} of 4" in text for rank, text in enumerate(hello)), hello
    assert "ranks 0-3: in everybody_receives_first" in str(fails(RanksTimeout, everybody_receives_first))
    error = fails(RanksFailed, raises)
    assert list(error.errors) == [1] and sorted(error.stuck) == [0, 2, 3], error
    error = fails(RanksFailed, killed, 2)
    assert error.silent == [2] and sorted(error.stuck) == [0, 1, 3], error
    print(*mpirun(SCRIPTS / "check_collectives.py", 4, timeout=120), sep="")
    print("all is well under MPICH")


if __name__ == "__main__":
    main()
