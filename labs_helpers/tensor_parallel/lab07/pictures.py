"""The drawings of lab 07: slices of weights, the grid, samples, layouts on nodes, losses and a step's time line."""

from __future__ import annotations

from matplotlib.patches import FancyBboxPatch

from labs_helpers.communication.mesh import places
from labs_helpers.draw import figures
from labs_helpers.draw.boxes import draw_box
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import INK, PHASES, color, rank_color
from labs_helpers.tensor_parallel.placement import axes as mesh_axes
from labs_helpers.tensor_parallel.placement import nodes_of_groups

TP, DP = "group of rows", "group of columns"


def draw_grid(mp_size: int, dp_size: int):
    """Draw the ranks of a grid, with one row per copy of the model, one column per part, and its groups outlined."""
    fig, ax = figures.new(
        f"{mp_size * dp_size} ranks hold {dp_size} copies of the model, each split in {mp_size}",
        1.5 * mp_size + 4.2,
        0.95 * dp_size + 1.7,
    )
    for dp_idx in range(dp_size):
        for mp_idx in range(mp_size):
            rank = f"rank {dp_idx * mp_size + mp_idx}"
            draw_box(ax, (mp_idx + 0.16, dp_idx + 0.2), 0.68, 0.6, rank_color(mp_idx), rank)
        _outline(ax, 0.06, dp_idx + 0.1, mp_size - 0.12, 0.8, color(TP))
        ax.text(-0.08, dp_idx + 0.5, f"dp_idx {dp_idx}", ha="right", va="center")
    for mp_idx in range(mp_size):
        _outline(ax, mp_idx + 0.1, 0.02, 0.8, dp_size - 0.04, color(DP))
        ax.text(mp_idx + 0.5, -0.1, f"mp_idx {mp_idx}", ha="center", va="bottom")
    ax.text(mp_size + 0.12, 0.5, "mp_comm: one model,\nthe same data", color=color(TP), va="center")
    ax.text(mp_size / 2, dp_size + 0.12, "dp_comm: the same part of the model, different data",
            color=color(DP), ha="center", va="top")  # fmt: skip
    ax.set(xlim=(-0.9, mp_size + 1.5), ylim=(dp_size + 0.45, -0.45))
    ax.axis("off")
    return fig


def _outline(ax, x: float, y: float, width: float, height: float, color: str) -> None:
    look = {"boxstyle": "round,pad=0,rounding_size=0.08", "fill": False, "edgecolor": color, "linewidth": 1.6}
    ax.add_patch(FancyBboxPatch((x, y), width, height, **look))


def draw_slices(ranks: int):
    """Draw attention's four weight matrices with each rank's part: columns of q, k and v, rows of o."""
    fig, axes = figures.new("q, k and v are split by columns, o by rows", 7.6, 2.9, ncols=4)
    for ax, name in zip(axes, ("fc_q", "fc_k", "fc_v", "fc_o"), strict=True):
        for rank in range(ranks):
            start, part = rank / ranks, 1 / ranks
            corner, size = ((0, start), (1, part)) if name == "fc_o" else ((start, 0), (part, 1))
            draw_box(ax, corner, *size, rank_color(rank), str(rank), edge=color("edge"))
        ax.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[], xlabel="output", aspect="equal")
        ax.text(0.5, -0.04, name, ha="center", va="bottom")
        for spine in ax.spines.values():
            spine.set_visible(False)
    axes[0].set_ylabel("input")
    figures.write_below(fig, "Color and number: the rank that holds this part of the weight.")
    return fig


def draw_samples(owners, mp_size: int):
    """Draw the samples that each rank sees. owners: a list of samples per rank."""
    n = 1 + max(max(samples) for samples in owners)
    fig, ax = figures.new("The ranks of one model see the same samples", 7.2, 0.42 * len(owners) + 1.3)
    for rank, samples in enumerate(owners):
        for sample in samples:
            draw_box(ax, (sample + 0.04, rank - 0.4), 0.92, 0.8, rank_color(rank % mp_size))
    ax.set(xlim=(0, n), ylim=(len(owners) - 0.5, -0.5), xlabel="sample")
    ax.set_yticks(range(len(owners)), [f"rank {rank}" for rank in range(len(owners))])
    ax.set_xticks([i + 0.5 for i in range(n)], range(n))
    ax.grid(False)
    return fig


