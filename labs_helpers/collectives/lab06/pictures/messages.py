"""Draw the messages of a practice run as a space–time diagram."""

from __future__ import annotations

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import draw_arrow
from labs_helpers.draw.roles import INK, PAPER, RULE, color
from labs_helpers.practice.schedule import Message, Practice


def draw_messages(practice: Practice, title: str | None = None):
    """Draw the space–time diagram of a practice run: one row per rank, logical steps from left to right, one arrow per
    message.

    An arrow goes from where the message left to where it was received, and shows its bytes if they differ and there is
    room. A thick line marks the time in which a rank sends or receives; dots mark a sender's waiting; a dashed arrow is
    a message that nobody received. You can also pass the `.practice` of a Deadlock.
    """
    lost = practice.unreceived
    steps = max([practice.steps, *practice.barriers, *(m.posted + 1 for m in lost), 1])
    width, height = min(max(5.2, 3 + 0.9 * steps), 10), 1.3 + 0.55 * practice.size
    fig, ax = figures.new(title or _title(practice), width, height)
    for rank in range(practice.size):
        ax.axhline(rank, color=RULE, linewidth=1.5, zorder=1)
    for time in practice.barriers:
        ax.axvline(time, color=color("aside"), linestyle=":", linewidth=1.5, zorder=1)
    for message in practice.messages:
        _busy(ax, message)
        _arrow(ax, message.send_time, message.recv_time, message, color("right"))
    for message in lost:
        start = message.posted if message.send_time is None else message.send_time
        _arrow(ax, start, start + 1, message, color("wrong"), linestyle="--")
    if len({m.nbytes for m in practice.messages + lost}) > 1 and len(practice.messages) <= 40:
        for message in practice.messages:
            _label(ax, message)
    ax.set(xlim=(-0.1, steps + 0.1), ylim=(practice.size - 0.5, -0.5), xlabel="logical step")
    ax.set_yticks(range(practice.size), [f"rank {rank}" for rank in range(practice.size)])
    ax.set_xticks(range(0, steps + 1, -(-steps // 16)))
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return fig


def _title(practice: Practice) -> str:
    sizes = {m.nbytes for m in practice.messages}
    count = len(practice.messages)
    each = f" of {sizes.pop():,} bytes" if len(sizes) == 1 else ""
    said = f"{count} message{'s' * (count != 1)}{each}, {practice.steps} step{'s' * (practice.steps != 1)}"
    return said + (f", {len(practice.unreceived)} never received" if practice.unreceived else "")


def _busy(ax, message: Message) -> None:
    begin, end = message.send_time, message.recv_time
    for rank in {message.source, message.dest}:
        ax.hlines(rank, begin, end, color=color("all"), linewidth=5, zorder=2)
    if message.posted < begin:
        ax.hlines(message.source, message.posted, begin, color=INK, linewidth=2, linestyle=":", zorder=3)


def _arrow(ax, start: float, stop: float, message: Message, color: str, linestyle: str = "-") -> None:
    bend = "arc3,rad=-0.6" if message.source == message.dest else "arc3"
    ends = (start, message.source), (stop, message.dest)
    draw_arrow(ax, *ends, color, linestyle=linestyle, connectionstyle=bend)


def _label(ax, message: Message) -> None:
    """Write the bytes just beside the sender's row, where no two arrows of one step meet."""
    share = 0.3 / max(abs(message.dest - message.source), 1)
    x = message.send_time + (message.recv_time - message.send_time) * share
    y = message.source + (message.dest - message.source) * share
    ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
    ax.text(x, y, f"{message.nbytes:,}", ha="center", va="center", fontsize=8, zorder=5, bbox=ground)
