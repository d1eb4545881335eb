"""The stretch exercise of lab 08: predict the exposed communication of any grouping of gradients from α and β."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import pandas

from labs_helpers.data_parallel.charts.settings import setting_of
from labs_helpers.data_parallel.study.records import ALONE, links, select
from labs_helpers.data_parallel.study.tables import fits, gradient_bytes
from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import Curves
from labs_helpers.draw.roles import color

Groups = Sequence[Sequence[int]]
MEGABYTE = 2**20
EXPOSED = Curves({"equal buckets, measured": "measured", "equal buckets, by α and β": ("formula", "D")})


def exposed_after(groups: Groups, nbytes: Sequence[int], ready: Sequence[float], alpha: float, beta: float) -> float:
    """Return the seconds from the end of backward to the end of the last message.

    groups: the gradients' numbers in order of arrival, cut into messages. nbytes, ready: each gradient's bytes, and the
    time in seconds at which it is complete. A message of b bytes takes alpha + b · beta seconds, and the link carries
    one at a time. ValueError unless the groups hold every gradient once, in order.
    """
    if [number for group in groups for number in group] != list(range(len(nbytes))) or not all(groups):
        raise ValueError(
            f"the groups must hold the numbers 0 to {len(nbytes) - 1} once, in this order, and none may be empty"
        )
    free = 0.0
    for group in groups:
        free = max(free, ready[group[-1]]) + alpha + beta * sum(nbytes[number] for number in group)
    return free - ready[-1]


def equal_groups(nbytes: Sequence[int], limit: float) -> list[list[int]]:
    """Cut the gradients into groups of at most `limit` bytes; a larger gradient is alone in its group."""
    groups: list[list[int]] = []
    for number, size in enumerate(nbytes):
        if not groups or sum(nbytes[i] for i in groups[-1]) + size > limit:
            groups.append([])
        groups[-1].append(number)
    return groups


def best_groups(nbytes: Sequence[int], ready: Sequence[float], alpha: float, beta: float) -> list[list[int]]:
    """Return the groups whose last message ends first, by dynamic programming.

    The first k gradients are sent as early as possible if all messages before their last one are. Therefore the best
    cut of each prefix follows from the best cuts of the shorter prefixes.
    """
    ends, cuts = [0.0], [0]
    for last in range(len(nbytes)):
        tried = [
            (max(ends[first], ready[last]) + alpha + beta * sum(nbytes[first : last + 1]), first)
            for first in range(last + 1)
        ]
        end, first = min(tried)
        ends.append(end)
        cuts.append(first)
    groups, last = [], len(nbytes)
    while last:
        groups.append(list(range(cuts[last], last)))
        last = cuts[last]
    return groups[::-1]


def arrivals(alone: pandas.Series) -> tuple[list[int], list[float]]:
    """Return (nbytes, ready) of a model's gradients, from the last to the first.

    nbytes: bytes. ready: seconds after the start of backward; each gradient takes time in proportion to its bytes.
    alone: the record of a step without communication.
    """
    nbytes = gradient_bytes(alone)
    return nbytes, [1e-3 * alone["backward_ms"] * passed / sum(nbytes) for passed in accumulate(nbytes)]


def gradients_of(rows: pandas.DataFrame) -> tuple[list[int], list[float], float, float]:
    """Return (nbytes, ready, alpha, beta), in bytes and seconds, of the slowest link with recorded bucket sizes."""
    here = _of_link(rows)
    alone = select(rows, "wrapper", wrapper=ALONE, link=here["link"].iloc[0], batch=here["batch"].iloc[0]).iloc[-1]
    cost = fits(rows).set_index("link").loc[here["link"].iloc[0]]
    return *arrivals(alone), 1e-6 * cost["alpha_us"], 1e-9 * cost["beta_ns_per_byte"]


@beside_yours("data-parallel")
def draw_own_buckets(rows: pandas.DataFrame, own: Callable):
    """Draw the exposed time of equal buckets, by α + nβ and as measured, and of the best groups.

    own: a function (nbytes, ready, alpha, beta) → groups, which are drawn too unless it returns None.
    """
    gradients = nbytes, *_ = gradients_of(rows)
    here = _of_link(rows)
    ours = here[here["wrapper"] == "bucketed"].sort_values("bucket_mb")
    told = [1e3 * exposed_after(equal_groups(nbytes, mb * MEGABYTE), *gradients) for mb in ours["bucket_mb"]]
    best = 1e3 * exposed_after(best_groups(*gradients), *gradients)
    yours = own(list(nbytes), list(gradients[1]), *gradients[2:])
    mine = None if yours is None else 1e3 * exposed_after(yours, *gradients)
    title = f"Exposed: ours {best:.1f} ms, equal buckets {min(told):.1f} ms"
    if mine is not None:
        title += f", yours {mine:.1f} ms"
    fig, (ax,) = figures.panels(title, [""], 8.4)
    measured = ours["step_ms"] - ours["alone_ms"]
    EXPOSED.plot(ax, "equal buckets, measured", ours["bucket_mb"], measured)
    EXPOSED.plot(ax, "equal buckets, by α and β", ours["bucket_mb"], told, linestyle="--")
    ax.axhline(best, linestyle=":", color=color("limit"), label=f"ours: {len(best_groups(*gradients))} messages")
    if mine is not None and yours is not None:
        ax.axhline(mine, color=color("yours"), label=f"yours: {len(yours)} messages")
    ax.set(xscale="log", xlabel="bucket_mb, MiB", ylabel="exposed, ms", ylim=(0, None))
    ax.xaxis.set_major_formatter("{x:g}")
    figures.legend_below(fig)
    figures.write_below(
        fig, f"Title: predicted by α + nβ, equal buckets at their best size; {here['link'].iloc[0]}, {setting_of(here)}"
    )
    return fig


def _of_link(rows: pandas.DataFrame) -> pandas.DataFrame:
    found = select(rows, "bucket")
    return found[found["link"] == links(found)[0]]
