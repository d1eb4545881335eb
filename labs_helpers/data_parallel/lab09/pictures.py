"""The drawings of lab 09: flat memory cut into shards, what is held, and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted

# Light enough for black text.
RANK_COLORS = [figures.COLORS[name] for name in ("sky", "orange", "green", "purple", "yellow", "vermillion")]
WITH_ALL_REDUCE = "ZeRO-1 with all-reduce"
PARTS = {"parameters": "blue", "gradients": "orange", "optimizer": "green"}


def draw_shards(
    numels: Sequence[int], names: Sequence[str], pieces: Sequence[Sequence[tuple[int, int, int]]], shard: int
):
    """Flat memory, a box per parameter; below it each rank's pieces, and the padding.

    pieces: of each rank, (number, begin, end). shard: its elements."""
    ranks, total = len(pieces), sum(numels)
    fig, ax = figures.new(f"{total} elements in {ranks} shards of {shard}: parameters are cut", height=2.7)
    starts = [sum(numels[:i]) for i in range(len(numels))]
    for start, n, name in zip(starts, numels, names, strict=True):
        ax.barh(1, n, left=start, color="white", edgecolor=figures.INK, height=0.6)
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        ax.text(start + n / 2, 1, name, ha="center", va="center", fontsize="small", bbox=ground)
    for rank, own in enumerate(pieces):
        color = RANK_COLORS[rank % len(RANK_COLORS)]
        for number, begin, end in own:
            left = starts[number] + begin
            ax.barh(0, end - begin, left=left, color=color, edgecolor="white", height=0.6)
            if end - begin > 0.04 * total:
                ax.text(left + (end - begin) / 2, 0, f"{begin}:{end}", ha="center", va="center", fontsize="small")
            else:
                ax.text(
                    left + (end - begin) / 2,
                    0,
                    f"{begin}:{end}",
                    ha="center",
                    va="center",
                    fontsize="xx-small",
                    rotation=90,
                )
        ax.text((rank + 0.5) * shard, -0.62, f"rank {rank}", ha="center", va="center")
        ax.axvline((rank + 1) * shard, color=figures.INK, linestyle="--", linewidth=1)
    if padding := ranks * shard - total:
        ax.barh(0, padding, left=total, color="white", edgecolor=figures.INK, hatch="///", height=0.6)
    ax.set(xlim=(-0.3, ranks * shard + 0.3), ylim=(-0.95, 1.5), yticks=[1, 0], yticklabels=["parameters", "pieces"])
    ax.set_xlabel("element of flat memory (hatched: padding)")
    ax.grid(False)
    return fig


def draw_held(counted: Mapping[str, Mapping[str, float]], formula: Mapping[str, float], prediction=None):
    """A bar per stage of what one rank holds after the backward pass, and the formula as a diamond.

    prediction: of the bytes that ZeRO-2's rank holds over DDP's; one without a number draws nothing."""
    worst = max(abs(sum(parts.values()) / formula[stage] - 1) for stage, parts in counted.items())
    fig, ax = figures.new(
        f"A rank holds what the formula says, within {max(worst, 1e-3):.1%}", width=8.2, height=1.8 + 0.5 * len(counted)
    )
    for y, (stage, parts) in enumerate(counted.items()):
        left = 0.0
        for part, color in PARTS.items():
            ax.barh(y, parts[part], left=left, color=figures.COLORS[color], height=0.6)
            left += parts[part]
        ax.plot([formula[stage]], [y], "D", color="black", markerfacecolor="none", markeredgewidth=1.6, markersize=8)
    value, names = predicted(prediction), list(counted)
    if value and "ZeRO-2" in names:
        y = names.index("ZeRO-2") + 0.4
        ax.plot([value * formula["DDP"]], [y], "^", color="black", markersize=9)
        ax.annotate("your prediction", (value * formula["DDP"], y), xytext=(7, -3), textcoords="offset points")
    ax.set(yticks=range(len(names)), yticklabels=names, xlabel="held by a rank after the backward pass")
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    figures.set_unit(ax.xaxis, "B")
    handles = [Patch(color=figures.COLORS[color], label=part) for part, color in PARTS.items()]
    diamond = Line2D([], [], color="black", marker="D", markerfacecolor="none", linestyle="none", label="formula")
    fig.legend(handles=[*handles, diamond], loc="outside lower left", ncols=4, fontsize="small")
    return fig


def draw_sent(rows: Mapping[str, float], prediction=None):
    """Bytes sent per step and rank, a bar per scheme, in DDP's. prediction: of ZeRO-1 with an all-reduce."""
    names = list(rows)
    by_times: dict[str, list[str]] = {}
    for name in names[1:]:
        by_times.setdefault(f"{rows[name] / rows['DDP']:.3g}", []).append(name)
    said = ",\n".join(f"{' and '.join(some)}: {times} times DDP's bytes" for times, some in sorted(by_times.items()))
    fig, ax = figures.new(said, height=1.6 + 0.45 * len(rows))
    for y, name in enumerate(names):
        times = rows[name] / rows["DDP"]
        ax.barh(y, times, color=figures.COLORS["blue" if times <= 1 else "vermillion"], height=0.6)
        ax.text(times + 0.02, y, f"{times:.3g}", va="center")
    if (value := predicted(prediction)) is not None:
        y = names.index(WITH_ALL_REDUCE)
        ax.plot([value], [y + 0.38], "^", color="black", markersize=9)
        ax.annotate("your prediction", (value, y + 0.38), xytext=(7, -3), textcoords="offset points")
    ax.set(
        yticks=range(len(names)),
        yticklabels=names,
        xlabel="times DDP's",
        xlim=(0, 1.12 * max(rows.values()) / rows["DDP"]),
    )
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    return fig
