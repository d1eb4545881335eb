"""Plan the training of a model on a number of GPUs: memory, traffic and time by strategy, and which one to take.

    python -m labs_helpers.data_parallel.planner --parameters 7e9 --gpus 8 --gpu H100 --batch 4 --length 2048

Memory and traffic are counted by formula. Times are predictions from a datasheet, an assumed efficiency and an α and β
per link: good for comparing strategies, and to be measured before they are believed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.data_parallel.accounting import DEFAULT, GB, LAYOUTS
from labs_helpers.data_parallel.choice import choose
from labs_helpers.data_parallel.cluster import ALPHA_BETWEEN, ALPHA_INSIDE, Cluster
from labs_helpers.data_parallel.memory import MEGABYTE, Buffers
from labs_helpers.data_parallel.model_size import Model
from labs_helpers.data_parallel.step_time import CONTENTION
from labs_helpers.data_parallel.strategies import EFFICIENCY, Row, Training, evaluate, strategies
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.config import SIZES

if TYPE_CHECKING:
    import pandas


PARTS = ("parameters", "gradients", "optimizer", "buckets", "gathered", "activations")
COLUMNS = (*PARTS, "memory", "fits", "sent", "step ms", "exposed ms", "tokens/s")
LEGEND = """Ψ: parameters; under tensor parallelism those of one rank. G, P: bytes of their gradients, and of them.
N: data-parallel ranks that share states; g: ranks of a node, n: nodes. K: micro-batches.
A: bytes of a micro-batch's residual stream. B, L, V: sequences of a micro-batch, tokens of each, vocabulary."""


class Plan(NamedTuple):
    """choice: the row to take, None where none fits. reason: why, in words."""

    training: Training
    cluster: Cluster
    rows: list[Row]
    choice: Row | None
    reason: str

    def table(self) -> pandas.DataFrame:
        """A row per strategy. GB per GPU (1e9 bytes); of a step what leaves a GPU, milliseconds, and tokens per second
        and GPU. NaN where a strategy is not possible."""
        import pandas

        rows = {}
        for row in self.rows:
            size = {part.name: part.bytes / GB for part in row.parts}
            numbers: dict[str, object] = dict.fromkeys(COLUMNS)
            if row.time:
                numbers |= {name: size.get(name, 0.0) for name in PARTS} | {
                    "memory": row.memory / GB,
                    "fits": "yes" if row.fits else "no",
                    "sent": row.sent / GB,
                    "step ms": 1e3 * row.time.step,
                    "exposed ms": 1e3 * row.time.exposed,
                    "tokens/s": self.training.batch * self.training.length / row.time.step,
                }
            rows[row.strategy.name] = numbers
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("GB per GPU")

    def formulas(self) -> pandas.DataFrame:
        """Every number with its unit and formula, by strategy and what it is of (see LEGEND)."""
        import pandas

        found: dict[tuple[str, str], list[object]] = {}
        for row in self.rows:
            if not row.time:
                continue
            parts = [(part.name, part.bytes / GB, "GB", part.formula) for part in row.parts]
            parts += [("memory", row.memory / GB, "GB", "their sum"), ("sent", row.sent / GB, "GB", row.sent_formula)]
            parts += [(name, 1e3 * value, "ms", told) for name, value, told in row.time.parts()]
            found |= {(row.strategy.name, name): rest for name, *rest in parts}
        table = pandas.DataFrame.from_dict(found, orient="index", columns=["value", "unit", "formula"])
        table.index = pandas.MultiIndex.from_tuples(table.index, names=["per GPU", ""])
        return table


def plan(training: Training, cluster: Cluster) -> Plan:
    """All strategies on this cluster, and the choice: the fastest that fits, or a simpler one as fast within 10%."""
    rows = [evaluate(training, cluster, strategy) for strategy in strategies(cluster, training.model)]
    return Plan(training, cluster, rows, *choose(rows, training, cluster))


def describe(found: Plan) -> str:
    """What is planned, with the assumptions, as the command prints it above its table."""
    training, cluster = found.training, found.cluster
    each = LAYOUTS[training.layout]
    micro = f", in {training.accumulate} micro-batches" if training.accumulate > 1 else ""
    return "\n".join([
        str(training.model),
        f"{training.layout}: {each.parameters} + {each.gradients} + {each.optimizer} = {each.each} bytes per parameter",
        f"{training.batch} × {training.length} tokens per GPU and step{micro}, {training.attention} attention"
        + (", blocks checkpointed" if training.checkpoint else ""),
        str(cluster),
        f"compute at {training.efficiency:.0%} of {cluster.chip.fp16_flops / 1e12:.0f} TFLOP/s: "
        f"{1e3 * training.compute_seconds(cluster):.4g} ms; communication that hides slows it by "
        f"{training.contention:.0%} of its time",
    ])  # fmt: skip


def positive(text: str) -> int:
    """argparse's: an integer of 1 or more, also as 7e9."""
    value = float(text)
    if value < 1 or value != int(value):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return int(value)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m labs_helpers.data_parallel.planner",
        description=(__doc__ or "").splitlines()[0],
        allow_abbrev=False,
    )
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--parameters", type=float, metavar="7e9", help="of the model; its shape is then assumed")
    model.add_argument("--size", choices=sorted(SIZES), help="a size of labs_helpers.transformer.config")
    parser.add_argument("--gpus", type=positive, required=True, metavar="N")
    parser.add_argument("--gpu", default="H100", choices=list(DATASHEET), help="default: %(default)s")
    options: tuple[tuple[str, Callable[[str], object], object, str], ...] = (
        ("--gpus-per-node", positive, 8, "GPUs that share a node"),
        ("--batch", positive, 1, "sequences per GPU and step"),
        ("--length", positive, 2048, "tokens per sequence"),
        ("--accumulate", positive, 1, "micro-batches that the batch is computed in"),
        ("--bucket-mb", positive, 25, "MiB of a gradient bucket"),
        ("--inside", float, None, "GB/s of a GPU's link inside the node, one direction; 0.8 of the datasheet's"),
        ("--between", float, None, "GB/s of a node's cable, all ports together; 50 per GPU"),
        ("--alpha-inside", float, 1e6 * ALPHA_INSIDE, "µs per message inside the node"),
        ("--alpha-between", float, 1e6 * ALPHA_BETWEEN, "µs per message between nodes"),
        ("--efficiency", float, EFFICIENCY, "share of the GPU's peak that forward and backward pass reach"),
        ("--contention", float, CONTENTION, "what hidden communication costs, as a share of its time"),
    )
    for option, kind, default, meaning in options:
        told = meaning if default is None else f"{meaning}; default: %(default)s"
        parser.add_argument(option, type=kind, default=default, help=told, metavar="N")
    parser.add_argument("--layout", default=DEFAULT, choices=list(LAYOUTS), help="default: %(default)s")
    parser.add_argument("--attention", default="sdpa", choices=list(ATTENTIONS), help="default: %(default)s")
    parser.add_argument("--checkpoint", action="store_true", help="checkpoint every block")
    parser.add_argument("--formulas", action="store_true", help="print the formulas behind the numbers too")
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
    """A table of `Plan` as the command prints it."""
    digits = {"step ms": "{:,.1f}", "exposed ms": "{:,.1f}", "tokens/s": "{:,.0f}"}
    formats = {name: digits.get(name, "{:,.3f}").format for name in table if table[name].dtype == float}
    return table.to_string(formatters=formats, na_rep="–")


if __name__ == "__main__":
    main()
