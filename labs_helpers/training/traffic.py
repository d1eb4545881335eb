"""Compute the bytes and messages that a rank sends in a step, by formula, for the records to compare with counts."""

from __future__ import annotations

import numpy as np

from labs_helpers.communication.interface import ring_bytes, ring_messages
from labs_helpers.pipeline.messages import complete
from labs_helpers.pipeline.schedule import SENDS
from labs_helpers.tensor_parallel.traffic import Sent, bytes_sent, messages_sent, step_traffic
from labs_helpers.training.model_part import cut
from labs_helpers.training.pipelining import make_schedule
from labs_helpers.training.settings import Settings
from labs_helpers.transformer.counts import parameters


def formula(settings: Settings, pp_idx: int, buckets: int) -> tuple[int, int]:
    """Return (bytes, messages) that a rank sends per step, by formula, without the zeros that round up ZeRO's buckets.

    pp_idx: its place in the pipeline. buckets: each of the gradients' buckets sends its own messages.
    """
    config, tp, dp, m = settings.config, settings.tp, settings.dp, settings.micro_batches_per_step
    itemsize = np.dtype(settings.dtype).itemsize
    schedule = make_schedule(settings.schedule, settings.pp, m, settings.chunks)
    spans = [cut(settings)[stage] for stage in schedule.held_by(pp_idx)]
    blocks = [min(stop, config.layers + 1) - max(start, 1) for start, stop in spans]
    first, last = spans[0][0] == 0, spans[-1][1] == config.layers + 2

    across_tp = _in_stages(settings, itemsize, blocks, first, last)
    nbytes, messages = bytes_sent(across_tp, tp), messages_sent(across_tp, tp)

    sizes = parameters(config)
    embeddings = sizes["embedding"] * (first or (config.tied and last)) + sizes["output"] * last
    matrices = embeddings + (sizes["attention"] + sizes["mlp"]) * sum(blocks) // config.layers
    gradients = (matrices // tp + (2 * sum(blocks) + last) * config.width) * itemsize
    for name in ("reduce_scatter", "all_gather") if settings.zero else ("all_reduce",):
        nbytes += ring_bytes(name, gradients, dp)
        messages += buckets * ring_messages(name, dp)

    activation = settings.micro_batch * settings.length * config.width * itemsize
    sends = sum(action.kind in SENDS for action in complete(schedule).orders[pp_idx])
    nbytes += sends * activation // (tp if settings.sequence_parallel else 1)
    messages += sends
    if config.tied and settings.pp > 1 and (first or last):  # the gradient of the other copy
        nbytes += sizes["embedding"] // tp * itemsize // (dp if settings.zero else 1)
        messages += 1
    return nbytes, messages


def _in_stages(settings: Settings, itemsize: int, blocks: list[int], first: bool, last: bool) -> list[Sent]:
    """Return the tensor-parallel collectives of a rank whose stages have so many blocks."""
    config, m, total = settings.config, settings.micro_batches_per_step, sum(blocks)
    activation = settings.micro_batch * settings.length * config.width * itemsize
    after_block = "all_gather" if settings.scheme == "naive" else "all_reduce"
    after_block = "reduce_scatter" if settings.sequence_parallel else after_block
    here = {"embedding": first, "output": last, "loss": last}
    rows = []
    for row in step_traffic(
        config, settings.micro_batch, settings.length, settings.tp, settings.dp, itemsize, settings.scheme,
        settings.sequence_parallel,
    ):  # fmt: skip
        if row.where == "norms":  # once per step, for all stages together
            rows.append(row._replace(payload=(2 * total + last) * config.width * itemsize))
        elif row.where == "blocks":
            calls = row.calls * total // config.layers
            if settings.checkpoint_activations and row.phase == "forward":
                # A stage is computed again up to its last product, without the collective that follows it.
                skipped = row.operation == after_block and row.payload == activation
                calls = 2 * calls - skipped * sum(n > 0 for n in blocks)
            rows.append(row._replace(calls=m * calls))
        elif row.group == "tp" and here[row.where]:
            rows.append(row._replace(calls=m * row.calls))
    return [row for row in rows if row.payload]
