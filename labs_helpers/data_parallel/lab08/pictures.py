"""The drawings of lab 08: four ways to send gradients as bars on a time axis, and what is in which bucket."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.patches import Patch

from labs_helpers.draw import figures

COMPUTE, SENDING = figures.COLORS["sky"], figures.COLORS["vermillion"]


def draw_ways(layers: int, compute: float, alpha: float, beta: float, bucket: int):
    """Backward and the messages of four ways, worked out for equal layers. compute: ms of a layer's backward; a message
    of n layers' gradients takes alpha + n · beta ms; bucket: layers in a bucket."""
    ready = [compute * (i + 1) for i in range(layers)]
    groups = {
        "naive": [([i], ready[-1]) for i in range(layers)],
        "flat": [(list(range(layers)), ready[-1])],
        "overlapped": [([i], ready[i]) for i in range(layers)],
        "bucketed": [
            (some := list(range(first, min(first + bucket, layers))), ready[some[-1]])
            for first in range(0, layers, bucket)
        ],
    }
    ends = {}
    fig, ax = figures.new(None, 8.2, 3.6)
    for row, (name, messages) in enumerate(groups.items()):
        ax.broken_barh(
            [(compute * i, compute) for i in range(layers)], (row - 0.36, 0.34), color=COMPUTE, edgecolor="white"
        )
        free = 0.0
        for some, earliest in messages:
            start, length = max(free, earliest), alpha + beta * len(some)
            ax.broken_barh([(start, length)], (row + 0.02, 0.34), color=SENDING, edgecolor="white")
            free = start + length
        ends[name] = free
        ax.text(free + 0.1, row + 0.19, f"{free:.3g} ms", va="center")
    told = ", ".join(f"{name} {end:.3g}" for name, end in ends.items())
    ax.set_title(f"{layers} layers, a message of n gradients takes {alpha:g} + {beta:g} n ms\n{told} ms")
    ax.set(xlabel="ms", yticks=range(len(groups)), yticklabels=list(groups), ylim=(len(groups) - 0.4, -0.6))
    ax.set_xlim(0, 1.12 * max(ends.values()))
    ax.grid(False, axis="y")
    patches = [Patch(color=COMPUTE, label="backward, layer by layer"), Patch(color=SENDING, label="all-reduce")]
    fig.legend(handles=patches, loc="outside lower left", ncols=2)
    return fig


def draw_buckets(names: dict, buckets: Sequence):
    """A bar per bucket, in the order in which they are sent, of its parameters' bytes. names: id(parameter) → name."""
    fig, ax = figures.new(
        f"{sum(map(len, buckets))} gradients in {len(buckets)} messages", 8.2, 0.5 * len(buckets) + 1.6
    )
    longest = max(sum(p.nbytes for p in bucket) for bucket in buckets)
    shades = (figures.COLORS["sky"], figures.COLORS["orange"])
    for row, bucket in enumerate(buckets):
        left = 0
        for i, p in enumerate(bucket):
            ax.barh(row, p.nbytes, left=left, color=shades[i % 2], edgecolor="white")
            name = names[id(p)]
            if p.nbytes > 0.011 * len(name) * longest:
                ax.text(left + p.nbytes / 2, row, name, ha="center", va="center", fontsize=8)
            left += p.nbytes
    ax.set(xlabel="bytes", yticks=range(len(buckets)), ylim=(len(buckets) - 0.5, -0.5))
    ax.set_yticklabels([f"bucket {i}" for i in range(len(buckets))])
    figures.set_unit(ax.xaxis, "B")
    ax.grid(False, axis="y")
    return fig
