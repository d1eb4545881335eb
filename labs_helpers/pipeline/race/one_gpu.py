"""Time the stages of a pipeline one after another on one device, and predict its step on as many devices as stages.

    python -m labs_helpers.pipeline.race.one_gpu

A stage's passes are launched from Python, and on a GPU replayed as CUDA graphs as well. The simulator predicts the
steps, with messages at the speed of the GPU's link.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch

from labs_helpers.launch import program
from labs_helpers.measure.datasheet import lookup
from labs_helpers.measure.device_memory import release
from labs_helpers.measure.machine import cores_label, this_machine
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import as_text
from labs_helpers.pipeline.race.candidates import CUTS, Work
from labs_helpers.pipeline.race.passes import Passes, measure_stage, predicted_peaks, times_of
from labs_helpers.pipeline.records import STUDY
from labs_helpers.pipeline.schedules import gpipe, one_f_one_b, zero_bubble
from labs_helpers.pipeline.simulate import simulate
from labs_helpers.transformer import SIZES

Record = dict[str, Any]
MAKERS = {"GPipe": gpipe, "1F1B": one_f_one_b, "ZB-H1": zero_bubble}


def message_seconds(work: Work) -> float:
    """Return the time of an activation at the datasheet's speed of the GPU's link, or 0 for an unknown device."""
    chip = lookup(this_machine().name)
    if chip is None or not chip.link_bandwidth:
        return 0.0
    return math.prod(work.shape) * work.dtype.itemsize / chip.link_bandwidth


def passes_record(passes: list[Passes], transfer: float) -> Record:
    return {
        "kind": "passes",
        "passes_ms": [{kind: 1e3 * taken for kind, taken in one.seconds.items()} for one in passes],
        "stash_bytes": [one.stash for one in passes],
        "transfer_ms": 1e3 * transfer,
    }


def predictions(passes: list[Passes], transfer: float, micro_batches: list[int]) -> list[Record]:
    """Return a record of each schedule's predicted step: ms, and the bytes of the fullest device."""
    found = []
    for count in micro_batches:
        for name, make in MAKERS.items():
            schedule = make(len(passes), count)
            found.append({
                "kind": "predicted", "name": name, "micro_batches": count,
                "predicted_ms": 1e3 * simulate(schedule, times_of(passes, transfer)).seconds,
                "predicted_bytes": max(predicted_peaks(schedule, passes)),
            })  # fmt: skip
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--size", choices=list(SIZES), help="model size; default: 1b, or tiny without a GPU")
    parser.add_argument("--stages", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[4, 8, 16], help="default: 4 8 16")
    given = parser.parse_args(arguments)
    gpu = this_machine().device == "cuda"
    size, length = given.size or ("1b" if gpu else "tiny"), 1024 if gpu else 128
    if not 1 <= given.stages <= SIZES[size].layers:
        parser.error(f"--stages is {given.stages}; {size} has {SIZES[size].layers} layers")
    device, dtype = (torch.device("cuda"), torch.bfloat16) if gpu else (torch.device("cpu"), torch.float32)
    work = Work(SIZES[size], 2, length, min(given.micro_batches), dtype, device, cast(Any, None))
    transfer = message_seconds(work)
    records: list[Record] = []
    for cut in CUTS:
        for graphs in (False, True) if gpu else (False,):
            passes = []
            for number in range(given.stages):
                passes.append(measure_stage(work, cut, given.stages, number, graphs))
                release()
            same = {
                "study": STUDY.name, "size": size, "batch": work.batch, "length": length, "stages": given.stages,
                "dtype": str(dtype).removeprefix("torch."), "cut": cut, "graphs": graphs,
            }  # fmt: skip
            found = [passes_record(passes, transfer), *predictions(passes, transfer, given.micro_batches)]
            records += [same | record for record in found]
    rows = frame([record for record in records if record["kind"] == "predicted"])
    print(as_text(rows[["cut", "graphs", "micro_batches", "name", "predicted_ms", "predicted_bytes"]]))
    STUDY.keep(records, given.out, machine=None if gpu else cores_label())


if __name__ == "__main__":
    program.run(main)
