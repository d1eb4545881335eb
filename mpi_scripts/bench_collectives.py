"""Time our collectives and the MPI library's on these ranks, from 8 B to 64 MB.

    mpirun -n 8 python -m mpi4py mpi_scripts/bench_collectives.py
    mpirun -n 16 --hostfile hosts python -m mpi4py mpi_scripts/bench_collectives.py --functions allreduce
    srun --mpi=pmix -n 16 python -m mpi4py mpi_scripts/bench_collectives.py --algorithms native ring --out nodes.jsonl
    python mpi_scripts/bench_collectives.py --native-settings 8      # without mpirun; starts 8 ranks per setting

`-m mpi4py` ends all ranks when one fails. With more ranks than cores, add `--oversubscribe` for Open MPI. Each run uses
new buffers, and times are the slowest rank's median. algbw is bytes divided by time; busbw is the rate on the busiest
link (algbw · 2(N−1)/N for all-reduce). Records, with every OMPI_MCA_* variable, go to build/records/.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labs_helpers.collectives import study  # noqa: E402
from labs_helpers.collectives.cost_model import BUS_FACTOR  # noqa: E402
from labs_helpers.collectives.interface import ALGORITHMS  # noqa: E402
from labs_helpers.collectives.race.race import DOCUMENTED, SIZES, race, race_documented  # noqa: E402
from labs_helpers.launch import program  # noqa: E402
from labs_helpers.launch.singleton import leave_nothing, refuse_alone  # noqa: E402
from labs_helpers.measure.machine import cores_label  # noqa: E402
from labs_helpers.measure.options import add_out, count, positive  # noqa: E402


def main() -> None:
    os.environ.setdefault("OMPI_MCA_osc", "^ucx")  # without InfiniBand it prints a warning per rank
    given = arguments()
    if given.native_settings is not None:
        out = ["--out", str(given.out)] if given.out else []
        functions = [name for name in given.functions if name in study.FUNCTIONS]
        limit = ["--limit", str(given.limit)]
        return study.main(["--ranks", str(given.native_settings), "--functions", *functions, *limit, *out])
    leave_nothing()
    from mpi4py import MPI

    from labs_helpers.collectives.race.ping_pong import local_work, ping_pong

    comm = MPI.COMM_WORLD
    refuse_alone(comm.size)
    sizes = [size for size in SIZES if given.smallest <= size <= given.largest]
    records = []
    if given.ping_pong:
        records += ping_pong(comm, together=False) + ping_pong(comm, together=True) + local_work(comm)
    if given.documented:
        records += race_documented(comm, sizes, given.seconds)
        given.functions = []
    for function in given.functions:
        known = (*(name for name in ALGORITHMS[function] if name != "native"), "native")
        algorithms = [name for name in known if name in (given.algorithms or known)]
        records += race(comm, function, algorithms, sizes, given.seconds)
    if comm.rank == 0:
        os.environ["LABS_DEVICE"] = "cpu"
        records = [{"study": "collectives", "setting": "default"} | record for record in records]
        study.STUDY.keep(records, given.out, machine=cores_label(), table=table)


def table(rows):
    """Return one row per race."""
    shown = {"function": "function", "algorithm": "algorithm", "bytes": "bytes", "median_us": "µs"}
    shown |= {"algbw_GBps": "algbw GB/s", "busbw_GBps": "busbw GB/s"}
    return rows[rows["kind"].isin(("race", DOCUMENTED))].rename(columns=shown)[list(shown.values())]


def arguments() -> argparse.Namespace:
    parser = program.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--functions",
        nargs="+",
        choices=BUS_FACTOR,
        metavar="NAME",
        default=["allreduce", "alltoall"],
        help=f"any of {', '.join(BUS_FACTOR)}; default: allreduce alltoall",
    )
    parser.add_argument(
        "--algorithms", nargs="+", metavar="NAME", help="default: all algorithms of each function, native last"
    )
    parser.add_argument("--smallest", type=count, default=SIZES[0], metavar="BYTES")
    parser.add_argument("--largest", type=count, default=SIZES[-1], metavar="BYTES")
    parser.add_argument("--seconds", type=positive, default=0.06, help="per size and algorithm; default: %(default)s")
    parser.add_argument("--ping-pong", action="store_true", help="also measure the data for fitting the cost model")
    parser.add_argument(
        "--native-settings",
        type=count,
        metavar="RANKS",
        help="race the settings of the native collectives, each in separate runs",
    )
    parser.add_argument(
        "--documented",
        action="store_true",
        help="race allreduce(comm, send, recv) with and without validation against native instead",
    )
    add_out(parser, "collectives.MACHINE.jsonl")
    given = parser.parse_args()
    known = {name for function in given.functions for name in ALGORITHMS[function]}
    if unknown := set(given.algorithms or ()) - known:
        parser.error(f"--algorithms: {', '.join(sorted(unknown))}: not one of {', '.join(sorted(known))}")
    if not any(given.smallest <= size <= given.largest for size in SIZES):
        parser.error(f"no size from --smallest {given.smallest} to --largest {given.largest} bytes")
    return given


if __name__ == "__main__":
    program.run(main)
