"""Rooflines: each machine's two roofs, with operations below them."""

from __future__ import annotations

from matplotlib.axes import Axes

from labs_helpers.draw import figures
from labs_helpers.measure.roofline import attainable
from labs_helpers.measure.roofs import Roofs


def plot_roofline(machines: dict[str, tuple[Roofs, dict[str, tuple[float, float]]]], ax: Axes | None = None) -> Axes:
    """Draw each machine's two roofs, their ridge, and the operations; return the axes.

    machines: label → (roofs, points), with points: name → (intensity in FLOP per byte, achieved FLOP/s). Both must be
    above 0, because the scales are logarithmic; otherwise raises ValueError.
    """
    every = [named for _, points in machines.values() for named in points.items()]
    for name, (intensity, achieved) in every:
        if not (intensity > 0 and achieved > 0):
            raise ValueError(
                f"{name}: intensity {intensity} and rate {achieved} cannot be drawn on logarithmic scales; both "
                "must be above 0 (an operation without FLOP has no place on a roofline)"
            )
    if ax is None:
        _, ax = figures.new("Roofline", height=4.6)
    ax.set(xscale="log", yscale="log", xlabel="arithmetic intensity, FLOP per byte", ylabel="achieved")
    ax.xaxis.set_major_formatter("{x:g}")
    figures.set_unit(ax.yaxis, "FLOP/s")
    colors = dict(zip(machines, figures.COLORS.values(), strict=False))
    intensities = [x for _, (x, _) in every] + [roofs.ridge for roofs, _ in machines.values()]
    low, high = min(intensities) / 4, max(intensities) * 6
    for machine, (roofs, points) in machines.items():
        color, bends = colors[machine], (low, roofs.ridge, high)
        ax.plot(bends, [attainable(x, roofs) for x in bends], color=color, marker="", label="_roof", zorder=1)
        ax.scatter([roofs.ridge], [roofs.flops], marker="|", s=14**2, color=color, linewidth=1)
        for x, y in points.values():
            ax.plot([x], [y], marker="o", linestyle="none", color=color, label="_point", zorder=3)
    ax.set_ylim(top=max(ax.get_ylim()[1], *(6 * roofs.flops for roofs, _ in machines.values())))
    # Write the names after all roofs are drawn, so that none covers another machine's roof.
    for machine, (roofs, _) in machines.items():
        figures.label_points(ax, {machine: (high, roofs.flops)}, color=colors[machine], fontweight="bold")
    for _, points in machines.values():
        figures.label_points(ax, points)
    for machine, (roofs, _) in machines.items():
        ridge = {f"ridge: {roofs.ridge:.3g} FLOP per byte": (roofs.ridge, roofs.flops)}
        figures.label_points(ax, ridge, color=colors[machine])
    return ax
