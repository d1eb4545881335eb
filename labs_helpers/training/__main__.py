"""Train lab 01's transformer on dp × pp × tp ranks of torch.distributed: NCCL on GPUs, else gloo.

    torchrun --nproc-per-node 8 -m labs_helpers.training --dp 2 --pp 2 --tp 2
    torchrun --nproc-per-node 4 -m labs_helpers.training --pp 4 --schedule ZB-H1 --micro-batches 16
    torchrun --nproc-per-node 4 -m labs_helpers.training --dp 2 --pp 2 --zero 1 --checkpoint saved
    torchrun --nproc-per-node 2 -m labs_helpers.training --tp 2 --checkpoint saved --resume

The options are those of mpi_scripts/train_2d.py, and each program resumes the other's checkpoints. If a rank fails, is
killed, or keeps the others waiting, all ranks end, and a message names it.
"""

from __future__ import annotations

import os
import sys

from labs_helpers.launch import program
from labs_helpers.launch.leave import leave
from labs_helpers.launch.world import add_timeout
from labs_helpers.measure.torchrun import check_ranks, on_ranks
from labs_helpers.training import options, records
from labs_helpers.training.run import train
from labs_helpers.training.settings import Refused
from labs_helpers.training.torch_world import TorchWorld


def main() -> int:
    refusal: Exception | None = None
    try:
        parser = options.make_parser(__doc__ or "", way="torch")
        add_timeout(parser)
        given = parser.parse_args()
        settings = options.settings_of(given, check_ranks(parser))
        if settings.way != "torch":
            raise Refused(f"way is {settings.way}, which needs mpirun and mpi_scripts/train_2d.py; here it is torch")
    except Refused as error:
        return told(error)
    with on_ranks(records.STUDY, given) as rank:
        try:
            report = train(TorchWorld(), settings, rank.show, rank.at)
        except (Refused, FloatingPointError) as error:  # on every rank
            refusal = error
        else:
            rank.show(str(report))
            if settings.out:
                rank.keep(report.records, settings.out)
    return told(refusal) if refusal else 0


def told(error: Exception) -> int:
    """Print the sentence on one rank, and return the exit status."""
    if os.environ.get("RANK", "0") == "0":
        print(f"{program.name()}: error: {error}", file=sys.stderr, flush=True)
    return 2 if isinstance(error, Refused) else 1


if __name__ == "__main__":
    program.run(main)
    leave()
