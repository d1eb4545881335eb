"""Draw each collective before and after: one row per rank, one cell per chunk, colored by the rank it came from."""

from __future__ import annotations

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import bare, draw_arrow, draw_box
from labs_helpers.draw.roles import INK, PAPER, RULE, color, rank_color

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def before_and_after(name: str, size: int = 4) -> tuple[list[list[str]], list[list[str]]]:
    """Return what each rank holds before and after a collective: one row per rank, one cell per chunk.

    'B2' is chunk 2 of rank 1's input, 'Σ2' the sum of all ranks' chunk 2, '' nothing of interest. Rank 0 is the root.
    Raises ValueError for a name that is not in COLLECTIVES.
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
    """Draw each collective before and after, one row per rank and one cell per chunk, colored by the rank it came from.

    names: of COLLECTIVES, drawn one below the other; two in a row if there are more than one. size: the number of
    ranks.
    """
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    shape = {"nrows": rows, "ncols": columns, "squeeze": False}
    fig, axes = figures.new(None, 5.2 * columns, (1.1 + 0.45 * size) * rows, **shape)
    for ax in axes.flat[len(names) :]:
        ax.remove()
    for ax, name in zip(axes.flat, names, strict=False):
        for left, when, table in zip((0, size + 1.5), ("before", "after"), before_and_after(name, size), strict=True):
            _draw_cells(ax, table, left)
            ax.text(left + size / 2, size + 0.1, when, ha="center", va="top", fontsize=9, style="italic")
        draw_arrow(ax, (size + 0.3, size / 2), (size + 1.2, size / 2), INK)
        ax.set(xlim=(-0.1, 2 * size + 1.6), ylim=(size + 0.5, -0.1), xticks=[])
        ax.set_title(_TITLES.get(name, name))
        ax.set_yticks([rank + 0.5 for rank in range(size)], [f"rank {rank}" for rank in range(size)])
        bare(ax)
    return fig


def _draw_cells(ax, table: list[list[str]], left: float) -> None:
    for rank, row in enumerate(table):
        for chunk, text in enumerate(row):
            ground = color("cell") if text.startswith("Σ") else PAPER
            if text and text[0] in LETTERS:
                ground = rank_color(LETTERS.index(text[0]))
            edge = INK if text else RULE
            corner = left + chunk, rank + 0.06
            draw_box(ax, corner, 0.94, 0.88, ground, text, edge=edge, size=9, ink=color("text"), linewidth=0.8)
