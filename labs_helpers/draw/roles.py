"""Which colour and marker each role has: figures name 'ours', a floor or rank 3; only this room names colours."""

from __future__ import annotations

from matplotlib.colors import ListedColormap, to_rgba

Role = str | int

# Okabe and Ito, "Color Universal Design" (2008), in the order in which curves take them: yellow, the
# faintest on a light ground, comes last.
COLORS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "yellow": "#F0E442",
}
MARKERS = "osD^vPX*"  # each curve differs in its marker as well as in its colour
INK, PAPER, RULE = "#22252A", "#FAF9F6", "#D9D7D0"
_STONE, _SAND = "#B9B6AC", "#CFCBC0"

ROLES = {
    # candidates of a measurement
    "ours": "blue", "theirs": "vermillion", "yours": "orange", "naive": "purple", "reference": "sky",
    # what they are compared with
    "floor": _STONE, "formula": "black", "limit": "black", "result": "black", "aside": "gray",
    "measured": "blue", "right": "blue", "wrong": "vermillion", "claim": "yellow",
    # the parts of a GPU's memory
    "parameters": "blue", "gradients": "orange", "optimizer": "green", "buckets": "vermillion", "gathered": "sky",
    "activations": "purple",
    # what a rank or a GPU does over time
    "forward": "sky", "backward": "blue", "update": "green", "compute": "blue", "waiting": "yellow",
    "communication": "vermillion", "gather": "vermillion", "reduce": "orange", "launch": INK, "operator": _STONE,
    "stalled": "#EDB58F",
    # tensors, tiles and cells
    "one": "orange", "all": "sky", "whole tile": "blue", "masked tile": "orange", "skipped tile": RULE,
    "needless tile": "vermillion", "group of rows": "blue", "group of columns": "vermillion", "cell": "#FFFFFF",
    # the parts of a GPU, dark enough for white text
    "threads": "blue", "registers": "green", "arithmetic": "#8A4A72", "shared memory": "vermillion",
    "cache": "#5B6470", "DRAM": INK,
    # the figure itself
    "text": "black", "paper": PAPER, "edge": "#FFFFFF",
}  # fmt: skip
# Light enough for black text; two more than the palette has.
RANKS = [*(COLORS[name] for name in ("sky", "orange", "green", "purple", "yellow", "vermillion")), "#BBBBBB", "#B5D99C"]
SHADES = ("#E4E1D8", "#CFE0EA", "#F3DFC0", "#D2E8DC", "#EFDAE4", "#F6F0B8")  # of named ranges, as they first appear
PHASES = (_SAND, "#E4E1D8", "#F1EFE9")  # one after another, as a ground for what happens in them
_DARK = ("blue", "green", "vermillion", "black")


def color(role: Role) -> str:
    """The colour of a role, or of the n-th of a series whose members have no role; a colour is its own.

    KeyError for an unknown role.
    """
    if isinstance(role, int):
        return list(COLORS.values())[role % len(COLORS)]
    return role if role.startswith("#") else COLORS.get(ROLES[role], ROLES[role])


def marker(role: Role) -> str:
    """The marker of a role's curve: that of its colour in a series; 'o' for a role outside the palette."""
    names = list(COLORS)
    place = role if isinstance(role, int) else names.index(ROLES[role]) if ROLES[role] in names else 0
    return MARKERS[place % len(MARKERS)]


def rank_color(rank: int) -> str:
    """The colour of what a rank brought, or holds; light enough for black text."""
    return RANKS[rank % len(RANKS)]


def text_on(ground: str) -> str:
    """White for text on a dark colour of the palette, ink on all others."""
    return "white" if ground in {COLORS[name] for name in _DARK} else INK


def pale(role: Role, share: float = 0.3) -> tuple[float, float, float]:
    """A role's colour thinned on the figure's ground."""
    ground, (red, green, blue, _) = to_rgba(PAPER), to_rgba(color(role))
    return tuple(  # type: ignore[return-value]
        share * full + (1 - share) * paper for full, paper in zip((red, green, blue), ground[:3], strict=True)
    )


def colormap(*roles: Role, share: float = 1.0) -> ListedColormap:
    """A colour for each of the values 0, 1, …, for a matrix of them. share: below 1 thins the colours."""
    return ListedColormap([pale(role, share) if share < 1 else to_rgba(color(role)) for role in roles])
