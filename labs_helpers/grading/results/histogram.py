"""A histogram of points as an SVG that stands in a page and takes its colours."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 20, 46  # around the bars: room for labels
BINS = 10


def histogram(totals: Sequence[float], most: float) -> str:
    """Of totals between 0 and `most` points, in BINS of equal width; the last one holds those with all points too. SVG
    that holds numbers and this file's words alone."""
    counts = counted(totals, most)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    step = _step(max(counts, default=0))
    top = step * max(1, -(-max(counts, default=0) // step))
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="histogram-title" class="histogram">',
        f'<title id="histogram-title">{_in_words(counts, most)}</title>',
    ]
    for value in range(0, top + 1, step):
        y = TOP + high * (1 - value / top)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="rule"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    for place, count in enumerate(counts):
        x, tall = LEFT + wide * place / BINS, high * count / top
        parts.append(
            f'<rect x="{x + 2:.1f}" y="{TOP + high - tall:.1f}" width="{wide / BINS - 4:.1f}" height="{tall:.1f}"/>'
        )
        if count:
            middle = x + wide / BINS / 2
            parts.append(f'<text x="{middle:.1f}" y="{TOP + high - tall - 5:.1f}" text-anchor="middle">{count}</text>')
    for place in range(BINS + 1):
        x = LEFT + wide * place / BINS
        parts.append(f'<text x="{x:.1f}" y="{TOP + high + 16}" text-anchor="middle">{most * place / BINS:g}</text>')
    parts.append(
        f'<text x="{LEFT + wide / 2}" y="{HEIGHT - 8}" text-anchor="middle">points, after what is taken off</text>'
    )
    middle = TOP + high / 2
    parts.append(
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">students</text></svg>'
    )
    return "\n".join(parts)


def counted(totals: Sequence[float], most: float) -> list[int]:
    """How many totals fall into each of BINS."""
    counts = [0] * BINS
    for total in totals:
        counts[max(0, min(BINS - 1, int(total / most * BINS)))] += 1
    return counts


def _step(largest: int) -> int:
    """Between the lines of the vertical axis: 1, 2, 5, 10, … with at most five of them."""
    step, factors = 1, (2, 2.5, 2)
    for number in range(30):
        if largest <= 5 * step:
            break
        step = int(step * factors[number % 3])
    return step


def _in_words(counts: Sequence[int], most: float) -> str:
    """For those who do not see it."""
    told = [f"{count} from {most * place / BINS:g}" for place, count in enumerate(counts) if count]
    return f"Students by points, in steps of {most / BINS:g}: {', '.join(told) or 'none'}"
