"""The roofline model: what an operation moves and computes, and which of the two limits its time.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009.
"""

import math
from dataclasses import dataclass

from labs_helpers.measure.roofs import Roofs


@dataclass(frozen=True)
class Work:
    """An operation's floating-point operations and the bytes it moves to and from DRAM.

    Raises ValueError for negative flops and for bytes that are not positive.
    """

    name: str
    flops: float
    bytes: float

    def __post_init__(self):
        if not (math.isfinite(self.flops) and self.flops >= 0):
            raise ValueError(f"{self.name}: flops is {self.flops}; it has to be 0 or more")
        if not (math.isfinite(self.bytes) and self.bytes > 0):
            raise ValueError(f"{self.name}: bytes is {self.bytes}; an operation moves more than 0 bytes")

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOP a byte."""
        return self.flops / self.bytes


def matmul_work(M: int, N: int, K: int, itemsize: int, name: str = "matmul") -> Work:
    """(M, K) times (K, N), each operand read once and the product written once; a multiply-add is 2 FLOP.

    itemsize: bytes an element, in and out.
    """
    return Work(name, 2 * M * N * K, (M * K + K * N + M * N) * itemsize)


def elementwise_work(
    elements: int,
    itemsize: int,
    *,
    reads: int = 1,
    writes: int = 1,
    flops: float = 1,
    name: str = "elementwise",
) -> Work:
    """`reads` tensors in and `writes` out, of `elements` each, and `flops` operations an element."""
    return Work(name, flops * elements, (reads + writes) * elements * itemsize)


def attainable(intensity: float, roofs: Roofs) -> float:
    """The most FLOP/s that an intensity (FLOP a byte) allows under both roofs."""
    if not intensity >= 0:
        raise ValueError(f"intensity is {intensity}; it has to be 0 or more")
    return min(roofs.flops, intensity * roofs.bandwidth)


def bound(work: Work, roofs: Roofs) -> str:
    """'memory' or 'compute', whichever takes longer; on the ridge itself, 'compute'."""
    return "memory" if work.flops / roofs.flops < work.bytes / roofs.bandwidth else "compute"


def predicted_ms(work: Work, roofs: Roofs) -> float:
    """The least time in milliseconds, where moving and computing overlap entirely."""
    return max(work.flops / roofs.flops, work.bytes / roofs.bandwidth) * 1e3


def plot_roofline(machines: dict[str, tuple[Roofs, dict[str, tuple[float, float]]]], ax=None):
    """Draw each machine's two roofs, their ridge, and operations on them; returns the axes.

    machines: label → (roofs, points), and points: name → (intensity in FLOP a byte, achieved FLOP/s). Both have to
    be above 0, since the scales are logarithmic; ValueError otherwise.
    """
    from labs_helpers.draw import figures

    every = [named for _, points in machines.values() for named in points.items()]
    for name, (intensity, achieved) in every:
        if not (intensity > 0 and achieved > 0):
            raise ValueError(
                f"{name}: intensity {intensity} and rate {achieved} cannot stand on logarithmic scales; "
                "both have to be above 0 (an operation without FLOP has no place on a roofline)"
            )
    if ax is None:
        _, ax = figures.new("Roofline", height=4.6)
    ax.set(xscale="log", yscale="log", xlabel="arithmetic intensity, FLOP a byte", ylabel="achieved")
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
    # Names come when every roof is drawn, so that none is written over another machine's.
    for machine, (roofs, _) in machines.items():
        figures.label_points(ax, {machine: (high, roofs.flops)}, color=colors[machine], fontweight="bold")
    for _, points in machines.values():
        figures.label_points(ax, points)
    for machine, (roofs, _) in machines.items():
        ridge = {f"ridge: {roofs.ridge:.3g} FLOP a byte": (roofs.ridge, roofs.flops)}
        figures.label_points(ax, ridge, color=colors[machine])
    return ax
