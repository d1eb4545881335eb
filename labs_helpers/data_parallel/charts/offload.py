"""Steps whose optimizer's states, or parameters too, lie in the CPU's memory."""

from __future__ import annotations

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import one_setting, setting_of
from labs_helpers.data_parallel.study.records import select
from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.draw.words import bytes_text

PASSES = "forward and backward pass"


def draw_offload(rows: pandas.DataFrame) -> Figure:
    """A bar per way, a panel per number of ranks: forward and backward pass, and the update on top of them; at the
    bar's end what crosses between the CPU's memory and the GPU's in a step, both ways, and in how long.

    ValueError without records.
    """
    found = one_setting(select(rows, "offload"), "size", "batch", "length")
    found = found.assign(copies_ms=found["to_cpu_ms"] + found["to_gpu_ms"])
    ranks, names = sorted(found["ranks"].unique()), list(dict.fromkeys(found["way"]))
    worst = found[found["offload"].notna() & (found["ranks"] == ranks[-1])].sort_values("step_ms").iloc[-1]
    title = (
        f"{worst['way']}: {worst['update_ms']:.0f} of {worst['step_ms']:.0f} ms are the update; the copies over PCIe "
        f"take {worst['copies_ms']:.0f} ms\n{setting_of(found)}"
    )
    panels = {f"{count:.0f} ranks": found[found["ranks"] == count] for count in ranks}
    fig, axes = figures.panels(title, panels, 4.6 + 3.0 * len(panels), 1.9 + 0.36 * len(names), sharey=True)
    for ax, here in zip(axes, panels.values(), strict=True):
        bars, texts = {}, {}
        for _, row in here.iterrows():
            passes, update = 1e-3 * (row["step_ms"] - row["update_ms"]), 1e-3 * row["update_ms"]
            bars[row["way"]] = {PASSES: passes, "update": update}
            if isinstance(row["offload"], str):
                crossing = row["to_cpu_bytes"] + row["to_gpu_bytes"]
                texts[row["way"]] = f"{bytes_text(crossing)}, {row['copies_ms']:.0f} ms"
        roles = {PASSES: "floor", "update": "update"}
        draw_bars(ax, bars, roles, texts, names=names, unit="s", xlabel="time of a step", room=1.45)
    figures.legend_below(fig, roles)
    return fig
