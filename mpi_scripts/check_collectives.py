"""Check every algorithm of labs_helpers.collectives against the MPI library's own.

    mpirun -n 8 python -m mpi4py mpi_scripts/check_collectives.py

Ends with status 1 and the failing case if a result differs. Works under Slurm (srun) and with a host file too; with
more ranks than cores, Open MPI wants `--oversubscribe`.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labs_helpers.collectives.interface import ALGORITHMS  # noqa: E402
from labs_helpers.collectives.nodes import pretend_nodes  # noqa: E402
from labs_helpers.collectives.operations import NUMBERS  # noqa: E402
from labs_helpers.collectives.verify import DTYPES, SIZES, verify  # noqa: E402
from labs_helpers.launch import program  # noqa: E402
from labs_helpers.launch.singleton import leave_nothing, refuse_alone  # noqa: E402
from labs_helpers.measure.options import count  # noqa: E402


def main() -> int:
    parser = program.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--functions",
        nargs="+",
        choices=ALGORITHMS,
        default=list(ALGORITHMS),
        metavar="NAME",
        help=f"of {', '.join(ALGORITHMS)}",
    )
    parser.add_argument("--sizes", nargs="+", type=size, default=SIZES, metavar="N", help="elements a rank sends")
    parser.add_argument("--dtypes", nargs="+", type=numbers, default=DTYPES, metavar="DTYPE")
    parser.add_argument("--validate", action="store_true", help="with the exchange that compares the ranks' calls")
    parser.add_argument(
        "--ranks-per-node",
        type=count,
        metavar="R",
        help="let R consecutive ranks count as a node; all-reduce within and between them only",
    )
    options = parser.parse_args()
    os.environ.setdefault("OMPI_MCA_osc", "^ucx")  # where it finds no InfiniBand, it says so once a rank
    leave_nothing()
    from mpi4py import MPI

    comm, functions = MPI.COMM_WORLD, options.functions
    refuse_alone(comm.size)
    left_out = ()
    if options.ranks_per_node:
        pretend_nodes(comm, options.ranks_per_node)
        functions, left_out = ["allreduce"], ("shared_memory",)
    cases, failure = verify(comm, functions, options.sizes, options.dtypes, options.validate, left_out)
    if comm.Get_rank() == 0:
        library = MPI.Get_library_version().split(",")[0].splitlines()[0].strip()
        print(failure or f"{comm.Get_size()} ranks: {cases} cases agree with {library}", flush=True)
    return 1 if failure else 0


def size(text: str) -> int:
    if (number := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number


def numbers(text: str) -> np.dtype:
    if (dtype := np.dtype(text)) not in NUMBERS:
        raise argparse.ArgumentTypeError(f"{text} holds no numbers: there are no sums of it")
    return dtype


if __name__ == "__main__":
    program.run(main)
