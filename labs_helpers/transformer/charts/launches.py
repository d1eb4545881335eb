"""Draw how many kernels are launched, and how long the GPU waits for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import level, percent, predicted, recorded_on, tick_each
from labs_helpers.draw.roles import color
from labs_helpers.transformer.charts.words import CURVES, EAGER, by_size, no_records, words
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.grids import FIELDS
from labs_helpers.transformer.records import launch_us, setup_of, timed, tokens, varied_in
from labs_helpers.transformer.setups import Setup

CLAIMED_KERNELS, CLAIMED_WAIT = 2500, 0.5  # what people often say about a forward pass, and about a step


@beside_yours("transformer")
def draw_launches(frame: pandas.DataFrame, prediction: Any = None, setup: Setup = EAGER, at: str = "small") -> Figure:
    """Draw the kernels of a forward pass against the number of layers, and the share of a step in which the GPU waits
    against the tokens per step, one curve per size. Lines show what people often say about both.

    prediction: a Prediction of the kernels in a forward pass of the size `at`. The share is that of the attention with
    the most measured batches.
    """
    shapes = timed(frame, setup).dropna(subset="forward_launches").groupby(["batch", "length"])
    counted = max((rows for _, rows in shapes), key=len, default=timed(frame[:0]))  # the setup with the most sizes
    alike = {name: getattr(setup, name) for name in FIELDS if name != "attention"}
    varied = varied_in(timed(frame, **alike).dropna(subset="busy"), "batch")
    if counted.empty or varied.empty:
        return no_records(f"launches with {words(setup)}")
    waiting = timed(frame, setup_of(varied.iloc[0]), length=varied["length"].iloc[0]).dropna(subset="busy")
    traced = bool(varied["gpu_ms"].isna().all())  # otherwise relative to steps timed without a profiler
    curves = by_size(waiting if traced else waiting.dropna(subset="gpu_ms"))
    left_out = [size for size in by_size(waiting) if size not in curves]
    layers, kernels = counted["layers"].to_numpy(float), counted["forward_launches"].to_numpy(float)
    slope, besides = np.polyfit(layers, kernels, 1) if len(counted) > 1 else (kernels[0] / layers[0], 0.0)
    step = "traced step" if traced else "step"
    waits = 1 - varied["busy"]
    cost = launch_us(waiting)
    title = (
        f"The GPU waits {waits.iloc[0]:.0%} of a {step} at {tokens(varied).iloc[0]:,} tokens, "
        f"{waits.iloc[-1]:.0%} at {tokens(varied).iloc[-1]:,}\n"
        f"{setup.precision}, eager{f', {cost} per launch' * bool(cost)}{recorded_on(counted)}"
    )
    panels = (
        f"kernels of a forward pass, {slope:.0f} per layer",
        f"share of a {step} without GPU work, {varied['attention'].iloc[0]}",
    )
    fig, (left, right) = figures.panels(title, panels, 9.5, 3.7)
    reach = 1.25 * layers.max()
    left.plot([0, reach], [besides, besides + slope * reach], marker="", color=color("aside"), linewidth=1.2)
    for row in counted.itertuples():
        CURVES.plot(left, row.size, [row.layers], [row.forward_launches])
    guess = predicted(prediction)
    left.set(xlabel="layers", xlim=(0, reach), ylim=(0, 1.12 * max(CLAIMED_KERNELS, kernels.max(), guess or 0)))
    left.yaxis.set_major_formatter("{x:,.0f}")
    level(left, CLAIMED_KERNELS, f"“{CLAIMED_KERNELS:,} kernels”")
    points = zip(counted["size"], layers, kernels, strict=True)
    figures.label_points(left, {f"{size}: {count:,.0f}": (deep, count) for size, deep, count in points})
    if at in SIZES:
        figures.mark_prediction(left, SIZES[at].layers, guess)
    for size, curve in curves.items():
        CURVES.plot(right, size, tokens(curve), 1 - curve["busy"])
    tick_each(right, tokens(pandas.concat(curves.values())), base=2, xlabel="tokens per step")
    right.set_ylim(0, 1)
    if left_out:
        words_of = f"not drawn, only traced: {', '.join(left_out)}"
        right.text(0.98, 0.93, words_of, transform=right.transAxes, ha="right")
    percent(right)
    level(right, CLAIMED_WAIT, "“half of the time”", right=True)
    second = {size: curve.iloc[min(1, len(curve) - 1)] for size, curve in curves.items()}
    places = {size: (row["batch"] * row["length"], 1 - row["busy"]) for size, row in second.items()}
    figures.label_points(right, places)
    return fig
