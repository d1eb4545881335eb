"""A plan compares all strategies on one cluster, chooses one, and tabulates the results.

found = plan(Training(Model.of(7e9), batch=4), Cluster.of("H100", 8))
found.choice, found.reason, found.table(), found.formulas()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.planner.accounting import GB, LAYOUTS
from labs_helpers.planner.choice import choose
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.strategies import Row, Training, evaluate, strategies

if TYPE_CHECKING:
    import pandas

PARTS = ("parameters", "gradients", "optimizer", "buckets", "gathered", "activations")
COLUMNS = (*PARTS, "memory", "fits", "sent", "step ms", "exposed ms", "tokens/s")
LEGEND = """Ψ: parameters, per rank under tensor parallelism. G: bytes of all gradients; P: bytes of all parameters.
N: data-parallel ranks that share states; g: ranks per node; n: nodes. K: micro-batches.
A: bytes of a micro-batch's residual stream. B, L, V: sequences of a micro-batch, tokens of each, vocabulary."""


class Plan(NamedTuple):
    """Strategies on a cluster. choice: the row to take, or None if nothing fits. reason: an explanation in words."""

    training: Training
    cluster: Cluster
    rows: list[Row]
    choice: Row | None
    reason: str

    def table(self) -> pandas.DataFrame:
        """Return one row per strategy: GB per GPU (1e9 bytes), GB sent per step, ms, and tokens/s per GPU.

        An impossible strategy has NaN.
        """
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
        """Return every number with its unit and formula, by strategy and name (see LEGEND)."""
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
    """Evaluate all strategies, and choose the fastest that fits, or a simpler one that is as fast within 10%."""
    rows = [evaluate(training, cluster, strategy) for strategy in strategies(cluster, training.model)]
    return Plan(training, cluster, rows, *choose(rows, training, cluster))


def describe(found: Plan) -> str:
    """Describe the model, the cluster, and the assumptions, as printed above the command's table."""
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
        f"{1e3 * training.compute_seconds(cluster):.4g} ms; hidden communication slows it by "
        f"{training.contention:.0%} of its time",
    ])  # fmt: skip
