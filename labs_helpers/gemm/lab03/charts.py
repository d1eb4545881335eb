"""The figures of lab 03: each is a function of a table of records (see recorded.py)."""

from __future__ import annotations

import numpy as np
import torch

from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted
from labs_helpers.draw.labels import label_lines
from labs_helpers.draw.tables import draw_table
from labs_helpers.gemm.configs import default_config
from labs_helpers.gemm.lab03.exercises.ex2_waves import waves
from labs_helpers.gemm.tuning.recorded import FIELDS, Recorded, config_of, shapes
from labs_helpers.gemm.tuning.sweep import WAVE_CONFIG
from labs_helpers.measure.datasheet import DATASHEET


def tflops(M, N, K, ms):
    """TFLOP/s of a product with 2·M·N·K FLOPs in ms."""
    return 2 * M * N * K / ms / 1e9


def short(config) -> str:
    """'128×256×64 w8 s3'"""
    return f"{config.BLOCK_M}×{config.BLOCK_N}×{config.BLOCK_K} w{config.num_warps} s{config.num_stages}"


def draw_heat(measured, shape, kernel: str = "fused_matmul"):
    """The best TFLOP/s of each BLOCK_M × BLOCK_N over everything else, a panel for each num_warps."""
    rows = _at(measured, shape, kernel)
    rows = rows.assign(rate=tflops(*shape, rows["median_ms"]))
    warps = sorted(rows["num_warps"].unique())
    fig, axes = figures.new(
        f"{_times(shape)}, {_machine(rows)} (recorded): best TFLOP/s of each tile",
        width=8.2,
        height=3.6,
        ncols=len(warps),
        squeeze=False,
    )
    top = rows["rate"].max()
    for ax, count in zip(axes[0], warps, strict=True):
        table = rows[rows["num_warps"] == count].pivot_table(
            index="BLOCK_M", columns="BLOCK_N", values="rate", aggfunc="max"
        )
        draw_table(ax, table, ".0f", "viridis", 0, top, dark=lambda rate: rate < 0.65 * top)
        ax.set(title=f"{count} warps", xlabel="BLOCK_N", ylabel="BLOCK_M")
    return fig


def draw_shared(measured, compiled, shape, tile=(64, 64), num_warps: int = 4, chip=DATASHEET["H200"]):
    """TFLOP/s of one tile against the shared memory its stages take, as compiled for sm_90, with the steps at which
    one program fewer fits an SM."""
    M, N, K = shape
    keys = list(FIELDS)
    table = compiled[compiled["target"] == "sm_90"][[*keys, "shared", "registers"]]
    rows = _at(measured, shape).merge(table, on=keys)
    rows = rows[(rows["BLOCK_M"] == tile[0]) & (rows["BLOCK_N"] == tile[1]) & (rows["num_warps"] == num_warps)]
    rows = rows.assign(
        fit=[programs_per_sm(s, r, num_warps, chip) for s, r in zip(rows["shared"], rows["registers"], strict=True)]
    )
    fig, ax = figures.new(f"{tile[0]}×{tile[1]}, {num_warps} warps at {_times(shape)}, {_machine(rows)} (recorded)")
    for block, group in rows.groupby("BLOCK_K"):
        group = group.sort_values("shared")
        ax.plot(group["shared"] / 1024, tflops(*shape, group["median_ms"]), label=f"BLOCK_K {block}")
    for row in rows.itertuples():
        ax.annotate(
            f"s{row.num_stages}: {row.fit} an SM",
            (row.shared / 1024, tflops(*shape, row.median_ms)),
            xytext=(0, -14),
            textcoords="offset points",
            ha="center",
            fontsize="small",
        )
    for fit in range(1, int(rows["fit"].max()) + 1):
        edge = chip.shared_bytes_per_sm / fit / 1024 - 1  # a program pays 1 KB more than it asks for
        if rows["shared"].min() / 1024 < edge < rows["shared"].max() / 1024:
            ax.axvline(edge, linestyle=":", color="gray", label=f"_{fit}")
    ax.set(xlabel="shared memory a program, KB (dotted: one program fewer fits an SM)", ylabel="TFLOP/s")
    ax.set_ylim(0, 1.1 * ax.get_ylim()[1])
    label_lines(ax)
    return fig


