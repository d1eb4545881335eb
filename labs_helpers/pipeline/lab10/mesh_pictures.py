"""Draw the ranks of a mesh on their nodes, and the bytes that leave a node for each order of the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.bars import draw_bars
from labs_helpers.draw.boxes import draw_box
from labs_helpers.draw.roles import color, rank_color

Groups = Mapping[str, Sequence[Sequence[int]]]


def draw_mesh(groups: Groups, gpus_per_node: int) -> Figure:
    """Draw one row per node with a box per rank, in the color of its stage; the text gives its other coordinates.

    groups: by axis, among them "pp", each a list of groups of ranks.
    """
    place = {
        axis: {rank: i for group in some for i, rank in enumerate(group)} for axis, some in groups.items()
    }  # axis → rank → its coordinate
    ranks, stages = len(place["pp"]), len(groups["pp"][0])
    nodes = -(-ranks // gpus_per_node)
    fig, ax = figures.new(_title(groups, gpus_per_node), 8.4, 0.55 * nodes + 1.3)
    for rank in range(ranks):
        node, gpu = divmod(rank, gpus_per_node)
        others = "\n".join(f"{axis} {place[axis][rank]}" for axis in groups if axis != "pp")
        draw_box(ax, (gpu + 0.03, node - 0.42), 0.94, 0.84, rank_color(place["pp"][rank]), others, size=6.5)
    ax.set(xlim=(0, gpus_per_node), ylim=(nodes - 0.5, -0.5), xlabel="GPU of the node")
    ax.set_xticks([gpu + 0.5 for gpu in range(gpus_per_node)], range(gpus_per_node))
    ax.set_yticks(range(nodes), [f"node {node}" for node in range(nodes)])
    ax.grid(False)
    figures.legend_below(fig, {f"stage {stage}": rank_color(stage) for stage in range(stages)})
    return fig


def _title(groups: Groups, gpus_per_node: int) -> str:
    inside = [
        axis for axis, some in groups.items()
        if all(len({rank // gpus_per_node for rank in group}) == 1 for group in some)
    ]  # fmt: skip
    return f"Every group along {' and '.join(inside)} stays inside a node" if inside else "Every axis crosses nodes"


def draw_crossing(totals: Mapping[str, float], prediction=None) -> Figure:
    """Draw the bytes per step that leave a node, one bar per order of the axes.

    totals: by order. prediction: of the largest total over the smallest one.
    """
    least, most = min(totals.values()), max(totals.values())
    title = f"The worst order sends {most / least:.0f} times as much between nodes"
    fig, ax = figures.new(title, 7.2, 0.3 * len(totals) + 1.4)
    texts = {order: f"{1e-9 * total:.1f} GB" for order, total in totals.items()}
    guess = figures.predicted(prediction)
    room = 1.15 * max(1.0, (guess or 0) * least / most)
    draw_bars(ax, totals, "communication", texts, xlabel="sent per step to another node", unit="B", room=room)
    if guess is not None:
        ax.axvline(least * guess, color=color("limit"), linestyle="--")
        figures.write_below(fig, "dashed: your prediction for the worst order")
    return fig
