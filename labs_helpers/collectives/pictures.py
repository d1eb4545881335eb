"""The drawings of messages: a practice run as a space–time diagram, and each collective before and after."""

from __future__ import annotations

from labs_helpers.draw import figures
from labs_helpers.practice.schedule import Message, Practice

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Light enough for the black of a cell's text; two more than the palette has.
_RANK_COLORS = [*(figures.COLORS[name] for name in ("sky", "orange", "green", "purple", "yellow", "vermillion")),
                "#BBBBBB", "#B5D99C"]  # fmt: skip
_SUM_COLOR = "#FFFFFF"


def draw_messages(practice: Practice, title: str | None = None):
    """Space–time diagram of a practice run: a rank a row, logical steps from left to right, an arrow a message.

    An arrow goes from where the message left to where it was received and bears its bytes, where they differ and
    there is room. A thick line is time in which a rank sends or receives; dots lead from where a sender began to
    wait; a dashed arrow is a message that nobody received. Give it the `.practice` of a Deadlock as well.
    """
    lost = practice.unreceived
    steps = max([practice.steps, *practice.barriers, *(m.posted + 1 for m in lost), 1])
    width, height = min(max(5.2, 3 + 0.9 * steps), 10), 1.3 + 0.55 * practice.size
    fig, ax = figures.new(title or _title(practice), width, height)
    for rank in range(practice.size):
        ax.axhline(rank, color=figures.RULE, linewidth=1.5, zorder=1)
    for time in practice.barriers:
        ax.axvline(time, color="gray", linestyle=":", linewidth=1.5, zorder=1)
    for message in practice.messages:
        _busy(ax, message)
        _arrow(ax, message.send_time, message.recv_time, message, figures.COLORS["blue"])
    for message in lost:
        start = message.posted if message.send_time is None else message.send_time
        _arrow(ax, start, start + 1, message, figures.COLORS["vermillion"], linestyle="--")
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
    for rank in {message.source, message.dest}:
        ax.plot(
            [message.send_time, message.recv_time],
            [rank, rank],
            color=figures.COLORS["sky"],
            linewidth=5,
            marker="",
            solid_capstyle="butt",
            zorder=2,
        )
    if message.posted < message.send_time:
        ax.plot(
            [message.posted, message.send_time],
            [message.source] * 2,
            color=figures.INK,
            linewidth=2,
            marker="",
            linestyle=":",
            zorder=3,
        )


