"""Plan the training of a model on a number of GPUs: memory, traffic, and time of each strategy or layout.

    python -m labs_helpers.planner --parameters 7e9 --gpus 8 --gpu H100 --batch 4 --length 2048
    python -m labs_helpers.planner --parameters 175e9 --gpus 1024 --global-batch 1536 --top 5
    python -m labs_helpers.planner --published

With --batch, the sequences per GPU, the planner compares data parallelism by ZeRO stage and dp × tp inside a node, for
eager code like this course's. With --global-batch, the sequences of all GPUs, it ranks the layouts of dp × tp × pp for
tuned libraries, and chooses micro-batches and checkpoints itself. --published compares the second with published runs.

Memory and traffic follow from formulas. Times are predictions from a datasheet, an assumed efficiency, and an α and β
per link. Use them to compare strategies, and measure before you believe them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from labs_helpers.launch import program
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.planner import published
from labs_helpers.planner.accounting import DEFAULT, GB, LAYOUTS
from labs_helpers.planner.cluster import ALPHA_BETWEEN, ALPHA_INSIDE, Cluster
from labs_helpers.planner.layout import PRODUCTS, Run
from labs_helpers.planner.memory import MEGABYTE, Buffers
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.plan import LEGEND, describe, plan
from labs_helpers.planner.report import FITTED, show, show_ranking
from labs_helpers.planner.search import find_layouts
from labs_helpers.planner.step_time import CONTENTION
from labs_helpers.planner.strategies import EFFICIENCY, Training
from labs_helpers.transformer import SIZES
from labs_helpers.transformer.attentions import ATTENTIONS


def positive(text: str) -> int:
    """Parse an integer of at least 1, also written as 7e9."""
    value = float(text)
    if value < 1 or not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text} is not an integer of at least 1")
    return int(value)


class ShowPublished(argparse.Action):
    """Print the comparison with published runs and exit, as --help does."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{show(published.compare().drop(columns='fitted'))}\n\n{FITTED}")
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    parser = program.Parser(prog="python -m labs_helpers.planner", description=(__doc__ or "").splitlines()[0])
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument(
        "--parameters", type=float, metavar="7e9", help="number of parameters; the model's shape is then assumed"
    )
    model.add_argument("--size", choices=sorted(SIZES), help="a size from labs_helpers.transformer.config")
    told = "compare predictions with published training runs, and end"
    parser.add_argument("--published", action=ShowPublished, nargs=0, help=told)
    parser.add_argument("--gpus", type=positive, required=True, metavar="N")
    parser.add_argument("--gpu", default="H100", choices=list(DATASHEET), help="default: %(default)s")
    options: tuple[tuple[str, Callable[[str], object], object, str], ...] = (
        ("--gpus-per-node", positive, 8, "GPUs per node"),
        ("--batch", positive, 1, "sequences per GPU and step"),
        ("--global-batch", positive, None, "sequences of all GPUs per step: rank layouts of dp × tp × pp"),
        ("--top", positive, 10, "layouts to print, with --global-batch"),
        ("--cp", positive, 1, "ranks that share each sequence, with --global-batch"),
        ("--length", positive, 2048, "tokens per sequence"),
        ("--accumulate", positive, 1, "micro-batches per step"),
        ("--bucket-mb", positive, 25, "size of a gradient bucket in MiB"),
        ("--inside", float, None, "GB/s of a GPU's link inside the node, in one direction; 0.8 of the datasheet's"),
        ("--between", float, None, "GB/s of a node's cable, all ports together; 50 per GPU"),
        ("--alpha-inside", float, 1e6 * ALPHA_INSIDE, "µs per message inside the node"),
        ("--alpha-between", float, 1e6 * ALPHA_BETWEEN, "µs per message between nodes"),
        (
            "--efficiency",
            float,
            None,
            "fraction of the GPU's peak that the forward and backward passes reach, "
            f"{EFFICIENCY}; with --global-batch that large matrix products reach, {PRODUCTS}",
        ),
        ("--contention", float, CONTENTION, "slowdown of compute by hidden communication, as a fraction of its time"),
    )
    for option, kind, default, meaning in options:
        told = meaning.replace("%", "%%") if default is None else f"{meaning}; default: %(default)s"
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
        # Pipelines need a number of layers that many numbers divide.
        multiple = 1 if given.global_batch is None else 8
        model = Model.of(given.parameters if given.size is None else SIZES[given.size], multiple)
        cluster = Cluster.of(
            given.gpu,
            given.gpus,
            given.gpus_per_node,
            None if given.inside is None else given.inside * GB,
            None if given.between is None else given.between * GB,
            given.alpha_inside / 1e6,
            given.alpha_between / 1e6,
        )
        answer = compare_strategies if given.global_batch is None else rank_layouts
        said = answer(given, model, cluster)
    except ValueError as error:
        parser.error(str(error))
    print(said)


def compare_strategies(given: argparse.Namespace, model: Model, cluster: Cluster) -> str:
    """Return the text on all strategies for a batch per GPU."""
    names = ("batch", "length", "accumulate", "layout", "attention", "checkpoint", "contention")
    chosen = {name: getattr(given, name) for name in names}
    efficiency = EFFICIENCY if given.efficiency is None else given.efficiency
    buffers = Buffers(given.bucket_mb * MEGABYTE)
    found = plan(Training(model, **chosen, efficiency=efficiency, buffers=buffers), cluster)
    impossible = [f"{row.strategy.name} is not possible: {row.why_not}" for row in found.rows if row.why_not]
    formulas = [f"{show(found.formulas())}\n\n{LEGEND}\n"] if given.formulas else []
    return "\n".join([f"{describe(found)}\n\n{show(found.table())}\n", *impossible, *formulas, found.reason])


def rank_layouts(given: argparse.Namespace, model: Model, cluster: Cluster) -> str:
    """Return the text on the best layouts for a global batch, and on the rejected ones.

    Raise ValueError for options that only make sense with a batch per GPU.
    """
    if given.batch != 1 or given.accumulate != 1:
        raise ValueError("with --global-batch the planner chooses micro-batches, so leave out --batch and --accumulate")
    run = Run(
        model,
        given.global_batch,
        given.length,
        given.layout,
        given.attention,
        checkpoint=(True,) if given.checkpoint else (False, True),
        efficiency=PRODUCTS if given.efficiency is None else given.efficiency,
        contention=given.contention,
    )
    return show_ranking(find_layouts(run, cluster, given.cp), given.top, given.formulas)


if __name__ == "__main__":
    program.run(main)
