"""The drawings of lab 07: the grid with its communicators, who holds which slice, and where each layout puts it."""

from __future__ import annotations

from matplotlib.patches import FancyBboxPatch, Rectangle

from labs_helpers.communication.mesh import places
from labs_helpers.draw import figures
from labs_helpers.tensor_parallel.placement import axes as mesh_axes
from labs_helpers.tensor_parallel.placement import nodes_of_groups

# Light enough for black text.
PART_COLORS = [figures.COLORS[name] for name in ("sky", "orange", "green", "purple", "yellow", "vermillion")]
COPY_COLORS = [*PART_COLORS, "#BBBBBB", "#B5D99C"]


def draw_grid(mp_size: int, dp_size: int):
    """The ranks of a grid: a row per copy of the model, a column per part of it; groups are outlined."""
    fig, ax = figures.new(
        f"{mp_size * dp_size} ranks: {dp_size} copies of the model, each cut in {mp_size}",
        1.5 * mp_size + 4.2,
        0.95 * dp_size + 1.7,
    )
    for dp_idx in range(dp_size):
        for mp_idx in range(mp_size):
            ax.add_patch(Rectangle((mp_idx + 0.16, dp_idx + 0.2), 0.68, 0.6, color=PART_COLORS[mp_idx % 6]))
            ax.text(mp_idx + 0.5, dp_idx + 0.5, f"rank {dp_idx * mp_size + mp_idx}", ha="center", va="center")
        _outline(ax, 0.06, dp_idx + 0.1, mp_size - 0.12, 0.8, figures.COLORS["blue"])
        ax.text(-0.08, dp_idx + 0.5, f"dp_idx {dp_idx}", ha="right", va="center")
    for mp_idx in range(mp_size):
        _outline(ax, mp_idx + 0.1, 0.02, 0.8, dp_size - 0.04, figures.COLORS["vermillion"])
        ax.text(mp_idx + 0.5, -0.1, f"mp_idx {mp_idx}", ha="center", va="bottom")
    ax.text(mp_size + 0.12, 0.5, "mp_comm: one model,\nthe same data", color=figures.COLORS["blue"], va="center")
    ax.text(mp_size / 2, dp_size + 0.12, "dp_comm: the same part of the model, other data",
            color=figures.COLORS["vermillion"], ha="center", va="top")  # fmt: skip
    ax.set(xlim=(-0.9, mp_size + 1.5), ylim=(dp_size + 0.45, -0.45))
    ax.axis("off")
    return fig


def _outline(ax, x: float, y: float, width: float, height: float, color: str) -> None:
    ax.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.08", fill=False, edgecolor=color, linewidth=1.6
        )  # fmt: skip
    )


def draw_slices(ranks: int):
    """Attention's four weight matrices with each rank's part: columns of q, k and v, rows of o."""
    fig, axes = figures.new("q, k and v in columns, o in rows: who holds what", 7.6, 2.6, ncols=4)
    for ax, name in zip(axes, ("fc_q", "fc_k", "fc_v", "fc_o"), strict=True):
        for rank in range(ranks):
            start, part = rank / ranks, 1 / ranks
            corner, size = ((0, start), (1, part)) if name == "fc_o" else ((start, 0), (part, 1))
            ax.add_patch(Rectangle(corner, *size, facecolor=PART_COLORS[rank % 6], edgecolor="white"))
            ax.text(corner[0] + size[0] / 2, corner[1] + size[1] / 2, str(rank), ha="center", va="center")
        ax.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[], xlabel="output", aspect="equal")
        ax.text(0.5, -0.04, name, ha="center", va="bottom")
        for spine in ax.spines.values():
            spine.set_visible(False)
    axes[0].set_ylabel("input")
    return fig


def draw_samples(owners, mp_size: int):
    """Which ranks see which samples. owners: for each rank the list of the samples that it has."""
    n = 1 + max(max(samples) for samples in owners)
    fig, ax = figures.new("The ranks of one model see the same samples", 7.2, 0.42 * len(owners) + 1.3)
    for rank, samples in enumerate(owners):
        for sample in samples:
            ax.add_patch(Rectangle((sample + 0.04, rank - 0.4), 0.92, 0.8, color=PART_COLORS[rank % mp_size % 6]))
    ax.set(xlim=(0, n), ylim=(len(owners) - 0.5, -0.5), xlabel="sample")
    ax.set_yticks(range(len(owners)), [f"rank {rank}" for rank in range(len(owners))])
    ax.set_xticks([i + 0.5 for i in range(n)], range(n))
    ax.grid(False)
    return fig


