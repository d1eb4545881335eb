"""Say hello from every rank.

mpirun -n 4 python mpi_scripts/hello.py
mpirun -n 8 --hostfile hosts python mpi_scripts/hello.py --barrier
srun --mpi=pmix -n 8 python mpi_scripts/hello.py
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labs_helpers.launch import program  # noqa: E402
from labs_helpers.launch.singleton import leave_nothing, refuse_alone  # noqa: E402


def main() -> None:
    parser = program.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, limit=300)
    parser.add_argument("--barrier", action="store_true", help="print in rank order")
    options = parser.parse_args()

    leave_nothing()
    from mpi4py import MPI  # after the options: --help needs no MPI

    comm = MPI.COMM_WORLD
    refuse_alone(comm.size)
    for turn in range(comm.size):
        if turn == comm.rank:
            library = MPI.Get_library_version().split(",")[0].splitlines()[0]
            print(f"Hello from rank {comm.rank} of {comm.size} on {MPI.Get_processor_name()} ({library})", flush=True)
        if options.barrier:
            comm.Barrier()


if __name__ == "__main__":
    program.run(main)
