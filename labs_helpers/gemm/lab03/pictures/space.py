"""Draw the space of configurations, to show which ones are fast and why."""

from __future__ import annotations

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import predicted, upright
from labs_helpers.draw.roles import color
from labs_helpers.draw.tables import draw_table
from labs_helpers.gemm.tuning.places import places_filled
from labs_helpers.gemm.tuning.recorded import FIELDS, config_of, measured, wave_curve
from labs_helpers.gemm.tuning.sweep import WAVE_CONFIG
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.measure.records import YOURS

FITTING = (6, 1, 0, 5, 2, 3, 4)  # the color of bars by the number of programs that fit on an SM


def tflops(M, N, K, ms):
    """Return the TFLOP/s of a product with 2·M·N·K FLOPs that takes `ms` milliseconds."""
    return 2 * M * N * K / ms / 1e9


def short(config) -> str:
    """Write a configuration in short, like '128×256×64 w8 s3'."""
    return f"{config.BLOCK_M}×{config.BLOCK_N}×{config.BLOCK_K} w{config.num_warps} s{config.num_stages}"


@beside_yours("gemm-tuning", measured)
def draw_heat(measured, shape, kernel: str = "fused_matmul"):
    """Draw the best TFLOP/s of each BLOCK_M × BLOCK_N, with one panel per num_warps."""
    rows = at(measured, shape, kernel)
    rows = rows.assign(rate=tflops(*shape, rows["median_ms"]))
    least = rows.groupby(["BLOCK_M", "BLOCK_N", "num_warps"])["rate"].max().min()
    panels, top = {f"{count} warps": some for count, some in rows.groupby("num_warps")}, rows["rate"].max()
    title = f"The rate ranges from {least:.0f} to {top:.0f} TFLOP/s with the tile size"
    fig, axes = figures.panels(title, panels, 8.2, 3.6)
    figures.write_below(fig, f"TFLOP/s at {times(shape)} with the best BLOCK_K and num_stages; {recorded(rows)}")
    for ax, some in zip(axes, panels.values(), strict=True):
        table = some.pivot_table(index="BLOCK_M", columns="BLOCK_N", values="rate", aggfunc="max")
        draw_table(ax, table, ".0f", "viridis", 0, top, dark=lambda rate: rate < 0.65 * top)
        ax.set(xlabel="BLOCK_N", ylabel="BLOCK_M")
    return fig


@beside_yours("gemm-tuning", measured)
def draw_pipeline(measured, compiled, shape, tile=(128, 128), num_warps: int = 4, chip=DATASHEET["H200"]):
    """Draw the TFLOP/s of one tile size against num_stages, with one panel per BLOCK_K.

    Colors show how many programs fit on an SM, by the shared memory and registers that the compiler reported for sm_90.
    """
    keys = list(FIELDS)
    table = compiled[compiled["target"] == "sm_90"][[*keys, "shared", "registers"]]
    rows = at(measured, shape).merge(table, on=keys)
    rows = rows[(rows["BLOCK_M"] == tile[0]) & (rows["BLOCK_N"] == tile[1]) & (rows["num_warps"] == num_warps)]
    rows = rows[rows["median_ms"].notna()].assign(rate=lambda rows: tflops(*shape, rows["median_ms"]))
    fit = [programs_per_sm(s, r, num_warps, chip) for s, r in zip(rows["shared"], rows["registers"], strict=True)]
    rows = rows.assign(fit=fit)
    alone, together = (rows.loc[chosen, "rate"].max() for chosen in (rows["fit"] == 1, rows["fit"] > 1))
    panels = {f"BLOCK_K {block}": group for block, group in rows.groupby("BLOCK_K")}
    fig, axes = figures.panels("More stages help until an SM holds only one program", panels, 8.2, sharey=True)
    best = f"{together:.0f} TFLOP/s with two or more, {alone:.0f} with one"
    figures.write_below(fig, f"{best}; {tile[0]}×{tile[1]}, {num_warps} warps at {times(shape)}, {machine(rows)}")
    for ax, group in zip(axes, panels.values(), strict=True):
        for count, some in group.groupby("fit"):
            ax.bar(some["num_stages"], some["rate"], color=color(FITTING[min(count, 6)]), width=0.7)
        for row in group.itertuples():
            text = f"{row.shared / 1024:.0f} KiB\n{row.fit} per SM"
            ax.text(row.num_stages, row.rate, text, ha="center", va="bottom", fontsize="small")
        ax.set(xlabel="num_stages", xticks=sorted(group["num_stages"]))
        ax.grid(axis="x", visible=False)
    axes[0].set(ylabel="TFLOP/s", ylim=(0, 1.22 * rows["rate"].max()))
    return fig