def draw_layouts(layouts, nodes: int = 2, ranks_per_node: int = 4):
    """Draw where each layout puts the copies of the model, with a panel per (dp, tp, placement) and a box per node.

    Ranks of one color hold one copy; the letter names the part that a rank holds.
    """
    columns = min(len(layouts), 3)
    rows = -(-len(layouts) // columns)
    crossing = [_between_nodes(*layout, ranks_per_node) for layout in layouts]
    counts = [sum(what in names for names in crossing) for what in ("activations", "gradients")]
    fig, axes = figures.new(
        f"Activations cross nodes in {counts[0]} of {len(layouts)} layouts, gradients in {counts[1]}",
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
            _outline(ax, left, 0, ranks_per_node, 1, INK)
            for i in range(ranks_per_node):
                place = place_of[node * ranks_per_node + i]
                box, letter = (left + i + 0.12, 0.14), "ABCDEFGH"[place["tp"]]
                draw_box(ax, box, 0.76, 0.72, rank_color(place["dp"]), letter, size=9)
        name = f"{dp} × {tp} {where}" if dp > 1 and tp > 1 else f"{dp} × {tp}"
        ax.set_title(f"{name}: {' and '.join(names) or 'nothing'}", fontsize=9, loc="left")
        ax.set(xlim=(-0.1, nodes * (ranks_per_node + 0.5)), ylim=(-0.1, 1.1))
    figures.write_below(
        fig, "One color: one copy of the model. After each layout (dp × tp): the data that crosses between nodes."
    )
    return fig


def _between_nodes(dp: int, tp: int, where: str, ranks_per_node: int) -> list[str]:
    """Name the data that travels between nodes: activations, gradients, or both."""
    nodes = nodes_of_groups(dp, tp, where, ranks_per_node)
    return [name for name, axis in (("activations", "tp"), ("gradients", "dp")) if nodes[axis] > 1]


def draw_losses(curves: dict):
    """Draw loss curves that should coincide. curves: name → its loss at every step."""
    fig, ax = figures.new("Every layout follows the same loss curve", height=3.4)
    styles = ((5, "-", ""), (1.6, "--", ""), (0, "", "o"))
    for number, ((name, losses), (width, line, marker)) in enumerate(zip(curves.items(), styles, strict=False)):
        look = {"color": color(number), "linewidth": width, "linestyle": line, "marker": marker, "label": name}
        ax.plot(range(1, len(losses) + 1), losses, **look)
    ax.set(xlabel="step", ylabel="loss (nats per token)")
    ax.legend()
    return fig


def draw_step(ranks, overlap: bool):
    """Draw one training step with one row per rank and its collectives in color. ranks: a `Spans` per rank."""
    waiting = sum(stop - start for spans in ranks for start, stop in spans.tp + spans.dp)
    share = waiting / sum(spans.phases[-1] for spans in ranks)
    title = f"Gradients {'during' if overlap else 'after'} backward: {share:.0%} of time in collectives"
    fig, ax = figures.new(title, 8.4, 0.6 * len(ranks) + 1.7)
    rows = {}
    for rank, spans in enumerate(ranks):
        begins = [0.0, *spans.phases[:-1]]
        phases = [
            Span(*phase) for phase in zip(begins, spans.phases, PHASES, ("forward", "backward", "average"), strict=True)
        ]
        collectives = [(spans.tp, color(TP)), (spans.dp, color(DP))]
        rows[f"rank {rank}"] = [phases, [Span(*span, shade) for some, shade in collectives for span in some]]
    draw_lanes(ax, rows, xlabel="ms")
    figures.legend_below(fig, {"activations (tp)": TP, "gradients (dp)": DP})
    return fig
