"""The figures of lab 13; its curve of latencies is `serving.charts.draw_latency`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import draw_box
from labs_helpers.draw.curves import level, tick_each
from labs_helpers.draw.roles import color, marker, rank_color

Spans = Mapping[int, tuple[int, int]]


def draw_intensity(batches: Sequence[int], curves: Mapping[str, Sequence[float]], ridge: float, machine: str):
    """Plot the FLOPs per byte of decoding steps against the batch, below the ridge, above which FLOPs take longest."""
    last = list(curves.values())[0][-1]
    fig, ax = figures.new(f"Decoding stays below the ridge: {last:.0f} of {ridge:.0f} FLOPs per byte")
    for number, (name, values) in enumerate(curves.items()):
        ax.plot(batches, values, label=name, color=color(number), marker=marker(number))
    level(ax, ridge, f"ridge, {machine}")
    tick_each(ax, batches, base=2, xlabel="sequences per step")
    ax.set(yscale="log", ylabel="FLOPs per byte")
    figures.label_lines(ax)
    return fig


def draw_tables(tables: Mapping[str, Sequence[int]], references: Sequence[int]):
    """Draw the cache's blocks, and below them each request's table."""
    fig, ax = figures.new("Any free block serves any request", height=0.9 + 0.55 * (1 + len(tables)))
    colors = {name: rank_color(i) for i, name in enumerate(tables)}
    for block in range(len(references)):
        owner = next((name for name, table in tables.items() if block in table), None)
        draw_box(ax, (block, 0), 1, 0.8, colors.get(owner, color("skipped tile")), str(block), edge=color("edge"))
    for y, (name, table) in enumerate(tables.items(), start=1):
        for x, block in enumerate(table):
            draw_box(ax, (x, y), 1, 0.8, colors[name], str(block), edge=color("edge"))
    names = ["cache", *(f"table of {name}" for name in tables)]
    ax.set(xlim=(0, len(references)), ylim=(len(names), -0.1), xticks=[])
    ax.set_yticks(np.arange(len(names)) + 0.4, names)
    ax.grid(False)
    return fig


def draw_occupancy(uses: Mapping[str, Sequence[tuple[int, int]]], positions: int):
    """Plot the share of the cache that is held, and the share that is filled, against the step, one panel per way."""
    shares = [sum(filled for filled, _ in use) / sum(held for _, held in use) for use in uses.values()]
    title = f"Blocks waste {1 - shares[1]:.0%} of what is held, reserving {1 - shares[0]:.0%}"
    fig, axes = figures.panels(title, uses, 9, 3.4, sharey=True)
    for ax, use in zip(axes, uses.values(), strict=True):
        steps, (filled, held) = range(len(use)), zip(*use, strict=True)
        ax.fill_between(steps, np.divide(held, positions), color=color("waiting"), label="held", step="post")
        ax.fill_between(steps, np.divide(filled, positions), color=color("ours"), label="filled", step="post")
        ax.set(xlabel="step", ylim=(0, 1), xlim=(0, max(map(len, uses.values()))))
    axes[0].set_ylabel("share of the cache")
    figures.legend_below(fig)
    return fig


def draw_timeline(runs: Mapping[str, Spans]):
    """Draw in which steps each request runs, one panel per policy. runs: policy → request → (first step, end)."""
    ends = [max(end for _, end in spans.values()) for spans in runs.values()]
    title = f"In-flight batching needs {ends[1]} steps instead of {ends[0]}"
    fig, axes = figures.panels(title, runs, 9, 3.6, sharey=True)
    for ax, spans, end in zip(axes, runs.values(), ends, strict=True):
        for request, (start, stop) in spans.items():
            ax.barh(request, stop - start, left=start, height=0.7, color=rank_color(request))
        ax.axvline(end, color=color("limit"), linestyle="--", linewidth=1.2)
        ax.set(xlabel="step", xlim=(0, max(ends) + 1), yticks=list(spans), ylim=(len(spans) - 0.5, -0.5))
    axes[0].set_ylabel("request")
    return fig


def draw_chunks(passes: Mapping[str, Sequence[tuple[int, int]]]):
    """Draw the tokens of each pass. passes: name → (tokens that decode, tokens of prompts) per pass."""
    longest = [max(map(sum, each)) for each in passes.values()]
    title = f"Chunks shorten the longest pass from {longest[0]:,} to {longest[1]:,} tokens"
    fig, axes = figures.panels(title, passes, 9, 3.2, sharey=True)
    for ax, each in zip(axes, passes.values(), strict=True):
        decoding, prompts = zip(*each, strict=True)
        ax.bar(range(len(each)), decoding, color=color("ours"), label="decoding")
        ax.bar(range(len(each)), prompts, bottom=decoding, color=color("yours"), label="prompts")
        ax.set(xlabel="pass", xlim=(-0.7, max(map(len, passes.values())) - 0.3))
    axes[0].set_ylabel("tokens")
    figures.legend_below(fig)
    return fig


def draw_shares(counts: Mapping[str, Sequence[float]], right: Sequence[float]):
    """Plot how often each token came first, beside the target's distribution. counts: way → share of each token."""
    off = {name: 100 * float(np.abs(np.subtract(shares, right)).max()) for name, shares in counts.items()}
    worst = max(off, key=lambda name: off[name])
    fig, ax = figures.new(f"'{worst}' is off by up to {off[worst]:.0f} points")
    tokens, width = np.arange(len(right)), 0.8 / (1 + len(counts))
    for number, (name, shares) in enumerate({"target": right, **counts}.items()):
        ax.bar(tokens + (number - len(counts) / 2) * width, shares, width, color=color(number), label=name)
    ax.set(xticks=tokens, xlabel="token", ylabel="share of the steps")
    figures.legend_below(fig)
    return fig


def draw_speculation(predicted: Mapping[int, float], measured: Mapping[int, float], draft: str):
    """Plot predicted and measured speed-ups against the number of proposals."""
    best = max((k for k in measured if k), key=lambda k: measured[k])
    gain = f"{measured[best]:.2f} times as fast with k = {best}"
    fig, ax = figures.new(f"Speculation {'gains' if measured[best] > 1 else 'loses'} here: at best {gain}")
    for name, role, found in (("predicted", "formula", predicted), ("measured", "ours", measured)):
        ax.plot(list(found), list(found.values()), color=color(role), marker=marker(role), label=name)
    level(ax, 1.0, "without speculation", right=True)
    ax.set(xlabel="proposals per step, k", ylabel="speed-up", ylim=(0, None), xticks=list(predicted))
    figures.label_lines(ax)
    figures.write_below(fig, draft)
    return fig
