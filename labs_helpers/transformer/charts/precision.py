"""Draw time and memory in each precision."""

from __future__ import annotations

from typing import Any

import pandas
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.transformer.charts.words import no_records, shape_text, words
from labs_helpers.transformer.records import SETTING, setup_of, timed, varied_in
from labs_helpers.transformer.setups import PRECISIONS


@beside_yours("transformer")
def draw_precision(frame: pandas.DataFrame, **wanted: Any) -> Figure:
    """Draw step time and peak memory in each precision, with all other settings equal. wanted: columns' values, if
    several would do."""
    runs = [run for _, run in frame.groupby("on.time")] if "on.time" in frame else [frame]
    alike = [varied_in(timed(run, **wanted).dropna(subset="peak_bytes"), "precision") for run in runs]
    rows = max(alike, key=len, default=timed(frame[:0]))  # all of one run
    if len(rows) < 2:
        return no_records("time and peak of steps in several precisions")
    rows = rows.set_index("precision", drop=False).reindex([p for p in PRECISIONS if p in set(rows["precision"])])
    first, last = rows.iloc[0], rows.iloc[-1]
    same = timed(frame, **{name: first[name] for name in SETTING if name != "precision"})["precision"]
    others = [name for name in PRECISIONS if name in set(same) - set(rows.index)]
    title = (
        f"{last.name} is {first['step_ms'] / last['step_ms']:.1f} times as fast as {first.name}\n{shape_text(first)}, "
        f"{words(setup_of(first)).replace(first.name + ', ', '')}{recorded_on(rows)}"
    )
    title += f"\nnot drawn, as it was measured in another run: {', '.join(others)}" if others else ""
    fig, axes = figures.panels(title, ("time of a step, 20th to 80th percentile", "peak memory"), 9, 3.6, sharey=True)
    ends = (rows[["step_p20_ms", "step_p80_ms"]] / 1e3).to_dict("index")
    spread = {name: tuple(both.values()) for name, both in ends.items()}
    for ax, unit, values in ((axes[0], "s", rows["step_ms"] / 1e3), (axes[1], "B", rows["peak_bytes"])):
        texts = {name: EngFormatter(unit)(float(f"{value:.3g}")) for name, value in values.items()}
        over = spread if unit == "s" else None
        draw_bars(ax, values.to_dict(), "ours", texts, spread=over, room=1.25, height=0.8, ticks=False)
    return fig
