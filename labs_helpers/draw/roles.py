"""The color and marker of each role: figures name a role ('ours', a floor, rank 3), and only this file names colors."""

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
MARKERS = "osD^vPX*"  # curves differ in their markers as well as in their colors
INK, PAPER, RULE = "#22252A", "#FAF9F6", "#D9D7D0"
_STONE, _SAND = "#B9B6AC", "#CFCBC0"

ROLES = {
    # candidates of a measurement
    "ours": "blue", "theirs": "vermillion", "yours": "orange", "naive": "purple", "reference": "sky",
    # their baselines
    "floor": _STONE, "formula": "black", "limit": "black", "result": "black", "aside": "gray",
    "measured": "blue", "right": "blue", "wrong": "vermillion", "claim": "yellow",
    # the parts of a GPU's memory
    "parameters": "blue", "gradients": "orange", "optimizer": "green", "buckets": "vermillion", "gathered": "sky",
    "activations": "purple",
    # actions of a rank or a GPU over time
    "forward": "sky", "backward": "blue", "input gradient": "purple", "weight gradient": "green",
    "update": "green", "compute": "blue", "waiting": "yellow",
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
# Light enough for black text; two more than in the palette.
RANKS = [*(COLORS[name] for name in ("sky", "orange", "green", "purple", "yellow", "vermillion")), "#BBBBBB", "#B5D99C"]
SHADES = ("#E4E1D8", "#CFE0EA", "#F3DFC0", "#D2E8DC", "#EFDAE4", "#F6F0B8")  # of named ranges, in order of appearance
PHASES = (_SAND, "#E4E1D8", "#F1EFE9")  # of consecutive ranges, as the background of their events
_DARK = ("blue", "green", "vermillion", "black")


def color(role: Role) -> str:
    """Return the color of a role, or of the n-th member of a series without roles; a color is returned as it is.

    Raises KeyError for an unknown role.
    """
    if isinstance(role, int):
        return list(COLORS.values())[role % len(COLORS)]
    return role if role.startswith("#") else COLORS.get(ROLES[role], ROLES[role])


def marker(role: Role) -> str:
    """Return the marker of a role's curve, that of its color in a series; 'o' for a role outside the palette."""
    names = list(COLORS)
    place = role if isinstance(role, int) else names.index(ROLES[role]) if ROLES[role] in names else 0
    return MARKERS[place % len(MARKERS)]


def rank_color(rank: int) -> str:
    """Return the color of a rank's data, light enough for black text."""
    return RANKS[rank % len(RANKS)]


def text_on(ground: str) -> str:
    """Return white for text on a dark color of the palette, otherwise the ink color."""
    return "white" if ground in {COLORS[name] for name in _DARK} else INK


def pale(role: Role, share: float = 0.3) -> tuple[float, float, float]:
    """Return a role's color, blended into the figure's background."""
    ground, (red, green, blue, _) = to_rgba(PAPER), to_rgba(color(role))
    return tuple(  # type: ignore[return-value]
        share * full + (1 - share) * paper for full, paper in zip((red, green, blue), ground[:3], strict=True)
    )


def colormap(*roles: Role, share: float = 1.0) -> ListedColormap:
    """Return a color for each of the values 0, 1, … of a matrix. share: below 1 makes the colors paler."""
    return ListedColormap([pale(role, share) if share < 1 else to_rgba(color(role)) for role in roles])
