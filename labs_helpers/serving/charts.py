"""Draw the serving studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import Curves, recorded_on, tick_each
from labs_helpers.draw.words import three

if TYPE_CHECKING:
    import pandas

POLICIES = Curves({"in-flight": "ours", "static": "naive"})
TIMES = {"first": "time to first token", "gap": "between two outputs"}


@beside_yours("serving-load")
def draw_latency(rows: pandas.DataFrame, through: str = "engine") -> Figure:
    """Draw median and 95th percentile of two waiting times against the arrival rate, one curve per policy. rows: from
    `load_study.load`."""
    found = rows[(rows["through"] == through) & (rows["rate"] > 0)].dropna(subset=["first_p50_ms"])
    found = found.drop_duplicates(["policy", "rate"], keep="last").sort_values("rate")
    if found["rate"].nunique() < 2:
        return figures.say("Two arrival rates are needed.")
    fig, axes = figures.panels(_finding(found), TIMES.values(), 9, 4)
    for ax, name in zip(axes, TIMES, strict=True):
        for policy in POLICIES:
            mine = found[found["policy"] == policy]
            if len(mine):
                POLICIES.plot(ax, policy, mine["rate"], mine[f"{name}_p50_ms"] / 1e3)
                late = mine[f"{name}_p95_ms"] / 1e3
                POLICIES.plot(ax, policy, mine["rate"], late, linestyle="--", label=f"{policy}, 95th percentile")
        tick_each(ax, found["rate"], xlabel="requests per second")
        ax.set(yscale="log")
        figures.set_unit(ax.yaxis, "s")
    figures.legend_below(fig)
    last = found.iloc[-1]
    figures.write_below(
        fig, f"{last['size']}, {last['weights']}, {last['slots']} slots, {last['requests']} requests{recorded_on(rows)}"
    )
    return fig


def _finding(found: pandas.DataFrame) -> str:
    """Return the title: how long the median's first token takes at the lowest rate that both policies were given. With
    more requests than a policy can serve, the waits would only say how long the run was."""
    times = found.pivot(index="rate", columns="policy", values="first_p50_ms").reindex(columns=list(POLICIES)).dropna()
    if times.empty:
        first, last = found.iloc[0], found.iloc[-1]
        return f"The first token waits {three(last['first_p50_ms'] / first['first_p50_ms'])}× as long under load"
    ratio = times["static"] / times["in-flight"]
    return f"At {ratio.index[0]:g} requests/s, static batching waits {three(ratio.iloc[0])}× as long"