def programs_per_sm(shared: int, registers: int, num_warps: int, chip) -> int:
    """How many programs an SM holds at a time, by shared memory, registers and threads. CUDA C++ Programming Guide,
    compute capabilities: 1 KB of shared memory is reserved a program, registers go by 256 a warp, 64 warps an SM."""
    by_registers = chip.registers_per_sm // (num_warps * -(-registers * 32 // 256) * 256)
    return max(0, min(chip.shared_bytes_per_sm // (shared + 1024), by_registers, 64 // num_warps))


def draw_best(measured, kernel: str = "fused_matmul"):
    """The fastest configuration of each shape, in TFLOP/s, with its name on the bar."""
    found = [(shape, *Recorded(measured, kernel, shape).best()) for shape in shapes(measured, kernel)]
    fig, ax = figures.new(f"The best configuration of each shape, {_machine(measured)} (recorded)", height=3.8)
    bars = ax.barh([_times(shape) for shape, *_ in found], [tflops(*shape, ms) for shape, _, ms in found])
    ax.bar_label(bars, [f"{tflops(*shape, ms):.0f}  {short(config)}" for shape, config, ms in found], padding=4)
    ax.invert_yaxis()
    ax.set(xlabel="TFLOP/s", xlim=(0, 1.55 * ax.get_xlim()[1]))
    return fig


def elsewhere(measured, kernel: str = "fused_matmul"):
    """What tuning for one shape costs on another: DataFrame, row: tuned for, column: run at, value: time over that
    of the best configuration there (NaN where it could not run)."""
    import pandas

    benches = {_times(shape): Recorded(measured, kernel, shape) for shape in shapes(measured, kernel)}
    best = {name: bench.best() for name, bench in benches.items()}
    return pandas.DataFrame(
        {at: {tuned: bench.time(best[tuned][0]) / best[at][1] for tuned in benches} for at, bench in benches.items()}
    )


def draw_elsewhere(measured, prediction=None, kernel: str = "fused_matmul"):
    """The table of `elsewhere` as a picture. prediction: a Prediction of its largest number."""
    table = elsewhere(measured, kernel)
    fig, ax = figures.new(f"Time over the best there, {_machine(measured)} (recorded)", width=7.6, height=5)
    worst = float(np.nanmax(table.to_numpy()))
    draw_table(ax, table, ".2f", "Reds", 1, max(1.5, worst), dark=lambda ratio: ratio > 1.6)
    ax.set_xticks(range(len(table.columns)), table.columns, rotation=35, ha="right")
    ax.set(xlabel="run at M×N×K", ylabel="tuned for")
    if (guess := predicted(prediction)) is not None:
        text = f"at worst {worst:.2f};\nyour prediction: {guess:g}"
        ax.text(1.02, 0.5, text, transform=ax.transAxes, style="italic")
    return fig


def draw_waves(frame, prediction=None, at_once: int = 132):
    """TFLOP/s against M as `sweep.measure_waves` recorded it, over the share of places that the waves fill.

    frame: rows of kind 'waves'; without any, the share alone is drawn. prediction: a Prediction of the M at which
    the rate falls first.
    """
    config, N = (config_of(frame.iloc[0]), int(frame.iloc[0]["N"])) if len(frame) else (WAVE_CONFIG, 4096)
    title = f"{short(config)}, N = {N}" + (f", {_machine(frame)} (recorded)" if len(frame) else "")
    fig, axes = figures.new(
        title, height=5.4 if len(frame) else 3, nrows=2 if len(frame) else 1, sharex=True, squeeze=False
    )
    filled = axes[-1][0]
    if len(frame):
        frame = frame.sort_values("M")
        axes[0][0].plot(frame["M"], tflops(frame["M"], N, frame["K"], frame["median_ms"]), markersize=4)
        axes[0][0].set(ylabel="TFLOP/s", ylim=(0, None))
    rows = np.arange(1, 67) * config.BLOCK_M
    shares = [tiles / (count * at_once) for tiles, count, _ in (waves(int(m), N, config, at_once) for m in rows)]
    filled.plot(rows, shares, markersize=3, color=figures.COLORS["green"])
    filled.set(xlabel="M", ylabel="places filled", ylim=(0, 1.05))
    if (guess := predicted(prediction)) is not None:
        for (ax,) in axes:
            ax.axvline(guess, linestyle="--", color=figures.COLORS["black"], label="_prediction")
        filled.text(guess, 0.06, " your prediction", style="italic")
    return fig


def draw_regret(curves: dict, title: str, prediction=None):
    """Regret against the number of measurements: the median over seeds, with the middle half shaded.

    curves: name → array (seeds, measurements) of regrets, 0.02 for 2%. prediction: a Prediction of the number of
    measurements until 2%.
    """
    fig, ax = figures.new(title)
    for (name, values), color in zip(curves.items(), figures.COLORS.values(), strict=False):
        values = 100 * np.asarray(values, dtype=float)
        x = np.arange(1, values.shape[1] + 1)
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0, method="nearest")
        ax.plot(x, middle, color=color, label=name, markersize=4)
        ax.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    ax.axhline(2, linestyle=":", color="gray", label="_goal")
    ax.set(xlabel="measurements", ylabel="% slower than the best", ylim=(0, 40))
    figures.mark_prediction(ax, predicted(prediction), 2)
    label_lines(ax)
    return fig


def draw_gain(measured, kernel: str = "fused_matmul"):
    """What tuning gained in the sweep itself: the untuned `default_config` and the best, in TFLOP/s, a pair a shape."""
    found = shapes(measured, kernel)
    fig, ax = figures.new(f"Untuned and tuned, {_machine(measured)} (recorded)")
    for offset, (name, color) in zip((-0.2, 0.2), (("default_config", "sky"), ("best of 144", "blue")), strict=True):
        rates = []
        for shape in found:
            bench = Recorded(measured, kernel, shape)
            ms = bench.best()[1] if offset > 0 else bench.time(default_config(*shape, torch.float16, "sm_90"))
            rates.append(tflops(*shape, ms))
        bars = ax.barh(np.arange(len(found)) + offset, rates, height=0.36, color=figures.COLORS[color], label=name)
        ax.bar_label(bars, [f"{rate:.0f}" for rate in rates], padding=3, fontsize="small")
    ax.set_yticks(range(len(found)), map(_times, found))
    ax.invert_yaxis()
    ax.set_xlabel("TFLOP/s")
    ax.legend(loc="lower left", bbox_to_anchor=(0, -0.32), ncols=2)
    return fig


def _at(measured, shape, kernel: str = "fused_matmul"):
    M, N, K = shape
    return measured[(measured["kernel"] == kernel) & (measured["M"] == M) & (measured["N"] == N) & (measured["K"] == K)]


def _times(shape) -> str:
    return "×".join(map(str, shape))


def _machine(frame) -> str:
    return str(frame["on.machine"].iloc[0])
