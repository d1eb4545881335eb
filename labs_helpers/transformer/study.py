"""Measure training steps of a transformer: time, memory and launches, in any setup.

    python -m labs_helpers.transformer.study                         # this machine's configurations
    python -m labs_helpers.transformer.study sizes.yaml my.yaml      # shipped ones by name, or your own
    python -m labs_helpers.transformer.study --sizes tiny --lengths 128 256 --attentions plain sdpa --precisions fp32

`grids.py` describes the YAML files; options override what the files say. Each point is recorded as soon as it is
measured. A GPU without enough memory is recorded too; other failures are printed, and the command goes on.
"""

from __future__ import annotations

import argparse
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs_helpers.launch import program
from labs_helpers.measure import results
from labs_helpers.measure.device_memory import release
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.provenance import provenance
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Study, as_text, kept
from labs_helpers.transformer import counts, grids
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.grids import Point
from labs_helpers.transformer.measure_step import LEAST, is_out_of_memory, measure_step
from labs_helpers.transformer.records import setup_of, with_rates
from labs_helpers.transformer.setups import OPTIMIZERS, ORDERS, PRECISIONS
from labs_helpers.transformer.training_step import Training

if TYPE_CHECKING:
    import pandas

STUDY = Study("transformer", "python -m labs_helpers.transformer.study")
load = STUDY.load

FILES = {
    "cpu": ("cpu",),
    "cuda": ("sizes", "precision", "batches", "checkpoints", "remedies", "race", "orders"),
}
DEFAULT = {
    "cpu": {"sizes": "tiny", "batches": 8, "lengths": 128},
    "cuda": {"sizes": "small", "batches": 8, "lengths": 1024, "precision": "bf16"},
}
WORDS = {"yes": True, "no": False}


def measure(point: Point, rounds: int = 10) -> dict[str, Any]:
    """Return the record of one point. If it runs out of memory, the record says so and has no times; other errors
    are raised."""
    config, setup = point.config, point.setup
    record = {
        "study": "transformer",
        "kind": "step",
        "size": point.size,
        "parameters": sum(counts.parameters(config).values()),
        "layers": config.layers,
        "batch": point.batch,
        "length": point.length,
        **asdict(setup),
        "seed": point.seed,
        "flops_per_token": counts.flops_per_token(config, point.length, causal=True).step,
    }
    release()
    try:
        measured = measure_step(Training(config, setup, point.batch, point.length, point.seed), rounds)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        measured = {}
    return record | {"out_of_memory": not measured} | measured


def run(points: list[Point], path: Path, rounds: int, records: list[dict[str, Any]]) -> int:
    """Measure the points and print one line for each. Each record is immediately appended to `path` and to
    `records`. Returns how many points failed."""
    on, failures, started = provenance(), 0, time.perf_counter()
    for number, point in enumerate(points, start=1):
        print(f"[{number}/{len(points)}] {point}: ", end="", flush=True)
        try:
            record = measure(point, rounds) | {"on": on}
        except Exception as error:
            traceback.print_exc()
            failures += 1
            said = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        else:
            results.append(path, record)
            records.append(record)
            said = summary(record)
        left = (time.perf_counter() - started) / number * (len(points) - number)
        print(said + (f"; {duration(left)} left" if number < len(points) else ""), flush=True)
    return failures


def summary(record: dict[str, Any]) -> str:
    """Return the result of one point in a few words."""
    if record["out_of_memory"]:
        return "out of memory"
    row = with_rates(frame([record])).iloc[0]
    words = [f"{row['step_ms']:.4g} ms", f"{row['tokens_per_s']:,.0f} tokens/s"]
    words += [f"MFU {row['mfu']:.0%}"] if row["mfu"] == row["mfu"] else []
    words += [f"{row['peak_bytes'] / 1e9:.3g} GB"] if record["peak_bytes"] else []
    return ", ".join(words)


