"""Race our pipeline schedules against PyTorch's in turns, in one run, on lab 01's transformer.

    torchrun --nproc-per-node 2 -m labs_helpers.pipeline.race                  # NCCL; some minutes
    torchrun --nproc-per-node 2 -m labs_helpers.pipeline.race --rounds 3       # gloo

A step consists of the forward and backward passes of all micro-batches, without an update. The same command times each
stage's passes outside the pipeline, and compares the simulator's prediction with each of our schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.launch import program
from labs_helpers.launch.leave import leave
from labs_helpers.launch.world import add_timeout
from labs_helpers.measure.device_memory import allocated, release, reset_peak
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.race import TorchRanks, clock, collected_between, disagreements, race
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import as_text
from labs_helpers.measure.torchrun import check_ranks, on_ranks
from labs_helpers.pipeline import graphs
from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.measured import Recorder
from labs_helpers.pipeline.race.candidates import THEIRS, Candidate, Step, Work, build, candidates_on
from labs_helpers.pipeline.race.passes import (
    Passes,
    gather_passes,
    message_seconds,
    own_work,
    predicted_peaks,
    times_of,
)
from labs_helpers.pipeline.records import STUDY, bar_record
from labs_helpers.pipeline.simulate import simulate
from labs_helpers.transformer import SIZES

if TYPE_CHECKING:
    import pandas

Record = dict[str, Any]
SAME = {torch.bfloat16: 0.01, torch.float32: 1e-4}  # relative difference of the losses
WARM_UP = graphs.WARM_UP + 1  # steps; the last one may capture graphs, and in it memory is measured


class Passing:
    """The passes of each cut, measured once and used by every candidate with that cut and the same kind of launch."""

    def __init__(self, work: Work) -> None:
        self.work, self.found = work, dict[tuple[str, int, bool], list[Passes]]()
        self.transfer = message_seconds(work)

    def of(self, cut: str, stages: int, graphs: bool) -> list[Passes]:
        key = cut, stages, graphs
        if key not in self.found:
            self.found[key] = gather_passes(self.work, *key)
            release()
        return self.found[key]


def measure(
    work: Work,
    candidates: Sequence[Candidate],
    rounds: int,
    passing: Passing,
    say: Callable[[str], None] = print,
    at: Callable[[str], None] = lambda text: None,
) -> list[Record]:
    """Time the candidates in turns; return one record each, and one of each of our timelines, the same on every rank.

    A time is that of one step on the slowest rank. A candidate that fails, or whose loss differs from the first one's,
    has an error in its record and no times. Every rank calls this.
    """
    ranks, device = TorchRanks(work.group.group), work.device
    entered: list[tuple[Record, Step, Pipeline | None]] = []
    for candidate in candidates:
        say(f"{work.micro_batches} micro-batches: {candidate.library}, {candidate}")
        at(f"{candidate.library}, {candidate}")
        entered.append(_enter(candidate, work, ranks))
    losses = {n: record["loss"] for n, (record, _, _) in enumerate(entered) if "error" not in record}
    for number, said in disagreements(losses, SAME[work.dtype]).items():
        entered[number][0]["error"] = f"the loss is {said}"
    at("turns")
    runs = {n: step for n, (record, step, _) in enumerate(entered) if "error" not in record}
    clocks = {n: partial(_clock, step, device, ranks) for n, step in runs.items()}
    with collected_between() as collect:
        for number, found in race(ranks, clocks, rounds, collect).items():
            entered[number][0].update(found)
    records = [record for record, _, _ in entered]
    for record, step, pipeline in entered:
        if pipeline is not None and "error" not in record:
            at(f"the timeline of {record['name']}")
            record |= _predicted(record, pipeline, passing)
            records.append(record | {"kind": "timeline"} | _timeline(step, pipeline, ranks))
    return records


def _enter(candidate: Candidate, work: Work, ranks: TorchRanks) -> tuple[Record, Step, Pipeline | None]:
    device = work.device
    record: Record = {
        "kind": "race", "library": candidate.library, "name": candidate.name, "candidate": str(candidate),
        "cut": candidate.cut, "chunks": candidate.chunks, "fused": candidate.fused, "graphs": candidate.graphs,
    }  # fmt: skip
    before, error, step, pipeline = allocated(device), "", lambda: torch.zeros(()), None
    try:
        step, pipeline = build(candidate, work)
        for _ in range(WARM_UP - 1):
            step()
        reset_peak(device)
        loss = step().float().item()
        record["loss"] = sum(ranks.gather(loss))
    except Exception as failure:  # if only one rank fails, the others wait until their time limit
        error = f"{type(failure).__name__}: {(str(failure).splitlines() or [''])[0]}"
    if errors := [said for said in ranks.gather(error) if said]:
        record["error"] = errors[0]
    elif device.type == "cuda":
        record["peak_bytes"] = max(ranks.gather(torch.cuda.max_memory_allocated() - before))
    return record, step, pipeline


def _clock(step: Step, device: torch.device, ranks: TorchRanks) -> float:
    return clock(step, device, ranks)[1]


def _predicted(record: Record, pipeline: Pipeline, passing: Passing) -> Record:
    schedule = pipeline.schedule
    passes = passing.of(record["cut"], schedule.stages, record["graphs"])
    times = times_of(passes, passing.transfer)
    return {
        "predicted_ms": 1e3 * simulate(schedule, times).seconds,
        "own_work_ms": 1e3 * own_work(schedule, times),
        "predicted_bytes": max(predicted_peaks(schedule, passes)),
        "passes_ms": [{kind: 1e3 * taken for kind, taken in one.seconds.items()} for one in passes],
        "transfer_ms": 1e3 * passing.transfer,
    }


def _timeline(step: Step, pipeline: Pipeline, ranks: TorchRanks) -> Record:
    ranks.barrier()
    with Recorder(pipeline) as recorder:
        step()
    bars = [bar for of_rank in ranks.gather(recorder.bars()) for bar in of_rank]
    begin = min(bar.start for bar in bars)
    return {"bars": [bar_record(bar, begin) for bar in bars]}


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per candidate: time, memory, both relative to PyTorch's best, and the predictions of ours."""
    columns = "step_ms step_p20_ms step_p80_ms peak_bytes predicted_ms predicted_bytes own_work_ms error".split()
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *columns])))
    theirs = rows[(rows["library"] == THEIRS) & (rows["cut"] == "equal blocks")].groupby("micro_batches")
    rows["GB"] = rows["peak_bytes"].astype(float) / 1e9
    rows["/ theirs"] = rows["step_ms"] / rows["micro_batches"].map(theirs["step_ms"].min())
    rows["spread"] = (rows["step_p80_ms"] - rows["step_p20_ms"]) / rows["step_ms"]
    rows["/ own work"] = rows["step_ms"] / rows["own_work_ms"]
    rows["/ predicted"] = rows["step_ms"] / rows["predicted_ms"]
    rows["GB / predicted"] = rows["peak_bytes"].astype(float) / rows["predicted_bytes"].astype(float)
    shown = ["micro_batches", "library", "candidate", "step_ms", "spread", "/ theirs", "/ own work", "GB",
             "/ predicted", "GB / predicted", "loss", "error"]  # fmt: skip
    return rows[shown]


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--size", choices=list(SIZES), help="model size; default: 1b, or tiny without GPUs")
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[4, 8, 16], help="default: 4 8 16")
    parser.add_argument("--batch", type=int, default=2, help="sequences per micro-batch; default: %(default)s")
    parser.add_argument("--length", type=int, help="tokens per sequence; default: 1024, or 128 without GPUs")
    parser.add_argument("--rounds", type=int, default=10, help="turns per candidate; default: %(default)s")
    add_timeout(parser)
    given = parser.parse_args(arguments)
    for name in ("batch", "rounds", "micro_batches"):
        value = getattr(given, name)
        if (value if isinstance(value, int) else min(value)) < 1:
            parser.error(f"--{name.replace('_', '-')} is {value}, at least 1")
    check_ranks(parser)
    gpus = this_machine().device == "cuda"
    size, length = given.size or ("1b" if gpus else "tiny"), given.length or (1024 if gpus else 128)
    dtype = torch.bfloat16 if gpus else torch.float32
    with on_ranks(STUDY, given) as rank:
        group = TorchCommunication(dist.group.WORLD)
        records: list[Record] = []
        work = Work(SIZES[size], given.batch, length, given.micro_batches[0], dtype, rank.device, group)
        passing = Passing(work)
        for micro_batches in given.micro_batches:
            work = replace(work, micro_batches=micro_batches)
            same = {
                "study": STUDY.name, "world_size": group.size, "size": size, "batch": given.batch, "length": length,
                "dtype": str(dtype).removeprefix("torch."), "micro_batches": micro_batches,
            }  # fmt: skip
            measured = measure(work, candidates_on(rank.device), given.rounds, passing, rank.say, rank.at)
            found = [same | record for record in measured]
            rank.keep(found, given.out)  # now, since a time limit may end the next ones
            records += found
            release()
            dist.barrier()
        rank.at("the table")
        rank.show(as_text(table(frame([record for record in records if record["kind"] == "race"]))))


if __name__ == "__main__":
    program.run(main)
    leave()
