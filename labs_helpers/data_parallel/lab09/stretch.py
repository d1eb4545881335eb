"""Stretch of lab 09: schedules of ZeRO-3's gathers, and their effect on step time and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from labs_helpers.draw import figures
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color

Entries = Sequence[tuple[str, int]]
COMPUTE, LINK = ("forward", "backward"), ("gather", "reduce")


class Ran(NamedTuple):
    """A simulated step: (what, block, begin, end) of each piece of work, the end, and the most blocks ever whole."""

    work: list[tuple[str, int, float, float]]
    end: float
    most: int


def play(entries: Entries, blocks: int, times: dict[str, float], most: int) -> Ran:
    """Simulate one step whose work is issued in the order of `entries`.

    Compute ('forward', 'backward') runs on one stream and the link ('gather', 'reduce') on another, each in order.
    Work begins once its inputs exist: a block needs its weights, a reduce its backward, and a gather free memory, which
    a 'free' returns when its block has computed. times: the duration of each kind of work. Raise ValueError with an
    explanation if a block computes without weights, more than `most` blocks are whole, or something is missing.
    """
    stream, whole, used, room, work, fullest = {True: 0.0, False: 0.0}, {}, {}, 0.0, [], 0
    for what, block in entries:
        if what == "free":
            if block not in whole:
                raise ValueError(f"free {block}: this block is not whole")
            room = max(room, used.get(block, whole[block]), whole.pop(block))
            continue
        if what not in COMPUTE + LINK:
            raise ValueError(f"{what!r} is not one of gather, forward, backward, reduce, free")
        if what == "gather" and (block in whole or len(whole) >= most):
            raise ValueError(f"gather {block}: this block is already whole, or {most} others are")
        if what in ("forward", "backward") and block not in whole:
            raise ValueError(f"{what} {block}: its weights have not been gathered")
        done = {(name, number): end for name, number, _, end in work}
        if what == "reduce" and ("backward", block) not in done:
            raise ValueError(f"reduce {block}: its gradients do not exist yet")
        needs = {"gather": room, "reduce": done.get(("backward", block), 0.0)}.get(what, whole.get(block, 0.0))
        begin = max(stream[what in LINK], needs)
        end = stream[what in LINK] = begin + times[what]
        work.append((what, block, begin, end))
        if what == "gather":
            whole[block] = end
            fullest = max(fullest, len(whole))
        else:
            used[block] = end
    _expect_all(work, blocks)
    return Ran(work, max(stream.values()), fullest)


def _expect_all(work: list, blocks: int) -> None:
    order = [(what, block) for what, block, *_ in work if what not in LINK]
    right = [("forward", b) for b in range(blocks)] + [("backward", b) for b in reversed(range(blocks))]
    if order != right:
        raise ValueError("run every block forward once, first to last, and backward once, last to first")
    if sorted(block for what, block, *_ in work if what == "reduce") != list(range(blocks)):
        raise ValueError("reduce the gradients of every block exactly once")


def just_in_time(blocks: int) -> list[tuple[str, int]]:
    """Return exercise 7's schedule, which gathers each block when it is needed."""
    there = [(what, b) for b in range(blocks) for what in ("gather", "forward", "free")]
    return there + [(what, b) for b in reversed(range(blocks)) for what in ("gather", "backward", "free", "reduce")]


def one_ahead(blocks: int) -> list[tuple[str, int]]:
    """Return a schedule that gathers the next block while one computes; the last stays for its backward pass."""
    entries = [("gather", 0)]
    for b in range(blocks):
        entries += [("gather", b + 1)] * (b + 1 < blocks) + [("forward", b)] + [("free", b)] * (b + 1 < blocks)
    for b in reversed(range(blocks)):  # issue the gather before the reduce, which has to wait for backward
        entries += [("gather", b - 1)] * (b > 0) + [("backward", b), ("free", b), ("reduce", b)]
    return entries


def draw_schedules(own: Callable, blocks: int, forward: float, gather: float, most: int):
    """Draw two lanes per schedule, compute above the link: just in time, ours, and own(blocks) unless it returns None.

    forward, gather: ms per block. A backward pass takes twice its forward, a reduce-scatter as long as a gather.
    """
    times = {"forward": forward, "backward": 2 * forward, "gather": gather, "reduce": gather}
    schedules = {"just in time": just_in_time(blocks), "ours": one_ahead(blocks)}
    if (yours := own(blocks)) is not None:
        schedules["yours"] = list(yours)
    ran = {name: play(entries, blocks, times, most) for name, entries in schedules.items()}
    title = ", ".join(f"{name}: {one.end:.3g} ms" for name, one in ran.items())
    fig, ax = figures.new(title, 8.6, 2.0 + 0.7 * len(ran))
    whole = ", ".join(f"{name} {one.most}" for name, one in ran.items())
    setting = f"{blocks} blocks, forward {forward:g} ms, gather {gather:g} ms"
    rows = {
        name: [
            [Span(begin, end, color(what), str(block)) for what, block, begin, end in one.work if what in lane]
            for lane in (COMPUTE, LINK)
        ]
        for name, one in ran.items()
    }
    draw_lanes(ax, rows, {name: one.end for name, one in ran.items()}, xlabel="ms")
    figures.legend_below(fig, {what: what for what in COMPUTE + LINK})
    figures.write_below(fig, f"{setting}; blocks whole at most: {whole}")
    return fig
