"""Race our wrappers and ZeRO stages against PyTorch's, all in one run, in turns, on lab 01's transformer.

    torchrun --nproc-per-node 4 -m labs_helpers.data_parallel.race                 # NCCL; some minutes
    torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.race --heats shards   # gloo

A step is forward, backward, communication and AdamW's fused update. `candidates.py` says who takes part.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from labs_helpers.collectives.study import machine_label
from labs_helpers.data_parallel.race.candidates import HEATS
from labs_helpers.data_parallel.race.heat import race, release
from labs_helpers.data_parallel.race.setting import Setting
from labs_helpers.data_parallel.race.wrappers import ALONE, THEIRS
from labs_helpers.launch import program
from labs_helpers.launch.leave import leave
from labs_helpers.launch.world import add_timeout, world
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.study import keep, make_parser
from labs_helpers.tensor_parallel.gpu_timing import ALL_REDUCES, all_reduces
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.attentions import ATTENTIONS

STUDY = "data-parallel"
Record = dict[str, Any]


def measure(
    setting: Setting,
    size: str,
    heats: list[str],
    rounds: int,
    steps: int,
    say: Callable[[str], None] = print,
    at: Callable[[str], None] = lambda text: None,
) -> list[Record]:
    """Records of all heats, the same on every rank, which all call it. at: hears on every rank of what begins."""
    same = {
        "study": STUDY,
        "world_size": dist.get_world_size(),
        "size": size,
        "batch": setting.batch,
        "length": setting.length,
        "dtype": str(setting.dtype).removeprefix("torch."),
        "attention": setting.attention,
        "compiled": setting.compiled,
    }
    records = []
    for heat in heats:
        release()
        at(heat)
        found = race(setting, HEATS[heat], rounds, steps, say, at)
        records += [same | {"kind": "race", "heat": heat, "steps": steps} | record for record in found]
    return records


def table(records: list[Record]) -> str:
    """A line per candidate: median and spread in ms, memory, and its time over that of the fastest of PyTorch's."""
    import pandas

    rows = pandas.DataFrame(records)
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, "step_ms", "step_p20_ms", "step_p80_ms", "error",
                                                    "peak_bytes", "held_bytes", "loss"])))  # fmt: skip
    rows["spread"] = (rows["step_p80_ms"] - rows["step_p20_ms"]) / rows["step_ms"]
    for name in ("peak", "held"):
        rows[f"{name} GB"] = rows[f"{name}_bytes"].astype(float) / 1e9
    rows["candidate"] = rows["candidate"].str.replace("gradient_as_bucket_view=True", "views")
    best = rows[rows["library"] == THEIRS].groupby("heat")["step_ms"].min()
    floor = rows[rows["library"] == ALONE].groupby("heat")["step_ms"].min()
    rows["− floor"] = rows["step_ms"] - rows["heat"].map(floor)
    rows["/ theirs"] = rows["step_ms"] / rows["heat"].map(best)
    shown = ["heat", "candidate", "step_ms", "spread", "− floor", "/ theirs", "peak GB", "held GB", "loss", "error"]
    return str(rows[shown].to_string(index=False, float_format="{:.4g}".format, na_rep="–"))


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__ or "", STUDY)
    parser.add_argument("--heats", nargs="+", choices=list(HEATS), default=list(HEATS), help="default: all")
    parser.add_argument("--size", choices=list(SIZES), help="of the model; default: 1b, without GPUs tiny")
    parser.add_argument("--batch", type=int, default=4, help="sequences per rank; default: %(default)s")
    parser.add_argument("--length", type=int, help="tokens of a sequence; default: 1024, without GPUs 128")
    parser.add_argument("--attention", choices=list(ATTENTIONS), default="sdpa", help="default: %(default)s")
    parser.add_argument("--compiled", action="store_true", help="the blocks, one at a time")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each candidate; default: %(default)s")
    parser.add_argument("--steps", type=int, default=3, help="steps of a turn; default: %(default)s")
    add_timeout(parser)
    given = parser.parse_args(arguments)
    for name in ("batch", "rounds", "steps"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} is {getattr(given, name)}, at least 1")
    if "RANK" not in os.environ:
        parser.error("this is started by torchrun: torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.race")
    gpus = this_machine().device == "cuda"
    rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    if gpus and local >= torch.cuda.device_count():
        parser.error(f"rank {rank} is the {local + 1}. of this machine, which has {torch.cuda.device_count()} GPUs")
    device = torch.device("cuda", local) if gpus else torch.device("cpu")
    if gpus:
        prepare_triton()
    size, length = given.size or ("1b" if gpus else "tiny"), given.length or (1024 if gpus else 128)
    dtype = torch.bfloat16 if gpus else torch.float32
    setting = Setting(SIZES[size], given.batch, length, dtype, device, given.attention, given.compiled)

    def say(text: str) -> None:
        if rank == 0:
            print(text, file=sys.stderr, flush=True)

    with world(given.timeout, given.limit, gpus) as note:
        records = measure(setting, size, given.heats, given.rounds, given.steps, say, note)
        if gpus:
            note("all-reduces")
            same = {"study": STUDY, "world_size": dist.get_world_size()}
            records += [
                same | each for each in all_reduces({"all": dist.group.WORLD}, dtype, device, (*ALL_REDUCES, 2**30))
            ]
        if rank == 0:
            note("the table")
            print(table([record for record in records if record["kind"] == "race"]))
            machine = None if gpus else machine_label()
            keep(STUDY, records, given.out, machine=machine, on={"machine": machine} if machine else None)


if __name__ == "__main__":
    program.run(main)
    leave()
