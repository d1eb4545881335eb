"""Check every algorithm of labs_helpers.collectives against the MPI library's collectives.

    mpirun -n 8 python -m mpi4py mpi_scripts/check_collectives.py

The script exits with status 1 and prints the failing case if a result differs. It also works under Slurm (srun) and
with a host file. With more ranks than cores, add `--oversubscribe` for Open MPI.
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
        help=f"any of {', '.join(ALGORITHMS)}",
    )
    parser.add_argument(
        "--sizes", nargs="+", type=size, default=SIZES, metavar="N", help="elements that each rank sends"
    )
    parser.add_argument("--dtypes", nargs="+", type=numbers, default=DTYPES, metavar="DTYPE")
    parser.add_argument("--validate", action="store_true", help="also validate that the ranks' calls agree")
    parser.add_argument(
        "--ranks-per-node",
        type=count,
        metavar="R",
        help="treat R consecutive ranks as a node, and check only all-reduce",
    )
    options = parser.parse_args()
    os.environ.setdefault("OMPI_MCA_osc", "^ucx")  # without InfiniBand it prints a warning per rank
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
        raise argparse.ArgumentTypeError(f"{text} does not hold numbers, so it cannot be summed")
    return dtype


if __name__ == "__main__":
    program.run(main)
