"""Race a tensor-parallel step against PyTorch's `parallelize_module`, and time every dp × tp layout of these GPUs.

    torchrun --nproc-per-node 4 -m labs_helpers.tensor_parallel.gpu_race            # NCCL; some minutes
    torchrun --nproc-per-node 2 -m labs_helpers.tensor_parallel.gpu_race   # gloo without GPUs

A step is a forward and a backward pass. All candidates of a layout train the same parameters on the same batch. They
are timed in turns, after their losses and gradient norms agree. The race also times compute alone, the step with
gradients averaged over the data-parallel ranks, and all-reduces, from which `predict.predict_gpus` predicts layouts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from labs_helpers.communication.all_reduce_times import SIZES as ALL_REDUCES
from labs_helpers.communication.all_reduce_times import time_all_reduces
from labs_helpers.launch import program
from labs_helpers.launch.leave import leave
from labs_helpers.launch.world import add_timeout
from labs_helpers.measure.device_memory import release
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.race import TorchRanks, clock, collected_between, disagreements
from labs_helpers.measure.race import race as race_on_ranks
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import as_text
from labs_helpers.measure.torchrun import check_ranks, on_ranks
from labs_helpers.tensor_parallel.gpu_candidates import ALONE, OURS, THEIRS, Candidate, Contestant, Setting, candidates
from labs_helpers.tensor_parallel.predict import MODEL
from labs_helpers.tensor_parallel.records import STUDY
from labs_helpers.transformer import SIZES, Transformer, TransformerConfig
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.training_step import fixed_batch

if TYPE_CHECKING:
    import pandas

MANNERS = {"eager": False, "compiled": True}
SAME = {
    torch.bfloat16: (0.01, 0.05),
    torch.float32: (1e-4, 1e-3),
}  # relative tolerances of losses and of gradient norms

Record = dict[str, Any]


def race(setting: Setting, wanted: Iterable[Candidate], rounds: int) -> list[Record]:
    """Race the candidates of one layout, and return one record per candidate on every rank; every rank calls this.

    Times are those of the slowest rank. device_mallocs: the number of memory requests to the driver in all timed steps;
    each stalls the GPU. A candidate that fails, or whose loss or gradients differ from those of the first one, gets an
    error and no times.
    """
    ranks, contestants = TorchRanks(), dict[Candidate, Contestant]()
    records: dict[Candidate, Record] = {}
    for candidate in wanted:
        contestant, error = _try(setting, candidate)
        if candidate.compiled and all(
            ranks.gather(error)
        ):  # some versions of PyTorch cannot compile its blocks separately
            candidate = dataclasses.replace(candidate, whole=True)
            contestant, error = _try(setting, candidate)
        records[candidate] = dataclasses.asdict(candidate)
        if errors := [said for said in ranks.gather(error) if said]:
            records[candidate]["error"] = errors[0]
        elif contestant is not None:
            contestants[candidate] = contestant
            records[candidate] |= ranks.gather(contestant.checked())[0]
    mark_disagreements([records[candidate] for candidate in contestants], SAME[setting.dtype])
    contestants = {one: contestant for one, contestant in contestants.items() if "error" not in records[one]}
    mallocs = dict.fromkeys(contestants, 0)

    def sample(candidate: Candidate) -> float:
        contestant = contestants[candidate]
        contestant.step()  # as in training, where the same model ran the previous step
        before = _device_mallocs(setting.device)
        seconds = clock(contestant.step, setting.device, ranks)[1]
        mallocs[candidate] += _device_mallocs(setting.device) - before
        return seconds

    with collected_between() as collect:
        clocks = {candidate: partial(sample, candidate) for candidate in contestants}
        found = race_on_ranks(ranks, clocks, rounds, collect)
    for candidate, times in found.items():
        records[candidate] |= times | {"device_mallocs": max(ranks.gather(mallocs[candidate]))}
    return list(records.values())


def _device_mallocs(device: torch.device) -> int:
    return int(torch.cuda.memory_stats(device).get("num_device_alloc", 0)) if device.type == "cuda" else 0


def _try(setting: Setting, candidate: Candidate) -> tuple[Contestant | None, str]:
    """Return (the contestant after its first steps, which compile it, '') or (None, the error message)."""
    try:
        contestant = Contestant(setting, candidate)
        for _ in range(2):
            contestant.step()
    except Exception as error:
        return None, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return contestant, ""


def mark_disagreements(records: list[Record], bounds: tuple[float, float]) -> None:
    """Add an error to each record that differs from the first one.

    Compute alone is left out, and so is the gradient norm of steps that average gradients.
    """
    spoken = [record for record in records if record["library"] != ALONE]
    for name, bound in zip(("loss", "gradient_norm"), bounds, strict=True):
        same = {n: each[name] for n, each in enumerate(spoken) if name == "loss" or not each["average"]}
        for number, said in disagreements(same, bound).items():
            spoken[number]["error"] = f"{name} is {said}"


def measure(
    config: TransformerConfig,
    dtype: torch.dtype,
    device: torch.device,
    batch: int,
    length: int,
    rounds: int,
    attentions: list[str],
    manners: list[bool],
    say: Callable[[str], None] = print,
    sizes: Iterable[int] = ALL_REDUCES,
    save: Callable[[list[Record]], None] = lambda records: None,
    at: Callable[[str], None] = lambda text: None,
) -> list[Record]:
    """Measure all layouts of the process group; every rank calls this and returns the same records.

    batch: sequences on all ranks together. attentions, manners: see `candidates`. sizes: of the all-reduces, in bytes.
    save: receives each layout's records as soon as they exist, so a later error loses none. at: called on every rank
    with the name of the layout that starts.
    """
    world = dist.get_world_size()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        with device:
            full = Transformer(config).to(dtype).state_dict()
    for tensor in full.values():
        dist.broadcast(tensor, 0)
    tokens, targets = (part.to(device) for part in fixed_batch(config, batch, length, seed=0))
    same = {
        "study": STUDY.name,
        "world_size": world,
        "dtype": str(dtype).removeprefix("torch."),
        "batch": batch,
        "length": length,
    }
    same |= {name: getattr(config, name) for name in MODEL}
    records: list[Record] = []
    for tp in (tp for tp in range(1, world + 1) if world % tp == 0):
        dp = world // tp
        wanted = candidates(dp, tp, attentions, manners)
        say(f"{dp} × {tp}: {len(wanted)} candidates, {rounds} rounds")
        at(f"{dp} × {tp}")
        release()
        torch._dynamo.config.recompile_limit = 64  # several models share this code, and each keeps its compiled version
        setting = Setting(dp, tp, config, full, tokens, targets)
        layout = same | {"dp": dp, "tp": tp}
        found = [layout | {"kind": "gpu_step"} | record for record in race(setting, wanted, rounds)]
        groups = {"tp": setting.tp_group, "dp": setting.dp_group}
        for name, group in groups.items():  # all groups of one name run at the same time
            calls = time_all_reduces(group, dtype, device, sizes, together=TorchRanks())
            found += [layout | {"group": name} | call for call in calls]
        save(found)
        records += found
    return records


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per candidate: median and spread in ms, and the ratio of our time to parallelize_module's."""
    rows = rows[rows["kind"] == "gpu_step"]
    keys = ["dp", "tp", "attention", "compiled", "sequence_parallel", "average"]
    wanted = [*keys, "library", "whole", "device_mallocs", "step_ms", "spread", "ours / theirs", "loss", "error"]
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *wanted, "step_p20_ms", "step_p80_ms"])))
    rows["spread"] = (rows["step_p80_ms"] - rows["step_p20_ms"]) / rows["step_ms"]
    theirs = rows[rows["library"] == THEIRS].set_index(keys)["step_ms"]
    ours = rows["library"] == OURS
    rows["ours / theirs"] = rows["step_ms"] / [
        theirs.get(key, float("nan")) for key in rows[keys].itertuples(index=False)
    ]
    rows.loc[~ours, "ours / theirs"] = float("nan")
    return rows[wanted]


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument("--size", choices=list(SIZES), help="model size; default: 1b, or tiny without GPUs")
    parser.add_argument("--batch", type=int, help="sequences on all ranks together; default: 2 per rank")
    parser.add_argument("--length", type=int, help="tokens per sequence; default: 2048, or 128 without GPUs")
    parser.add_argument("--rounds", type=int, default=10, help="timed steps per candidate; default: %(default)s")
    parser.add_argument("--attentions", nargs="+", choices=list(ATTENTIONS), help="default: sdpa; on GPUs also flash")
    parser.add_argument("--manners", nargs="+", choices=list(MANNERS), help="default: eager; on GPUs also compiled")
    add_timeout(parser)
    given = parser.parse_args(arguments)
    ranks, gpus = check_ranks(parser), this_machine().device == "cuda"
    if ranks < 2:
        parser.error(f"the race needs two or more ranks, but there is {ranks}")
    batch = given.batch or 2 * ranks
    if batch % ranks or given.rounds < 1:
        parser.error(
            f"--batch is {batch}; {ranks} ranks have to divide it. --rounds is {given.rounds}; it has to be 1 or more"
        )
    config = dataclasses.replace(SIZES[given.size or ("1b" if gpus else "tiny")], tied=False)
    with on_ranks(STUDY, given) as rank:
        records = measure(
            config,
            torch.bfloat16 if gpus else torch.float32,
            rank.device,
            batch,
            given.length or (2048 if gpus else 128),
            given.rounds,
            given.attentions or (["sdpa", "flash"] if gpus else ["sdpa"]),
            [MANNERS[name] for name in given.manners or (MANNERS if gpus else ["eager"])],
            say=rank.say,
            save=lambda found: rank.keep(found, given.out),
            at=rank.at,
        )
        rank.show(as_text(table(frame(records))))


if __name__ == "__main__":
    program.run(main)
    leave()
