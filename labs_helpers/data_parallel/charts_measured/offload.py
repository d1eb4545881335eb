"""Steps whose optimizer's states, or parameters too, lie in the CPU's memory."""

from __future__ import annotations

import pandas
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labs_helpers.data_parallel.charts_measured.looks import (
    COMPUTE,
    bytes_text,
    finish_bars,
    new_figure,
    one_setting,
    setting_of,
    step_bar,
)
from labs_helpers.data_parallel.study.records import select
from labs_helpers.draw import figures

UPDATE = figures.COLORS["green"]


def draw_offload(rows: pandas.DataFrame) -> Figure:
    """A bar per way, a panel per number of ranks: forward and backward pass, and the update on top of them; at the
    bar's end what crosses between the CPU's memory and the GPU's in a step, both ways, and in how long.

    ValueError without records.
    """
    found = one_setting(select(rows, "offload"), "size", "batch", "length")
    panels, names = sorted(found["ranks"].unique()), list(dict.fromkeys(found["way"]))
    offloaded = found[found["offload"].notna() & (found["ranks"] == panels[-1])].sort_values("step_ms").iloc[-1]
    copies = offloaded["to_cpu_ms"] + offloaded["to_gpu_ms"]
    fig, axes = new_figure(
        f"{offloaded['way']}: {offloaded['update_ms']:.0f} of {offloaded['step_ms']:.0f} ms are the update; the copies "
        f"over PCIe take {copies:.0f} ms\n{setting_of(found)}",
        4.6 + 3.0 * len(panels), height=1.9 + 0.36 * len(names), ncols=len(panels), sharey=True, squeeze=False,
    )  # fmt: skip
    for ax, ranks in zip(axes[0], panels, strict=True):
        here = found[found["ranks"] == ranks]
        for _, row in here.iterrows():
            crossing = row["to_cpu_bytes"] + row["to_gpu_bytes"]
            took = row["to_cpu_ms"] + row["to_gpu_ms"]
            text = f"{bytes_text(crossing)}, {took:.0f} ms" if isinstance(row["offload"], str) else ""
            passes = 1e-3 * (row["step_ms"] - row["update_ms"])
            step_bar(ax, names.index(row["way"]), passes, 1e-3 * row["step_ms"], UPDATE, text)
        finish_bars(ax, names, f"{ranks:.0f} ranks", 1e-3 * here["step_ms"].max())
        ax.locator_params(axis="x", nbins=4)
    patches = [Patch(color=COMPUTE, label="forward and backward pass"), Patch(color=UPDATE, label="update")]
    fig.legend(handles=patches, loc="outside lower left", ncols=2, fontsize="small", handlelength=1.2)
    return fig
