"""Draw the README's picture from results/: python -m labs_helpers.authoring.readme_picture

Four panels set the course's reference code beside its best-known peers. `make sync` writes them to docs/results.svg.
"""

from __future__ import annotations

from statistics import geometric_mean

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.attention import charts as attention_charts
from labs_helpers.attention import study as attention
from labs_helpers.collectives import study as collectives
from labs_helpers.collectives.race.records import NATIVE, latest
from labs_helpers.data_parallel import study as data_parallel
from labs_helpers.data_parallel.charts.race import race_table
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.draw.curves import Curves, level, tick_each
from labs_helpers.draw.roles import Role
from labs_helpers.gemm import charts as gemm_charts
from labs_helpers.gemm import study as gemm
from labs_helpers.labs import ROOT

PATH = ROOT / "docs" / "results.svg"
GPU, CPU = "nvidia-h200", "16-core-cpu"
CURVES = Curves({"ours": "ours", "cuDNN": 1, "FlashAttention-2": 2, "torch.compile": 1, "cuBLAS, then + and ReLU": 2,
                 "shared memory": "ours", "ring": 1, "recursive doubling": 2, "native": "limit"})  # fmt: skip


def picture() -> Figure:
    """Return a figure of four panels: GEMM, attention, all-reduce and data parallelism, each beside its peers."""
    fig, axes = figures.new(width=11, height=7.4, nrows=2, ncols=2)
    for draw, ax in zip((_gemm, _attention, _all_reduce, _data_parallel), axes.flat, strict=True):
        draw(ax)
    return fig


def write(check: bool = False) -> list[str]:
    """Write the picture where the README shows it; return a line if it changed. check: only compare."""
    if not (ROOT / "results").is_dir():  # a copy of the course without its records
        return []
    drawn = figures.svg(picture(), "results")
    if PATH.exists() and PATH.read_bytes() == drawn:
        return []
    if not check:
        PATH.parent.mkdir(exist_ok=True)
        PATH.write_bytes(drawn)
    return [f"{PATH.relative_to(ROOT)}: the records or the drawing changed"]


def _gemm(ax: Axes) -> None:
    names = {"fused_matmul": "ours", "torch.compile, max-autotune": "torch.compile", "eager": "cuBLAS, then + and ReLU"}
    ms = _by_name(gemm_charts.squares(gemm.load(GPU)), "M", names)
    for name, one in ms.items():
        CURVES.plot(ax, name, one.index, 2e-9 * one.index**3 / one)
    _rates(ax, ms, f"Fused GEMM: {_mean_gain(ms, 'cuBLAS, then + and ReLU'):.2f}× the speed of eager PyTorch")
    ax.set(xlabel="n, for n × n × n in float16 on one H200")


def _attention(ax: Axes) -> None:
    rows = attention_charts.chosen(attention.load(GPU), "speed", direction="forward", causal=True, D=128)
    names = {"flash_attention": "ours", "cuDNN (SDPA)": "cuDNN", "FlashAttention-2 (SDPA)": "FlashAttention-2"}
    ms = _by_name(rows, "L", names)
    sizes = rows.drop_duplicates("L").set_index("L")
    for name, one in ms.items():
        operations = [attention.flops("forward", sizes.B[n], sizes.H[n], n, 128, causal=True) for n in one.index]
        CURVES.plot(ax, name, one.index, [1e-9 * n for n in operations] / one)
    _rates(ax, ms, f"Causal attention: {_mean_gain(ms, 'cuDNN'):.2f}× the speed of cuDNN")
    ax.set(xlabel="tokens; heads of 128 in float16 on one H200")


def _by_name(rows: pandas.DataFrame, size: str, names: dict[str, str]) -> pandas.DataFrame:
    """Median ms, one row per size and one column per name that the figure shows."""
    table = rows.pivot_table(index=size, columns="name", values="median_ms")
    table.index = table.index.astype(int)
    return table[list(names)].rename(columns=names)


def _mean_gain(ms: pandas.DataFrame, peer: str) -> float:
    return geometric_mean(ms[peer] / ms["ours"])


def _rates(ax: Axes, ms: pandas.DataFrame, title: str) -> None:
    ax.set(title=title, ylabel="TFLOP/s", ylim=(0, None))
    tick_each(ax, ms.index, base=2)
    ax.legend(loc="lower right", fontsize="small")


def _all_reduce(ax: Axes) -> None:
    rows = latest(collectives.load(CPU), "race", function="allreduce", ranks=8)
    best = rows[rows["algorithm"] == NATIVE].groupby("bytes")["median_us"].min()
    for name in ("shared_memory", "recursive_doubling", "ring"):
        times = rows[rows["algorithm"] == name].set_index("bytes")["median_us"] / best
        CURVES.plot(ax, name.replace("_", " "), times.index[1::2], times.iloc[1::2], markersize=4)
        if name == "shared_memory":
            said = f"All-reduce of {best.index[-1] // 2**20} MiB: {times.iloc[-1]:.2f}× the time of Open MPI"
    level(ax, 1, "Open MPI, best setting", below=True)
    ax.set(
        title=said,
        ylabel="time over Open MPI's",
        ylim=(0, 4),
        xscale="log",
        xlabel="bytes; 8 ranks on 16 cores; above 4× not drawn",
    )
    ax.set_xticks([10, 1e3, 1e5, 1e7], ["10 B", "1 kB", "100 kB", "10 MB"])
    ax.minorticks_off()
    ax.legend(loc="upper right", fontsize="small")


def _data_parallel(ax: Axes) -> None:
    table = race_table(data_parallel.load(GPU), "wrappers").query("ranks == 2").set_index("candidate")
    names = {ALONE: "no communication", "OverlappedDDP(coalesce_mb=100)": "ours",
             "DDP(bucket_cap_mb=100, static_graph=True, views=True)": "DDP, tuned",
             "DDP": "DDP", "NaiveDDP": "naive"}  # fmt: skip
    roles: dict[str, Role] = dict(zip(names.values(), ("floor", "ours", "theirs", "theirs", "naive"), strict=True))
    steps = {shown: table.loc[name, "step ms"] for name, shown in names.items()}
    spread = {shown: tuple(table.loc[name, ["p20 ms", "p80 ms"]]) for name, shown in names.items()}
    draw_bars(ax, steps, roles, {shown: f"{ms:.1f} ms" for shown, ms in steps.items()}, spread=spread, room=1.25)
    hidden = table["hidden"]
    said = f"Hidden communication: ours {hidden[list(names)[1]]:.0%}, DDP {hidden[list(names)[2]]:.0%}"
    ax.set(title=said, xlabel="ms per step, 0.94B transformer on two H200s")


if __name__ == "__main__":
    print(*write() or [f"{PATH.relative_to(ROOT)} is up to date"], sep="\n")
