"""Draw our tensor-parallel step against that of parallelize_module on GPUs, and our step in each layout."""

from __future__ import annotations

import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars, mark_bar
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.words import span
from labs_helpers.tensor_parallel.predict import predict_gpus

OURS, THEIRS = "ours", "parallelize_module"
ROLES = {OURS: "ours", THEIRS: "theirs"}
WHAT = ["world_size", "dp", "tp", "library", "attention", "compiled", "sequence_parallel", "average"]
MANNER = [*WHAT, "whole"]  # compiled as a whole model, not block by block


@beside_yours("tensor-parallel")
def draw_gpus(rows: pandas.DataFrame) -> Figure:
    """Draw two panels for the largest number of GPUs recorded.

    Left: forward and backward pass of ours and of parallelize_module, wherever both were timed, each with its faster
    way to compile. Right: our step with averaged gradients in each dp × tp layout, eager or compiled block by block,
    with its prediction. Bars are medians, lines the middle 60% of the steps. Raises ValueError without such records.
    """
    steps = rows[rows["kind"] == "gpu_step"].dropna(subset="step_ms") if "step_ms" in rows else rows[:0]
    if steps.empty:
        raise ValueError("no records of steps on GPUs")
    steps = steps[steps["world_size"] == steps["world_size"].max()].drop_duplicates(MANNER, keep="last")
    steps = steps.astype({"world_size": int, "dp": int, "tp": int, **dict.fromkeys(MANNER[5:], bool)})
    layouts = _layouts(steps[~steps["whole"]])
    steps = steps.sort_values("step_ms", kind="stable").drop_duplicates(WHAT).sort_index()
    keys = [name for name in WHAT if name != "library"]
    pairs = steps.pivot_table(index=keys, columns="library", values="step_ms")
    pairs = pairs.reindex(columns=[OURS, THEIRS]).dropna()
    if pairs.empty:
        raise ValueError("no records of ours and of parallelize_module in the same layout")
    ratios = pairs[OURS] / pairs[THEIRS]
    about = steps.iloc[0]
    title = f"Our step takes {span(ratios)} times as long as PyTorch's"
    below = (
        f"Layouts: dp × tp. {about['world_size']} ranks, {about['layers']:.0f} layers of width {about['width']:.0f} in "
        f"{about['dtype']}, {about['batch']:.0f} sequences of {about['length']:.0f} tokens{recorded_on(steps)}"
    )
    panels = ("forward and backward pass", "our step with averaged gradients")
    fig, (left, right) = figures.panels(title, panels, 10.5, 2.2 + 0.42 * max(len(pairs), len(layouts)))
    whole = steps[steps["library"] == OURS].set_index(keys)["whole"]
    names = {key: _words(*key[1:6]) + _manner(key[4], whole[key]) for key in pairs.index}
    for library, shift in ((OURS, -0.18), (THEIRS, 0.18)):
        taken = steps[steps["library"] == library].set_index(keys)
        last = {name: taken.loc[[key]].iloc[-1] for key, name in names.items()}
        spread = {name: (row["step_p20_ms"] / 1e3, row["step_p80_ms"] / 1e3) for name, row in last.items()}
        bars = {name: row["step_ms"] / 1e3 for name, row in last.items()}
        draw_bars(left, bars, ROLES[library], spread=spread, height=0.34, shift=shift, unit="s", xlabel="time per step")
    left.set_xlim(0, 1.05e-3 * steps.set_index(keys).loc[list(pairs.index), ["step_ms", "step_p80_ms"]].max().max())
    bars = {_words(row["dp"], row["tp"], "", row["compiled"]): row["step_ms"] / 1e3 for _, row in layouts.iterrows()}
    told = [predict_gpus(rows, row).step_ms / 1e3 for _, row in layouts.iterrows()]
    ends = zip(bars, layouts["step_p20_ms"] / 1e3, layouts["step_p80_ms"] / 1e3, strict=True)
    spread = {name: (low, high) for name, low, high in ends}
    draw_bars(right, bars, spread=spread, unit="s", xlabel="time per step")
    for y, seconds in enumerate(told):
        mark_bar(right, seconds, y)
    right.set_xlim(0, 1.05 * max(*told, layouts["step_p80_ms"].max() / 1e3))
    figures.legend_below(fig, ROLES | {"predicted": ("formula", "D")})
    figures.write_below(fig, below)
    return fig


def _layouts(steps: pandas.DataFrame) -> pandas.DataFrame:
    """Select our steps with averaged gradients in each layout; with dp 1 there is nothing to average."""
    ours = steps[(steps["library"] == OURS) & ~steps["sequence_parallel"] & (steps["average"] | (steps["dp"] == 1))]
    first = ours[ours["average"]]["attention"].iloc[0] if ours["average"].any() else ours["attention"].iloc[0]
    return ours[ours["attention"] == first].sort_values(["compiled", "tp"])


def _manner(compiled: bool, whole: bool) -> str:
    return f"\n(ours {'as a whole' if whole else 'block by block'})" if compiled else ""


def _words(dp: int, tp: int, attention: str, compiled: bool, sequence_parallel: bool = False) -> str:
    said = [f"{dp} × {tp}", *[attention] * bool(attention), "compiled" if compiled else "eager"]
    return ", ".join([*said, *["sequence-parallel"] * sequence_parallel])
