"""Measure the serving engine on a GPU: whole steps, attention on a paged and a static cache, in-flight and static
batching, speculation, and how many greedy answers in bfloat16 are those of each request alone.

    python -m labs_helpers.serving.study
    python -m labs_helpers.serving.study --parts step --weights bf16 int8 int4-128 --batches 1

Lab 01's 1B model with random weights. A step's time is that of `Engine.step`, with scheduling and sampling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labs_helpers.launch import program
from labs_helpers.measure.device_memory import release
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Record, Study, as_text
from labs_helpers.quantization.model import SCHEMES
from labs_helpers.serving.counting import workload
from labs_helpers.serving.measurements import BLOCK_SIZE, agreements, attentions, batching, model_of, speculation, steps
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.model import Transformer

if TYPE_CHECKING:
    import pandas

STUDY = Study("serving", "python -m labs_helpers.serving.study")
load = STUDY.load
PARTS = ("step", "attention", "agreement", "speculation", "batching")


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return the times of all kinds: ms per step, layer or workload, and what they compare with."""
    times = rows.reindex(columns=["step_ms", "layer_ms", "all_ms"]).bfill(axis=1).iloc[:, 0]
    columns = ["kind", "weights", "name", "batch", "used", "passes", "waste", "ratio", "predicted_ratio"]
    columns += ["predicted_by_bytes", "equal", "near_ties", "wrong", "accepted"]
    shown = rows[[name for name in columns if name in rows]].assign(ms=times)
    if "weight_bytes" in rows:
        shown["GB/s"] = (rows["weight_bytes"] + rows["cache_bytes"]) / rows["step_ms"] / 1e6
    return shown


def main(arguments: list[str] | None = None) -> None:
    parser = STUDY.parser(__doc__, limit=900)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 64], metavar="B", help="default: 1 64")
    parser.add_argument("--weights", nargs="+", default=["bf16"], choices=["bf16", *SCHEMES], help="default: bf16")
    parser.add_argument("--used", type=int, default=1000, help="positions in use; default: %(default)s")
    parser.add_argument("--capacity", type=int, default=2048, help="positions of a sequence; default: %(default)s")
    parser.add_argument("--requests", type=int, default=256, help="of the workload; default: %(default)s")
    parser.add_argument("--slots", type=int, default=32, help="for the workload; default: %(default)s")
    parser.add_argument("--budget", type=int, default=1024, help="tokens per pass; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="samples of a time; default: %(default)s")
    parser.add_argument("--size", default="1b", choices=list(SIZES), help="of the model; default: %(default)s")
    given = parser.parse_args(arguments)
    if this_machine().device != "cuda":
        parser.error("serving is measured on a GPU, and there is none here")
    prepare_triton()
    found: list[Record] = []
    for weights in given.weights:
        release()
        model = model_of(given.size, given.capacity, weights)
        for part in given.parts:
            for records in measured(part, model, given):
                rows = named(records, given.size, weights)
                STUDY.keep(rows, given.out, table=table)
                found += rows
                release()
        del model
    print(f"\n{as_text(table(frame(found)))}", flush=True)


def measured(part: str, model: Transformer, given: Any) -> Iterator[list[Record]]:
    """Measure one part with the command's options."""
    blocks = given.slots * given.capacity // BLOCK_SIZE
    if part == "step":
        yield from (steps(model, batch, given.used, given.rounds) for batch in given.batches)
    elif part == "attention":
        yield from (attentions(model, batch, given.used, given.capacity, given.rounds) for batch in given.batches)
    elif part == "agreement":
        yield agreements(model, workload(32, outputs=(64, 256)), given.slots, blocks)
    elif part == "speculation":
        draft = model_of("small", given.capacity, vocabulary=model.config.vocabulary)
        yield from (speculation(model, draft, 1, given.used, count, given.rounds) for count in (2, 4))
    else:
        yield batching(model, workload(given.requests), given.slots, given.budget, blocks, min(given.rounds, 2))


def named(records: list[Record], size: str, weights: str) -> list[Record]:
    return [{"study": STUDY.name, "size": size, "weights": weights} | record for record in records]


if __name__ == "__main__":
    program.run(main)
