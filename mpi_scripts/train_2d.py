"""Train lab 01's transformer on dp × tp ranks: dp copies of the model, each split over tp ranks.

    mpirun -n 8 python -m mpi4py mpi_scripts/train_2d.py --dp 2 --tp 4
    mpirun -n 4 python -m mpi4py mpi_scripts/train_2d.py --tp 4 --data text --dtype float64 --way own
    mpirun -n 8 python -m mpi4py mpi_scripts/train_2d.py --dp 4 --tp 2 --checkpoint saved --out records.jsonl
    mpirun -n 2 python -m mpi4py mpi_scripts/train_2d.py --dp 2 --checkpoint saved --resume
    mpirun -n 8 python -m mpi4py mpi_scripts/train_2d.py --dp 2 --pp 2 --tp 2 --zero 1

Every layout follows the same loss curve, and can resume from any other layout's checkpoint. `-m mpi4py` ends all ranks
when one fails. With more ranks than cores, add `--oversubscribe` for Open MPI. At the end the script prints time,
memory, and the bytes and messages that each rank sent, counted and by formula.
"""

import contextlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from labs_helpers.launch import program  # noqa: E402
from labs_helpers.launch.singleton import leave_nothing  # noqa: E402
from labs_helpers.training import cores, options  # noqa: E402
from labs_helpers.training.settings import Refused  # noqa: E402


def main() -> None:
    cores.prepare_mpi()
    leave_nothing()
    from mpi4py import MPI  # starts MPI

    comm = MPI.COMM_WORLD
    with contextlib.nullcontext() if comm.rank == 0 else contextlib.redirect_stdout(open(os.devnull, "w")):
        try:
            train(comm)
        except (Refused, FloatingPointError) as error:  # on every rank
            if comm.rank == 0:
                print(f"train_2d.py: error: {error}", file=sys.stderr, flush=True)
            MPI.Finalize()  # otherwise `-m mpi4py` would abort and print a notice per rank
            sys.exit(2 if isinstance(error, Refused) else 1)


def train(comm) -> None:
    settings = options.parse(sys.argv[1:], __doc__, comm.size)
    from labs_helpers.training import train

    report = train(comm, settings, say=lambda line: print(line, flush=True))
    cores_here = cores.count_cores(comm)
    print(report)
    if comm.rank == 0 and settings.out:
        from labs_helpers.training.records import STUDY

        on = {} if report.on_gpus else {"machine": f"{cores_here}-core CPU", "cores": cores_here}
        STUDY.keep(report.records, settings.out, on=on)


if __name__ == "__main__":
    program.run(main)
