"""Choose a strategy and explain the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence

from labs_helpers.planner.accounting import GB, LAYOUTS, total
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.memory import step_memory
from labs_helpers.planner.strategies import Row, Training

# Times closer than this count as equal. With a measured floor, predictions of DDP's steps on 2 and 4 H200s came within
# 3% of measured ones, and predictions of ZeroRedundancyOptimizer's within 9%. With a model of 1 billion parameters,
# fully_shard took up to half as long again as predicted, because the host's hooks are not modeled.
AS_FAST = 0.1
MANY = 4  # list at most this many strategies that do not fit


def choose(rows: Sequence[Row], training: Training, cluster: Cluster) -> tuple[Row | None, str]:
    """Return the fastest row that fits, or the first that is as fast within 10%, and the reason.

    `rows` begin with the simplest strategy. If none fits, return (None, advice).
    """
    fitting = [(row, row.time.step) for row in rows if row.time and row.fits]
    if not fitting:
        return None, _nothing_fits(rows, training, cluster)
    fastest = min(step for _, step in fitting)
    chosen = next(row for row, step in fitting if step <= (1 + AS_FAST) * fastest)
    return chosen, " ".join(_reasons(rows, chosen))


def _reasons(rows: Sequence[Row], chosen: Row) -> list[str]:
    assert chosen.time is not None
    said = [
        f"{chosen.strategy.name}: {_gb(chosen.memory)} of {_gb(chosen.capacity)}, "
        f"{1e3 * chosen.time.step:.4g} ms per step."
    ]
    too_large = sorted((row for row in rows if row.time and not row.fits), key=lambda row: row.memory)
    if too_large:
        names = _listed([f"{row.strategy.name} ({_gb(row.memory)})" for row in too_large[:MANY]])
        more = f", nor do {len(too_large) - MANY} others" if len(too_large) > MANY else ""
        said.append(f"{names} {'does' if len(too_large) == 1 else 'do'} not fit{more}.")
    others = [row for row in rows if row.time and row.fits and row is not chosen]
    if not others:
        return [*said, "Nothing else fits."]
    quickest = min(others, key=lambda row: row.time.step if row.time else math.inf)
    assert quickest.time is not None
    ratio = quickest.time.step / chosen.time.step
    name = quickest.strategy.name
    if ratio < 1:
        said.append(
            f"{name} is predicted to take {1 - ratio:.1%} less time, which "
            f"is within the error of a prediction, and it "
            "is less simple."
        )
    else:
        said.append(f"The next, {name}, is predicted to take {ratio - 1:.1%} longer{_because(quickest, chosen)}.")
    return said


def _because(slower: Row, chosen: Row) -> str:
    assert slower.time is not None and chosen.time is not None
    spent = {
        "it exposes {:.3g} ms more communication": slower.time.exposed - chosen.time.exposed,
        "it hides {:.3g} ms more communication, which slows the compute": slower.time.hidden - chosen.time.hidden,
        "its update takes {:.3g} ms longer": slower.time.update - chosen.time.update,
    }
    text, seconds = max(spent.items(), key=lambda item: item[1])
    return f" because {text.format(1e3 * seconds)}" if seconds > 0 else ""


def _nothing_fits(rows: Sequence[Row], training: Training, cluster: Cluster) -> str:
    least = min((row for row in rows if row.time), key=lambda row: row.memory)
    size = {part.name: part.bytes for part in least.parts}
    said = [
        f"Nothing fits: {least.strategy.name} needs the least memory, {_gb(least.memory)}, but a GPU has "
        f"{_gb(least.capacity)}. Activations take {_gb(size['activations'])}."
    ]
    if size["activations"] > 0.5 * least.memory:
        said.append("More micro-batches (--accumulate), shorter sequences, or --checkpoint reduce the activations.")
    if needed := gpus_needed(training, cluster):
        said.append(f"With these activations, ZeRO-3 fits on {needed} or more GPUs.")
    elif not training.checkpoint:
        said.append("ZeRO-3 would not fit on more GPUs either; it may with --checkpoint.")
    else:
        said.append("ZeRO-3 would not fit on more GPUs either. Offload, or split activations with tensor parallelism.")
    return " ".join(said)


def gpus_needed(training: Training, cluster: Cluster) -> int | None:
    """Return the fewest GPUs, in whole nodes, on which ZeRO-3 fits, or None if it fits on no number of GPUs.

    The states divided by N must fit together with activations and gathered blocks, which do not shrink with N.
    """
    parts = step_memory(
        training.model,
        "ZeRO-3",
        2,
        training.layout,
        batch=training.micro_batch,
        length=training.length,
        attention=training.attention,
        checkpoint=training.checkpoint,
        buffers=training.buffers,
    )
    divided = LAYOUTS[training.layout].each * training.model.parameters
    room = cluster.chip.memory_bytes - (total(parts) - divided / 2)
    if room <= 0:
        return None
    least = math.ceil(divided / room)
    return math.ceil(least / cluster.gpus_per_node) * cluster.gpus_per_node


def _gb(nbytes: float) -> str:
    return f"{nbytes / GB:,.0f} GB" if nbytes >= 100 * GB else f"{nbytes / GB:.3g} GB"


def _listed(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