def _arrow(ax, start: float, stop: float, message: Message, color: str, linestyle: str = "-") -> None:
    bend = "arc3,rad=-0.6" if message.source == message.dest else "arc3"
    ax.annotate(
        "",
        (stop, message.dest),
        xytext=(start, message.source),
        zorder=4,
        arrowprops={
            "arrowstyle": "-|>",
            "color": color,
            "linestyle": linestyle,
            "linewidth": 1.5,
            "connectionstyle": bend,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def _label(ax, message: Message) -> None:
    """The bytes, just off the sender's row: there no two arrows of one step meet."""
    share = 0.3 / max(abs(message.dest - message.source), 1)
    x = message.send_time + (message.recv_time - message.send_time) * share
    y = message.source + (message.dest - message.source) * share
    ax.text(
        x,
        y,
        f"{message.nbytes:,}",
        ha="center",
        va="center",
        fontsize=8,
        zorder=5,
        bbox={"facecolor": figures.PAPER, "edgecolor": "none", "pad": 1},
    )


def before_and_after(name: str, size: int = 4) -> tuple[list[list[str]], list[list[str]]]:
    """What each rank holds before and after a collective: a row a rank, a cell a chunk.

    'B2' is chunk 2 of what rank 1 brought, 'Σ2' the sum of all ranks' chunk 2, '' nothing of interest. Rank 0 is
    the root. Raises ValueError for another name than those of COLLECTIVES.
    """
    if name not in COLLECTIVES:
        raise ValueError(f"no collective {name!r}; there are {', '.join(COLLECTIVES)}")
    if not 1 <= size <= len(LETTERS):
        raise ValueError(f"size must be 1 to {len(LETTERS)} ranks, not {size!r}")
    own = [[f"{LETTERS[rank]}{chunk}" for chunk in range(size)] for rank in range(size)]
    return COLLECTIVES[name](size, own)


def _rows(size: int, cell) -> list[list[str]]:
    return [[cell(rank, chunk) for chunk in range(size)] for rank in range(size)]


COLLECTIVES = {
    "broadcast": lambda n, own: (_rows(n, lambda r, c: own[0][c] if r == 0 else ""), _rows(n, lambda r, c: own[0][c])),
    "scatter": lambda n, own: (_rows(n, lambda r, c: own[0][c] if r == 0 else ""),
                               _rows(n, lambda r, c: own[0][c] if r == c else "")),
    "gather": lambda n, own: (_rows(n, lambda r, c: own[r][c] if r == c else ""),
                              _rows(n, lambda r, c: own[c][c] if r == 0 else "")),
    "reduce": lambda n, own: (own, _rows(n, lambda r, c: f"Σ{c}" if r == 0 else "")),
    "allreduce": lambda n, own: (own, _rows(n, lambda r, c: f"Σ{c}")),
    "reduce_scatter": lambda n, own: (own, _rows(n, lambda r, c: f"Σ{c}" if r == c else "")),
    "allgather": lambda n, own: (_rows(n, lambda r, c: own[r][c] if r == c else ""), _rows(n, lambda r, c: own[c][c])),
    "alltoall": lambda n, own: (own, _rows(n, lambda r, c: own[c][r])),
}  # fmt: skip
_TITLES = {"allreduce": "all-reduce", "reduce_scatter": "reduce-scatter", "allgather": "all-gather",
           "alltoall": "all-to-all"}  # fmt: skip


def draw_collective(*names: str, size: int = 4):
    """Each collective before and after, a rank a row and a chunk a cell, coloured by the rank that brought it.

    names: of COLLECTIVES, drawn one below the other, two in a row when there are more than one. size: ranks.
    """
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    fig, axes = figures.new(
        None, width=5.2 * columns, height=(1.1 + 0.45 * size) * rows, nrows=rows, ncols=columns, squeeze=False
    )
    for ax in axes.flat[len(names) :]:
        ax.remove()
    for ax, name in zip(axes.flat, names, strict=False):
        before, after = before_and_after(name, size)
        _cells(ax, before, 0)
        _cells(ax, after, size + 1.5)
        ax.annotate(
            "",
            (size + 1.2, size / 2),
            xytext=(size + 0.3, size / 2),
            arrowprops={"arrowstyle": "-|>", "color": figures.INK, "linewidth": 1.5},
        )
        ax.set(xlim=(-0.1, 2 * size + 1.6), ylim=(size + 0.5, -0.1), xticks=[])
        for left, text in ((0, "before"), (size + 1.5, "after")):
            ax.text(left + size / 2, size + 0.1, text, ha="center", va="top", fontsize=9, style="italic")
        ax.set_title(_TITLES.get(name, name))
        ax.set_yticks([rank + 0.5 for rank in range(size)], [f"rank {rank}" for rank in range(size)])
        ax.tick_params(length=0)
        ax.grid(False)
        ax.spines[:].set_visible(False)
    return fig


def _cells(ax, table: list[list[str]], left: float) -> None:
    from matplotlib.patches import Rectangle

    for rank, row in enumerate(table):
        for chunk, text in enumerate(row):
            color = _SUM_COLOR if text.startswith("Σ") else figures.PAPER
            if text and text[0] in LETTERS:
                color = _RANK_COLORS[LETTERS.index(text[0]) % len(_RANK_COLORS)]
            ax.add_patch(
                Rectangle(
                    (left + chunk, rank + 0.06),
                    0.94,
                    0.88,
                    facecolor=color,
                    edgecolor=figures.INK if text else figures.RULE,
                    linewidth=0.8,
                )
            )
            ax.text(left + chunk + 0.47, rank + 0.5, text, ha="center", va="center", fontsize=9, color="black")
