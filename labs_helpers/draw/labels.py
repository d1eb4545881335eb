"""Labels next to curves and points, moved until they do not overlap."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import offset_copy

Extents = np.ndarray[Any, Any]


def label_lines(ax: Axes, gap: float = 1.35) -> None:
    """Write the name of each labeled curve to the right of the axes instead of a legend, and move overlapping names
    apart.

    gap: the least distance of two labels, in text heights. Call this last: it reads the axes' limits.
    """
    figure = cast(Figure, ax.figure)  # a SubFigure cannot be drawn alone
    figure.draw_without_rendering()
    ends = []
    for line in ax.get_lines():
        if str(line.get_label()).startswith("_"):
            continue
        drawn = [xy for xy in ax.transData.transform(line.get_xydata()) if all(map(math.isfinite, xy))]
        if drawn:
            ends.append((drawn[-1], line))
    if not ends:
        return
    ends.sort(key=lambda end: end[0][1])
    size = matplotlib.rcParams["font.size"]
    points_per_pixel = 72 / figure.dpi
    heights = _apart([y for (_, y), _ in ends], gap * size / points_per_pixel)
    # A column to the right of the axes, wherever the layout puts their edge.
    column = offset_copy(ax.transAxes, figure, x=10, units="points")
    for ((x, y), line), height in zip(ends, heights, strict=True):
        ax.annotate(
            str(line.get_label()), tuple(ax.transData.inverted().transform((x, y))),
            xytext=(1, (height - y) * points_per_pixel), textcoords=(column, "offset points"),
            va="center", fontsize=size, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": line.get_color(), "relpos": (0, 0.5), "shrinkB": 4},
        )  # fmt: skip


def label_points(ax: Axes, points: dict[str, tuple[float, float]], **style: Any) -> list[Annotation]:
    """Write each point's name next to it, clear of curves, points and other text; return the texts.

    points: name → (x, y). style: of the text, as for `Axes.annotate`. Call this last. If no place is entirely free, the
    label goes where it covers least.
    """
    figure = cast(Figure, ax.figure)
    figure.draw_without_rendering()
    frame = np.array(ax.get_window_extent().extents)
    taken = [np.array(text.get_window_extent().extents) for text in ax.texts]
    taken += [_around(ax.transData.transform(point), 5, 5) for point in points.values()]
    # Curves become rows of small boxes, so that one overlap test handles everything.
    for line in ax.get_lines():
        path = line.get_path().transformed(line.get_transform())
        vertices = np.asarray(path.vertices)
        if len(vertices) > 1:
            taken += [_around(vertex, 4, 4) for vertex in np.asarray(path.interpolated(100).vertices)]
        if line.get_marker() not in ("", "None", None):
            reach = 0.75 * line.get_markersize() * figure.dpi / 72 + 1  # a diamond's corners, and its edge
            taken += [_around(vertex, reach, reach) for vertex in vertices]
    written = []
    for name, point in points.items():
        text = ax.annotate(name, point, xytext=(0, 0), textcoords="offset points", ha="center", va="center", **style)
        box = text.get_window_extent()
        x, y = ax.transData.transform(point)
        places = [(_around((x + dx, y + dy), box.width / 2 + 1, box.height / 2), (dx, dy))
                  for dx, dy in _offsets(box.width / 2, box.height / 2)]  # fmt: skip
        boxes = np.array(taken)
        place, (dx, dy) = min(places, key=lambda place: _in_the_way(place[0], boxes, frame))
        text.set_position((dx * 72 / figure.dpi, dy * 72 / figure.dpi))
        taken.append(place)
        written.append(text)
    return written


def _offsets(half_width: float, half_height: float) -> Iterator[tuple[float, float]]:
    """Return candidate positions of a label's center, nearest first: right, left, above, below, the corners, then
    farther away."""
    for distance in (10, 14, 18, 28, 40, 54):
        right, up = half_width + distance, half_height + distance
        yield from [(right, 0), (-right, 0), (0, up), (0, -up)]
        yield from [(right, -up), (-right, up), (right, up), (-right, -up)]


def _in_the_way(place: Extents, taken: Extents, frame: Extents) -> float:
    """Return the area in square pixels that a label would cover, plus ten times the area outside the axes. taken:
    one row per box."""
    x0, y0, x1, y1 = place
    outside = (x1 - x0) * (y1 - y0) - _overlaps(place, frame[None])
    return float(_overlaps(place, taken) + 10 * outside)


def _overlaps(one: Extents, others: Extents) -> float:
    """Return the sum of the areas that a box shares with others. Boxes are (x0, y0, x1, y1)."""
    sides = np.minimum(one[2:], others[:, 2:]) - np.maximum(one[:2], others[:, :2])
    return float(np.fmax(sides, 0).prod(axis=1).sum())  # a box without a position (NaN) covers nothing


def _around(centre: Iterable[float], half_width: float, half_height: float) -> Extents:
    x, y = centre
    return np.array([x - half_width, y - half_height, x + half_width, y + half_height])


def _apart(values: list[float], step: float) -> list[float]:
    """Move sorted values as little as possible (least squares) until they are `step` apart, by pooling neighbors."""
    groups: list[list[float]] = []
    for value in values:
        groups.append([value])
        while len(groups) > 1 and _spread(groups[-2], step)[-1] + step > _spread(groups[-1], step)[0]:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [position for group in groups for position in _spread(group, step)]


def _spread(group: list[float], step: float) -> list[float]:
    start = sum(group) / len(group) - step * (len(group) - 1) / 2
    return [start + i * step for i in range(len(group))]