def draw_layouts(layouts, nodes: int = 2, ranks_per_node: int = 4):
    """Where each layout puts the copies of the model: a panel per (dp, tp, placement), a box per node.

    Ranks of one color hold one copy; their letter is the part of it that they hold."""
    columns = min(len(layouts), 3)
    rows = -(-len(layouts) // columns)
    crossing = [_between_nodes(*layout, ranks_per_node) for layout in layouts]
    counts = [sum(what in names for names in crossing) for what in ("activations", "gradients")]
    fig, axes = figures.new(
        f"Activations travel between the nodes in {counts[0]} of {len(layouts)} layouts, gradients in {counts[1]}\n"
        "one color is one copy of the model; behind each layout: what travels between nodes",
        2.75 * columns,
        1.15 * rows + 1.0,
        ncols=columns,
        nrows=rows,
        squeeze=False,
    )
    for ax in axes.flat:
        ax.axis("off")
    for ax, (dp, tp, where), names in zip(axes.flat, layouts, crossing, strict=False):
        place_of = places(mesh_axes(dp, tp, where))
        for node in range(nodes):
            left = node * (ranks_per_node + 0.5)
            _outline(ax, left, 0, ranks_per_node, 1, figures.INK)
            for i in range(ranks_per_node):
                place = place_of[node * ranks_per_node + i]
                ax.add_patch(Rectangle((left + i + 0.12, 0.14), 0.76, 0.72, color=COPY_COLORS[place["dp"] % 8]))
                ax.text(left + i + 0.5, 0.5, "ABCDEFGH"[place["tp"]], ha="center", va="center", fontsize=9)
        name = f"{dp} × {tp} {where}" if dp > 1 and tp > 1 else f"{dp} × {tp}"
        ax.set_title(f"{name}: {' and '.join(names) or 'nothing'}", fontsize=9, loc="left")
        ax.set(xlim=(-0.1, nodes * (ranks_per_node + 0.5)), ylim=(-0.1, 1.1))
    return fig


def _between_nodes(dp: int, tp: int, where: str, ranks_per_node: int) -> list[str]:
    """What travels between the nodes."""
    nodes = nodes_of_groups(dp, tp, where, ranks_per_node)
    return [name for name, axis in (("activations", "tp"), ("gradients", "dp")) if nodes[axis] > 1]


def draw_losses(curves: dict):
    """Loss curves that should lie on one another. curves: layout → its loss at every step."""
    fig, ax = figures.new("Every layout follows the same loss curve", height=3.4)
    styles = zip(figures.COLORS.values(), ((5, "-"), (1.6, "--"), (1.6, ":")), strict=False)
    for (name, losses), (color, (width, line)) in zip(curves.items(), styles, strict=False):
        ax.plot(range(1, len(losses) + 1), losses, color=color, linewidth=width, linestyle=line, marker="", label=name)
    ax.set(xlabel="step", ylabel="loss (nats per token)")
    ax.legend(title="dp × tp")
    return fig


def draw_step(ranks, overlap: bool):
    """One training step: a row per rank, its collectives in color. ranks: `step_timeline.Spans` of each."""
    waiting = sum(stop - start for spans in ranks for start, stop in spans.tp + spans.dp)
    share = waiting / sum(spans.phases[-1] for spans in ranks)
    sent = "in buckets, during the backward pass" if overlap else "after the backward pass"
    fig, ax = figures.new(f"Gradients sent {sent}: {share:.0%} of the step in collectives", 8.4, 0.5 * len(ranks) + 1.5)
    for rank, spans in enumerate(ranks):
        start = 0.0
        for end, shade in zip(spans.phases, ("#CFCBC0", "#E4E1D8", "#F1EFE9"), strict=True):
            ax.barh(rank, end - start, left=start, color=shade, height=0.8)
            start = end
        for color, intervals in ((figures.COLORS["blue"], spans.tp), (figures.COLORS["vermillion"], spans.dp)):
            ax.broken_barh([(a, b - a) for a, b in intervals], (rank - 0.28, 0.56), color=color, linewidth=0)
    parts = {"forward": "#CFCBC0", "backward": "#E4E1D8", "average": "#F1EFE9"}
    parts |= {"activations (tp)": figures.COLORS["blue"], "gradients (dp)": figures.COLORS["vermillion"]}
    ax.legend(
        [Rectangle((0, 0), 1, 1, color=color) for color in parts.values()],
        parts,
        ncols=5,
        loc="upper left",
        bbox_to_anchor=(0, -0.3),
        columnspacing=1.2,
        handlelength=1,
    )
    ax.set(ylim=(len(ranks) - 0.5, -0.5), xlabel="ms")
    ax.set_yticks(range(len(ranks)), [f"rank {rank}" for rank in range(len(ranks))])
    ax.grid(axis="y", visible=False)
    return fig
