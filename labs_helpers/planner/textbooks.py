"""Published figures for model states, each with the formula that produces it.

They seldom contradict one another, because they count different bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.planner.accounting import DEFAULT, GB, LAYOUTS, bytes_per_parameter

if TYPE_CHECKING:
    import pandas

TWO_BYTES, FOUR_BYTES = 2, 4


class Figure(NamedTuple):
    said: str
    value: float  # from the formula
    unit: str
    formula: str
    counts: str


def figures() -> list[Figure]:
    """Return the figures, computed from the layouts."""
    saved = {layout: 1 - bytes_per_parameter("ZeRO-1", 2, layout) / LAYOUTS[layout].each for layout in LAYOUTS}
    bf16, master, autocast = LAYOUTS["bf16"], LAYOUTS[DEFAULT], LAYOUTS["autocast over float32"]
    megatron, fp16 = LAYOUTS["bf16 with float32 master and gradients"], LAYOUTS["fp16 with float32 copies of both"]
    each = "bytes per parameter"
    return [
        Figure("training takes 16 bytes per parameter", master.each, each, "2 + 2 + 12",
               "bf16 parameters and gradients, float32 master weights and two moments; K = 12 in the ZeRO paper"),
        Figure("… 16, another way", autocast.each, each, "4 + 4 + 8",
               "autocast: all states in float32, no master weights; 16-bit copies count as activations"),
        Figure("… 8", bf16.each, each, "2 + 2 + 4",
               "all in bf16, which rounds small updates away"),
        Figure("… 18", megatron.each, each, "2 + 4 + 12",
               "Megatron-Core: bf16 parameters, gradients summed in float32"),
        Figure("… 20", fp16.each, each, "2 + 2 + 16",
               "Megatron-Core: fp16 parameters and gradients, with float32 copies of both and two moments"),
        Figure("12 bytes of moments", master.optimizer - FOUR_BYTES, each, "12 − 4",
               "8 of the 12 are moments; the other 4 are master weights"),
        Figure("autocast halves the traffic", autocast.gradients / master.gradients, "times as much", "4 / 2",
               "it doubles the traffic: its gradients are float32, those of the 2 + 2 + 12 layout bf16"),
        Figure("ZeRO-1 saves 37.5% on 2 GPUs", saved[DEFAULT], "of all states", "1 − (4 + 12 / 2) / 16",
               "states in the 16-byte layout"),
        Figure("… 25%", saved["bf16"], "of all states", "1 − (4 + 4 / 2) / 8",
               "states in the 8-byte layout, and in autocast's 8 + 8"),
        Figure("… about 20%", 0.5 * bf16.optimizer / (bf16.each + TWO_BYTES), "of the whole", "2 / (8 + 2)",
               "all memory of a step, with 8 bytes of states and, for example, 2 of activations per parameter; of the "
               "optimizer's memory alone it saves half"),
        Figure("GPT-3 needs 350 GB in fp32", 175e9 * TWO_BYTES / GB, "GB", "175e9 · 2", "its parameters in 16 bits"),
        Figure("a 7B model needs 112 GB", 7e9 * master.each / GB, "GB", "7e9 · 16",
               "only states: no activations, buckets, or gathered blocks"),
        Figure("ZeRO-3 takes 1.9 GB of 7.5B on 64 GPUs", 7.5e9 * bytes_per_parameter("ZeRO-3", 64) / GB, "GB",
               "16 · 7.5e9 / 64", "shards between the blocks; one gathered block of this model takes 0.4 GB"),
    ]  # fmt: skip


def table() -> pandas.DataFrame:
    """Return the figures as a DataFrame."""
    import pandas

    return pandas.DataFrame(figures())
