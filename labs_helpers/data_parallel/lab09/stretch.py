"""The stretch of lab 09: when each block of ZeRO-3 is gathered, and what that does to a step and to memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from labs_helpers.draw import figures
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color

Entries = Sequence[tuple[str, int]]
COMPUTE, LINK = ("forward", "backward"), ("gather", "reduce")


class Ran(NamedTuple):
    """A step that was played: (what, block, begin, end) of each piece of work; its end; blocks whole at most."""

    work: list[tuple[str, int, float, float]]
    end: float
    most: int


def play(entries: Entries, blocks: int, times: dict[str, float], most: int) -> Ran:
    """One step as its entries are issued. Compute ('forward', 'backward') runs on one stream, the link ('gather',
    'reduce') on another, each in the order of the entries, and work begins when all that it needs is there: a block
    its weights, a reduce its backward, and a gather memory, which a 'free' gives back when the block has computed.

    times: of each kind of work. ValueError in words where a block computes without weights, more than `most` blocks
    are whole, or something is missing.
    """
    stream, whole, used, room, work, fullest = {True: 0.0, False: 0.0}, {}, {}, 0.0, [], 0
    for what, block in entries:
        if what == "free":
            if block not in whole:
                raise ValueError(f"free {block}: it is not whole")
            room = max(room, used.get(block, whole[block]), whole.pop(block))
            continue
        if what not in COMPUTE + LINK:
            raise ValueError(f"{what!r} is none of gather, forward, backward, reduce, free")
        if what == "gather" and (block in whole or len(whole) >= most):
            raise ValueError(f"gather {block}: it is whole already, or {most} others are")
        if what in ("forward", "backward") and block not in whole:
            raise ValueError(f"{what} {block}: its weights are not there")
        done = {(name, number): end for name, number, _, end in work}
        if what == "reduce" and ("backward", block) not in done:
            raise ValueError(f"reduce {block}: it has no gradients yet")
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
        raise ValueError("every block computes once forward, first to last, and once backward, last to first")
    if sorted(block for what, block, *_ in work if what == "reduce") != list(range(blocks)):
        raise ValueError("the gradients of every block are reduced once")


def just_in_time(blocks: int) -> list[tuple[str, int]]:
    """As exercise 7 does: a block is gathered when it is needed."""
    there = [(what, b) for b in range(blocks) for what in ("gather", "forward", "free")]
    return there + [(what, b) for b in reversed(range(blocks)) for what in ("gather", "backward", "free", "reduce")]


def one_ahead(blocks: int) -> list[tuple[str, int]]:
    """While a block computes the next one is gathered; the last one stays for its backward pass."""
    entries = [("gather", 0)]
    for b in range(blocks):
        entries += [("gather", b + 1)] * (b + 1 < blocks) + [("forward", b)] + [("free", b)] * (b + 1 < blocks)
    for b in reversed(range(blocks)):  # the gather before the reduce, which has to wait for backward
        entries += [("gather", b - 1)] * (b > 0) + [("backward", b), ("free", b), ("reduce", b)]
    return entries


def draw_schedules(own: Callable, blocks: int, forward: float, gather: float, most: int):
    """Two lanes per schedule: compute above, the link below. Just in time, ours, and own(blocks), unless it returns
    None. forward, gather: ms of a block; a backward pass takes twice its forward, a reduce-scatter as long as a gather.
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
