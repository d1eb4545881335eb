"""Race our wrappers and ZeRO stages against PyTorch's in turns, in one run, on lab 01's transformer.

    torchrun --nproc-per-node 4 -m labs_helpers.data_parallel.race                 # NCCL; some minutes
    torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.race --heats shards   # gloo

A step consists of forward, backward, communication and AdamW's fused update. `candidates.py` lists the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from labs_helpers.communication.all_reduce_times import SIZES as ALL_REDUCES
from labs_helpers.communication.all_reduce_times import time_all_reduces
from labs_helpers.data_parallel.race.candidates import HEATS, THEIRS
from labs_helpers.data_parallel.race.heat import race, release_all
from labs_helpers.data_parallel.race.profile import table as profile_table
from labs_helpers.data_parallel.study.records import ALONE, STUDY
from labs_helpers.data_parallel.study.setting import Setting
from labs_helpers.launch import program
from labs_helpers.launch.leave import leave
from labs_helpers.launch.world import add_timeout
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import as_text
from labs_helpers.measure.torchrun import check_ranks, on_ranks
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.attentions import ATTENTIONS

if TYPE_CHECKING:
    import pandas

Record = dict[str, Any]


def measure(
    setting: Setting,
    size: str,
    heats: list[str],
    rounds: int,
    steps: int,
    say: Callable[[str], None] = print,
    at: Callable[[str], None] = lambda text: None,
    profiled: bool = False,
    only: Sequence[str] = (),
) -> list[Record]:
    """Run all heats; return their records, the same on every rank. Every rank calls this.

    at: called on every rank with the name of each part before it starts. only: names of the candidates to run besides
    the floor, by default all.
    """
    same = {
        "study": STUDY.name,
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
        release_all()
        at(heat)
        wanted = [one for one in HEATS[heat] if not only or one.name in (ALONE, *only)]
        found = race(setting, wanted, rounds, steps, say, at, profiled)
        records += [same | {"kind": "race", "heat": heat, "steps": steps} | record for record in found]
    return records


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per candidate: median in ms, spread, memory, and its time relative to PyTorch's fastest."""
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
    return rows[shown]


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--heats", nargs="+", choices=list(HEATS), default=list(HEATS), help="default: all")
    parser.add_argument("--size", choices=list(SIZES), help="model size; default: 1b, or tiny without GPUs")
    parser.add_argument("--batch", type=int, default=4, help="sequences per rank; default: %(default)s")
    parser.add_argument("--length", type=int, help="tokens per sequence; default: 1024, or 128 without GPUs")
    parser.add_argument("--attention", choices=list(ATTENTIONS), default="sdpa", help="default: %(default)s")
    parser.add_argument("--compiled", action="store_true", help="compile each block")
    parser.add_argument("--rounds", type=int, default=10, help="turns per candidate; default: %(default)s")
    parser.add_argument("--steps", type=int, default=3, help="steps per turn; default: %(default)s")
    parser.add_argument("--only", nargs="+", default=[], help="names of the candidates to run; default: all in a heat")
    parser.add_argument("--profile", action="store_true", help="also trace one step of each candidate")
    add_timeout(parser)
    given = parser.parse_args(arguments)
    for name in ("batch", "rounds", "steps"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} is {getattr(given, name)}, at least 1")
    check_ranks(parser)
    gpus = this_machine().device == "cuda"
    size, length = given.size or ("1b" if gpus else "tiny"), given.length or (1024 if gpus else 128)
    dtype = torch.bfloat16 if gpus else torch.float32
    with on_ranks(STUDY, given) as rank:
        setting = Setting(SIZES[size], given.batch, length, dtype, rank.device, given.attention, given.compiled)
        how = given.rounds, given.steps, rank.say, rank.at, given.profile, given.only
        records = measure(setting, size, given.heats, *how)
        if gpus:
            rank.at("all-reduces")
            same = {"study": STUDY.name, "world_size": dist.get_world_size(), "group": "all"}
            sizes = (*ALL_REDUCES, 2**30)
            records += [same | each for each in time_all_reduces(dist.group.WORLD, dtype, rank.device, sizes)]
        rank.at("the table")
        rows = frame([record for record in records if record["kind"] == "race"])
        rank.show(as_text(table(rows)))
        if given.profile:
            rank.show(as_text(profile_table(rows)))
        rank.keep(records, given.out)


if __name__ == "__main__":
    program.run(main)
    leave()
