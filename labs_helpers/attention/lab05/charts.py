"""Lab 05's own figure of the records: how long a backward pass takes beside its forward pass."""

from __future__ import annotations

from labs_helpers.attention.charts import BASELINES, CURVES, OURS, chosen, label_lengths
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import predicted, recorded_on


@beside_yours("attention")
def draw_ratio(rows, prediction=None):
    """Time of the backward over that of the forward pass against the length; causal, head dim 128, float16.

    rows: DataFrame as study.load gives it. prediction: a Prediction for flash_attention at the last length, or None.
    """
    forward, backward = (
        chosen(rows, "speed", direction=direction, causal=True, D=128) for direction in ("forward", "backward")
    )
    fig, ax = figures.new(width=8.4)
    last = {}
    lengths = sorted(map(int, backward["L"].unique()))
    for name in BASELINES:
        times = [part[part["name"] == name].set_index("L")["median_ms"] for part in (forward, backward)]
        ratio = (times[1] / times[0]).dropna()
        if len(ratio):
            CURVES.plot(ax, name, ratio.index, ratio)
            last[name] = float(ratio.iloc[-1])
    ax.plot(lengths, [2.5] * len(lengths), ":", marker="", color="gray", label="five products over two")
    label_lengths(ax, lengths)
    finding = "How many times as long as the forward pass the backward pass takes"
    if OURS in last:
        finding = f"flash_attention's backward pass takes {last[OURS]:.1f} times as long as its forward pass"
    ax.set_title(f"{finding}\nat {lengths[-1]:,} tokens; causal, float16, heads of 128{recorded_on(rows)}")
    value = predicted(prediction)
    ax.set_ylabel("times the forward's time")
    ax.set_ylim(0, 1.1 * max(ax.get_ylim()[1], value or 0))
    figures.label_lines(ax)
    figures.mark_prediction(ax, lengths[-1], value)
    return fig