def duration(seconds: float) -> str:
    """Return a duration in words: 'about 40 s', 'about 3 min'."""
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per record: setup, median step and its spread, rate, memory, launches; a dash for missing
    values."""
    import pandas

    rows = with_rates(rows.reindex(columns=[*rows.columns, *(name for name in MEASURED if name not in rows)]))
    setups = [str(setup_of(row)) for _, row in rows.iterrows()]
    columns = {
        "size": rows["size"],
        "batch": rows["batch"],
        "length": rows["length"],
        "setup": setups,
        "seed": rows["seed"],
        "step ms": rows["step_ms"].map("{:.2f}".format),
        "spread": ((rows["step_p80_ms"] - rows["step_p20_ms"]) / rows["step_ms"]).map("{:.0%}".format),
        "tokens/s": rows["tokens_per_s"].map("{:,.0f}".format),
        "MFU": rows["mfu"].map("{:.1%}".format),
        "peak GB": (rows["peak_bytes"].astype(float) / 1e9).map("{:.3g}".format),
        "launches": rows["launches"].astype(float).map("{:.0f}".format),
        "busy": rows["busy"].astype(float).map("{:.0%}".format),
        "loss": rows["loss"].astype(float).map("{:.3f}".format),
    }
    return pandas.DataFrame(columns).replace("nan%?", "–", regex=True)


MEASURED = ("step_ms", "step_p20_ms", "step_p80_ms", "peak_bytes", "launches", "busy", "loss")


def make_options() -> argparse.ArgumentParser:
    parser = STUDY.parser(__doc__, limit=12 * program.HOUR)
    shipped = ", ".join(sorted(path.stem for path in grids.SHIPPED.glob("*.yaml")))
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE.yaml",
        help=f"grids, your own or shipped: {shipped}; default: those for this machine",
    )
    for option, key, values, meaning in (
        ("--sizes", "sizes", list(SIZES), "of the model"),
        ("--batches", "batches", int, "sequences per step"),
        ("--lengths", "lengths", int, "tokens per sequence"),
        ("--seeds", "seeds", int, "of weights and batch"),
        ("--attentions", "attention", list(ATTENTIONS), ""),
        ("--precisions", "precision", list(PRECISIONS), ""),
        ("--compiled", "compiled", list(WORDS), "torch.compile"),
        ("--regional", "regional", list(WORDS), "compiled one block at a time"),
        ("--graph", "graph", list(WORDS), "the whole step from a CUDA graph"),
        ("--optimizers", "optimizer", list(OPTIMIZERS), "the form of AdamW's update"),
        ("--segments", "segments", int, "checkpointed segments, 0: none"),
        ("--accumulate", "accumulate", int, "micro-batches per update"),
        ("--orders", "orders", list(ORDERS), "each setup along an order of remedies"),
    ):
        if isinstance(values, list):
            named = ", ".join(f"'{name}'" if " " in name else name for name in values)
            told = f"{meaning}: {named}" if meaning else named
            parser.add_argument(option, dest=key, nargs="+", choices=values, metavar="NAME", help=told)
        else:
            parser.add_argument(option, dest=key, nargs="+", type=values, metavar="N", help=meaning)
    parser.add_argument("--rounds", type=int, default=10, help="timed steps per point; default: %(default)s")
    return parser


def main(arguments: list[str] | None = None) -> None:
    parser = make_options()
    given = parser.parse_args(arguments)
    options = {key: getattr(given, key) for key in grids.KEYS if getattr(given, key) is not None}
    options |= {
        key: [WORDS[word] for word in options[key]] for key in ("compiled", "regional", "graph") if key in options
    }
    device = this_machine().device
    files = given.files or ([] if options else FILES[device])
    if given.rounds < LEAST:
        parser.error(f"--rounds is {given.rounds}; median and percentiles want {LEAST} or more")
    try:
        points = grids.gather(files, options, DEFAULT[device])
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for point in points:
        if device == "cpu" and (point.setup.graph or point.setup.attention == "flash"):
            parser.error(f"{point}: that is measured on a GPU, and there is none here")
    path = STUDY.path(given.out)
    records: list[dict[str, Any]] = []
    try:
        failures = run(points, path, given.rounds, records)
        status = 1 if failures else 0
        ended = f"{failures} of {len(points)} points failed" if failures else None
    except KeyboardInterrupt:
        status, ended = 130, "interrupted"
    if records:
        print(f"\n{as_text(table(frame(records)))}\n\n{kept(len(records), path)}", flush=True)
    if ended:
        print(ended, flush=True)
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    program.run(main)