def programs_per_sm(shared: int, registers: int, num_warps: int, chip) -> int:
    """Return how many programs fit on an SM at a time, by shared memory in bytes, registers per thread and warps.

    By the CUDA C++ Programming Guide (compute capabilities), an SM reserves 1 KiB of shared memory per program,
    allocates registers per warp in units of 256, and runs at most 64 warps.
    """
    by_registers = chip.registers_per_sm // (num_warps * -(-registers * 32 // 256) * 256)
    return max(0, min(chip.shared_bytes_per_sm // (shared + 1024), by_registers, 64 // num_warps))


@beside_yours("gemm-tuning", wave_curve)
def draw_waves(frame, prediction=None, at_once: int = 132):
    """Draw the TFLOP/s against M that `sweep.measure_waves` recorded, and below it the share of places filled.

    frame: rows of kind 'waves'; without any, only the share is drawn. prediction: a Prediction of the first M at which
    the rate drops.
    """
    config, N = (config_of(frame.iloc[0]), int(frame.iloc[0]["N"])) if len(frame) else (WAVE_CONFIG, 4096)
    title = f"{short(config)}, N = {N}"
    if len(frame):
        frame = frame.sort_values("M", ignore_index=True)
        rates = tflops(frame["M"], N, frame["K"], frame["median_ms"])
        fall = (rates.shift(1) - rates).idxmax()
        lost = 1 - rates[fall] / rates[fall - 1]
        told, title = f"{title}, {recorded(frame)}", f"One more row of tiles costs up to {lost:.0%} if it starts a wave"
    shape = {"nrows": 2, "height": 5.4} if len(frame) else {"nrows": 1, "height": 3}
    fig, axes = figures.new(title, sharex=True, squeeze=False, **shape)
    filled = axes[-1][0]
    if len(frame):
        figures.write_below(fig, told)
        axes[0][0].plot(frame["M"], rates, markersize=4)
        axes[0][0].set(ylabel="TFLOP/s", ylim=(0, None))
    rows = np.arange(1, 67) * config.BLOCK_M
    shares = [places_filled(int(m), N, config, at_once)[1] for m in rows]
    filled.plot(rows, shares, markersize=3, color=color(2))
    filled.set(xlabel="M", ylabel="share of places filled", ylim=(0, 1.05))
    if (guess := predicted(prediction)) is not None:
        for (ax,) in axes:
            upright(ax, guess, "your prediction" * (ax is filled), top=False)
    return fig


def at(measured, shape, kernel: str = "fused_matmul"):
    """Select the rows of one kernel and shape."""
    M, N, K = shape
    return measured[(measured["kernel"] == kernel) & (measured["M"] == M) & (measured["N"] == N) & (measured["K"] == K)]


def times(shape) -> str:
    """Write a shape like '4096×4096×1024', or '4096³' if all sizes are equal."""
    return f"{shape[0]}³" if len(set(shape)) == 1 else "×".join(map(str, shape))


def machine(frame) -> str:
    """Return the machine that made a table's records: 'NVIDIA H200', 'NVIDIA H200, your run'."""
    return str(frame["on.machine"].iloc[0])


def recorded(frame) -> str:
    """Return the machine with ', recorded' appended, unless the run is the reader's own."""
    return machine(frame) if machine(frame).endswith(YOURS) else f"{machine(frame)}, recorded"


def first_fall(frame) -> int:
    """Return the first M of a wave curve at which the rate is lower than at the previous M."""
    frame = frame.sort_values("M", ignore_index=True)
    rates = tflops(frame["M"], frame["N"], frame["K"], frame["median_ms"])
    return int(frame["M"][(rates < rates.shift(1)).idxmax()])


@beside_yours("gemm-tuning", measured)
def draw_rules(measured, prune_rule, kernel: str = "fused_matmul", chip=DATASHEET["H200"]):
    """Draw the relative rate of each configuration against the share of shared memory that its pipeline fills.

    The rate is relative to the best at the same shape, and the figure shows all recorded shapes. prune_rule: exercise
    1's `resources`.
    """
    fig, ax = figures.new(width=8.2)
    few, many, best = [], [], []
    for _, rows in measured[measured["kernel"] == kernel].groupby(["M", "N", "K"]):
        fastest = rows["median_ms"].min()
        for row in rows[rows["median_ms"].notna()].to_dict("records"):
            shared, accumulators, verdict = prune_rule(config_of(row), chip)
            point = (shared / chip.shared_bytes_per_block, fastest / row["median_ms"])
            if verdict == "runs":
                (few if accumulators < 32 else best if point[1] > 0.98 else many).append(point)
    for points, role, marker, name in (
        (many, "all", ".", "32 or more accumulators"),
        (few, 3, "x", "fewer than 32 accumulators"),
        (best, "ours", "o", "within 2% of the best"),
    ):
        ax.plot(*zip(*points, strict=True), marker, color=color(role), label=name, markersize=6)
    upright(ax, 0.4, role="aside", style=":")
    inside = sum(share >= 0.4 for share, _ in best)
    title = f"{inside} of {len(best)} fast configurations fill 40% of shared memory"
    figures.set_title(fig, title, ax)
    ax.set(xlabel="share of a program's shared memory filled", ylabel="rate relative to the best at that shape")
    ax.set_ylim(0, 1.05)
    ax.legend(loc="lower right", fontsize="small")
    return fig
