"""Measure data parallelism on lab 01's transformer: all-reduces, wrappers, buckets, scaling, compression, ZeRO.

    torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.study                       # all kinds, on this machine
    torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.study wrappers buckets --size mini --batches 1 4
    sudo python -m labs_helpers.data_parallel.study --pretend-nodes 2 --rate 1gbit wrappers compression

On several nodes, run torchrun on each node, or let Slurm start the ranks. On one Slurm node, torchrun also works in a
batch job:

    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400 \\
        -m labs_helpers.data_parallel.study
    srun --nodes 2 --ntasks-per-node 4 --gpus-per-node 4 python -m labs_helpers.data_parallel.study
    sbatch --gpus 4 --wrap "torchrun --nproc-per-node 4 -m labs_helpers.data_parallel.study"

Each rank uses one GPU and NCCL. Without GPUs, each rank uses one CPU thread and gloo. Rank 0 writes the records of each
kind to build/records/ when the kind has been measured.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from labs_helpers.data_parallel.study.measure import KINDS, Options, Record, check, measure_all
from labs_helpers.data_parallel.study.pretended import measure_pretended
from labs_helpers.data_parallel.study.records import STUDY
from labs_helpers.data_parallel.study.report import report
from labs_helpers.data_parallel.study.task import MODELS
from labs_helpers.launch import program
from labs_helpers.launch.pretend_nodes import can_pretend
from labs_helpers.launch.world import add_timeout, environment
from labs_helpers.measure.machine import cores_label, this_machine
from labs_helpers.measure.torchrun import on_ranks


def main(arguments: list[str] | None = None) -> None:
    parser = _parser()
    given = parser.parse_args(arguments)
    pretend = given.pretend_nodes is not None
    if pretend:
        os.environ["LABS_DEVICE"] = "cpu"  # pretended nodes use no GPU
    gpus = this_machine().device == "cuda"
    kinds = given.kinds or list(KINDS)
    try:
        check(kinds)
        every = [_options(given, batch, gpus) for batch in given.batches or [4 if gpus else 2]]
        if not pretend:
            environment(os.environ)
    except RuntimeError as error:
        parser.error(f"{error}; or with --pretend-nodes 2")
    except ValueError as error:
        parser.error(str(error))
    if pretend:
        if reason := can_pretend():
            parser.error(f"nodes cannot be pretended here: {reason}")
        records = measure_pretended(given.pretend_nodes, given.ranks_per_node, given.rate, kinds, every, given.limit)
        STUDY.keep(records, given.out, machine=cores_label(), on=_on(given))
        print(f"\n{report(records)}\n", flush=True)
        return
    with on_ranks(STUDY, given) as rank:
        records = measure_all(kinds, every, rank.say, rank.at, lambda found: rank.keep(found, given.out, _on(given)))
        rank.show(f"\n{report(records)}\n")


def _on(given: Namespace) -> Record | None:
    return {"note": given.note} if given.note else None


def _parser() -> ArgumentParser:
    parser = STUDY.parser(__doc__)
    add = parser.add_argument
    add("kinds", nargs="*", metavar="kind", help=f"kinds to measure: {', '.join(KINDS)}; default: all")
    add("--size", help=f"model size: {', '.join(MODELS)}; default: 1b, or mini (3.5 million parameters) without GPUs")
    add("--batches", type=int, nargs="+", help="sequences per rank and backward pass; wrappers use each, "
        "other kinds the first; default: 4, or 2 without GPUs")  # fmt: skip
    add("--length", type=int, help="tokens per sequence; default: 1024, or 128 without GPUs")
    add("--rounds", type=int, default=10, help="timed steps per candidate; default: %(default)s")
    add("--bucket-mb", type=float, help="default: an eighth of the gradients, at most 100")
    add("--steps", type=int, default=200, help="steps of each loss curve; default: %(default)s")
    add("--link", help="the connection's name in the records; default: '1 node', '2 nodes' …")
    add("--note", help="a note kept with the records, for example about other load")
    add("--pretend-nodes", type=int, metavar="N", help="start ranks in N network namespaces of this machine (as root)")
    add("--ranks-per-node", type=int, default=1, help="ranks per pretended node; default: %(default)s")
    add("--rate", help="rate of the cable between pretended nodes: 200mbit, 1gbit; default: no limit")
    add_timeout(parser)
    return parser


def _options(given: Namespace, batch: int, gpus: bool) -> Options:
    size, length = given.size or ("1b" if gpus else "mini"), given.length or (1024 if gpus else 128)
    return Options(size, batch, length, given.rounds, given.bucket_mb, given.steps, given.link, given.rate)


if __name__ == "__main__":
    program.run(main)
