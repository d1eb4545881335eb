"""Plan the training of a model on a number of GPUs: memory, traffic, and time of each strategy, and the best choice.

    python -m labs_helpers.planner --parameters 7e9 --gpus 8 --gpu H100 --batch 4 --length 2048

Memory and traffic follow from formulas. Times are predictions from a datasheet, an assumed efficiency, and an α and β
per link. Use them to compare strategies, and measure before you believe them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from labs_helpers.launch import program
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.planner.accounting import DEFAULT, GB, LAYOUTS
from labs_helpers.planner.cluster import ALPHA_BETWEEN, ALPHA_INSIDE, Cluster
from labs_helpers.planner.memory import MEGABYTE, Buffers
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.plan import LEGEND, describe, plan
from labs_helpers.planner.step_time import CONTENTION
from labs_helpers.planner.strategies import EFFICIENCY, Training
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.attentions import ATTENTIONS

if TYPE_CHECKING:
    import pandas


def positive(text: str) -> int:
    """Parse an integer of at least 1, also written as 7e9."""
    value = float(text)
    if value < 1 or not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text} is not an integer of at least 1")
    return int(value)


def make_parser() -> argparse.ArgumentParser:
    parser = program.Parser(prog="python -m labs_helpers.planner", description=(__doc__ or "").splitlines()[0])
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument(
        "--parameters", type=float, metavar="7e9", help="number of parameters; the model's shape is then assumed"
    )
    model.add_argument("--size", choices=sorted(SIZES), help="a size from labs_helpers.transformer.config")
    parser.add_argument("--gpus", type=positive, required=True, metavar="N")
    parser.add_argument("--gpu", default="H100", choices=list(DATASHEET), help="default: %(default)s")
    options: tuple[tuple[str, Callable[[str], object], object, str], ...] = (
        ("--gpus-per-node", positive, 8, "GPUs per node"),
        ("--batch", positive, 1, "sequences per GPU and step"),
        ("--length", positive, 2048, "tokens per sequence"),
        ("--accumulate", positive, 1, "micro-batches per step"),
        ("--bucket-mb", positive, 25, "size of a gradient bucket in MiB"),
        ("--inside", float, None, "GB/s of a GPU's link inside the node, in one direction; 0.8 of the datasheet's"),
        ("--between", float, None, "GB/s of a node's cable, all ports together; 50 per GPU"),
        ("--alpha-inside", float, 1e6 * ALPHA_INSIDE, "µs per message inside the node"),
        ("--alpha-between", float, 1e6 * ALPHA_BETWEEN, "µs per message between nodes"),
        ("--efficiency", float, EFFICIENCY, "fraction of the GPU's peak that the forward and backward passes reach"),
        ("--contention", float, CONTENTION, "slowdown of compute by hidden communication, as a fraction of its time"),
    )
    for option, kind, default, meaning in options:
        told = meaning if default is None else f"{meaning}; default: %(default)s"
        parser.add_argument(option, type=kind, default=default, help=told, metavar="N")
    parser.add_argument("--layout", default=DEFAULT, choices=list(LAYOUTS), help="default: %(default)s")
    parser.add_argument("--attention", default="sdpa", choices=list(ATTENTIONS), help="default: %(default)s")
    parser.add_argument("--checkpoint", action="store_true", help="checkpoint every block")
    parser.add_argument("--formulas", action="store_true", help="also print the formulas behind the numbers")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser()
    given = parser.parse_args(arguments)
    try:
        model = Model.of(given.parameters if given.size is None else SIZES[given.size])
        names = ("batch", "length", "accumulate", "layout", "attention", "checkpoint", "efficiency", "contention")
        chosen = {name: getattr(given, name) for name in names}
        training = Training(model, **chosen, buffers=Buffers(given.bucket_mb * MEGABYTE))
        cluster = Cluster.of(
            given.gpu,
            given.gpus,
            given.gpus_per_node,
            None if given.inside is None else given.inside * GB,
            None if given.between is None else given.between * GB,
            given.alpha_inside / 1e6,
            given.alpha_between / 1e6,
        )
        found = plan(training, cluster)
    except ValueError as error:
        parser.error(str(error))
    print(f"{describe(found)}\n\n{show(found.table())}\n")
    for row in found.rows:
        if row.why_not:
            print(f"{row.strategy.name} is not possible: {row.why_not}")
    if given.formulas:
        print(f"{show(found.formulas())}\n\n{LEGEND}\n")
    print(found.reason)


def show(table: pandas.DataFrame) -> str:
    """Format a table of `Plan` as the command prints it."""
    digits = {"step ms": "{:,.1f}", "exposed ms": "{:,.1f}", "tokens/s": "{:,.0f}"}
    formats = {name: digits.get(name, "{:,.3f}").format for name in table if table[name].dtype == float}
    return table.to_string(formatters=formats, na_rep="–")


if __name__ == "__main__":
    program.run(main)
