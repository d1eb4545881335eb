"""Draw the time of a step in each layout over each link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.bars import FLOOR, draw_bars, mark_bar, over_floor
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.roles import Role
from labs_helpers.draw.words import signed
from labs_helpers.tensor_parallel.predict import predict
from labs_helpers.tensor_parallel.records import links, select, variant_of
from labs_helpers.tensor_parallel.variants import Variant

PLACES = {"tp inside a node": 0, "tp across the nodes": 1}
SCHEMES: dict[str, Role] = {"megatron": "ours", "naive": "naive", "sequence-parallel": 2}

Tables = Mapping[str, pandas.DataFrame]


@beside_yours("tensor-parallel")
def draw_layouts(rows: pandas.DataFrame, length: int | None = None) -> Figure:
    """Draw the time of a step in each dp × tp layout, with one panel per link.

    A bar is compute alone plus the time that communication adds, colored by the placement of the tensor-parallel
    groups; a line is the middle 60% of the steps, a diamond the prediction. length: of the sequences, by default the
    longest recorded. Raises ValueError without such records.
    """
    length = length or int(select(rows, "step")["length"].max())
    how = {"length": length, "scheme": "megatron", "sequence_parallel": False, "overlap": False}
    tables = {link: select(rows, "step", link=link, **how) for link in links(rows)}
    roles: dict[str, Role] = {FLOOR: "floor", **PLACES}
    fig, axes = _draw_panels(_fastest(tables), tables, roles, str, lambda row: list(PLACES)[row["tp_nodes"] != 1])
    labels, off = [tick.get_text() for tick in axes[0].get_yticklabels()], []
    for ax, table in zip(axes, tables.values(), strict=True):
        for _, row in table.iterrows():
            told = predict(rows, row).step_ms
            off.append(told / row["step_ms"] - 1)
            mark_bar(ax, told / 1e3, labels.index(str(variant_of(row))))
            ax.set_xlim(0, max(ax.get_xlim()[1], 1.05e-3 * told))
    name = f"predicted: off by {signed(min(off))} to {signed(max(off))}"
    figures.legend_below(fig, _legend(roles) | {name: ("formula", "D")})
    figures.write_below(fig, f"Layouts: dp × tp. {_setting(tables)}")
    return fig


@beside_yours("tensor-parallel")
def draw_schemes(rows: pandas.DataFrame) -> Figure:
    """Draw the time of a step in Megatron's scheme, the naive scheme and with sequence parallelism, one panel per link.

    A bar is compute alone plus the time that communication adds. Shows the layouts with naive records; raises
    ValueError without any.
    """
    naive = select(rows, "step", scheme="naive")
    layouts = list(dict.fromkeys(zip(naive["dp"], naive["tp"], strict=True)))
    length = int(naive["length"].max())
    tables = {}
    for link in links(rows):
        table = select(rows, "step", link=link, length=length, placement="inside", overlap=False)
        table = table[[pair in layouts for pair in zip(table["dp"], table["tp"], strict=True)]]
        scheme = [list(SCHEMES).index(scheme_of(variant_of(row))) for _, row in table.iterrows()]
        tables[link] = table.assign(order=scheme).sort_values(["tp", "order"])
    roles: dict[str, Role] = {FLOOR: "floor", **SCHEMES}
    fig, _ = _draw_panels(
        _cost_of_naive(tables),
        tables,
        roles,
        lambda variant: f"{variant.dp} × {variant.tp} {scheme_of(variant)}",
        lambda row: scheme_of(variant_of(row)),
    )
    figures.legend_below(fig, _legend(roles))
    figures.write_below(fig, f"Layouts: dp × tp. {_setting(tables)}")
    return fig


def scheme_of(variant: Variant) -> str:
    """Return a variant's key in SCHEMES."""
    return "sequence-parallel" if variant.sequence_parallel else variant.scheme


def _draw_panels(
    title: str,
    tables: Tables,
    roles: Mapping[str, Role],
    name: Callable[[Variant], str],
    part: Callable[[pandas.Series], str],
) -> tuple[Figure, Sequence[Axes]]:
    """Draw one panel per link and one bar per row: compute alone, the rest of the step as its `part`, and spread."""
    labels = list(dict.fromkeys(name(variant_of(row)) for table in tables.values() for _, row in table.iterrows()))
    nodes = [int(table["nodes"].iloc[-1]) for table in tables.values()]
    links = [link if count == 1 else f"{count} nodes, {link}" for link, count in zip(tables, nodes, strict=True)]
    width, height = max(9.3, 2.2 + 2.7 * len(tables)), 2.0 + 0.36 * len(labels)
    fig, axes = figures.panels(title, links, width, height, sharey=True)
    for ax, table in zip(axes, tables.values(), strict=True):
        bars, spread = {}, {}
        for _, row in table.iterrows():
            label = name(variant_of(row))
            bars[label] = over_floor(row["alone_ms"] / 1e3, row["step_ms"] / 1e3, part(row))
            spread[label] = (row["step_p20_ms"] / 1e3, row["step_p80_ms"] / 1e3)
        draw_bars(ax, bars, roles, spread=spread, names=labels, unit="s", xlabel="time per step")
        ax.locator_params(axis="x", nbins=4)
    return fig, axes


def _setting(tables: Tables) -> str:
    first = next(iter(tables.values()))
    about = first.iloc[0]
    task = f"{about['batch']:.0f} sequences of {about['length']:.0f} tokens"
    return f"{task}, {about['layers']:.0f} layers of width {about['width']:.0f}{recorded_on(first)}"


def _legend(roles: Mapping[str, Role]) -> dict[str, Role]:
    return {"compute alone" if part == FLOOR else f"communication, {part}": role for part, role in roles.items()}


def _fastest(tables: Tables) -> str:
    """Name the layouts that are the fastest over every link, or whose middle 60% of steps overlaps with the fastest."""
    tied = []
    for table in tables.values():
        best = table.loc[table["step_ms"].idxmin()]
        near = table[(table["step_p20_ms"] <= best["step_p80_ms"]) & (table["step_p80_ms"] >= best["step_p20_ms"])]
        tied.append({str(variant_of(row)) for _, row in near.iterrows()})
    if not (everywhere := set.intersection(*tied)):
        return "No layout is the fastest over every link"
    names = " and ".join(sorted(everywhere, reverse=True)).replace(" inside", "")
    alone = all(len(layouts) == 1 for layouts in tied)
    return (
        f"{names} {'is' if alone else 'is among' if len(everywhere) == 1 else 'are among'} the fastest over every link"
    )


def _cost_of_naive(tables: Tables) -> str:
    """Say by how much the naive scheme's step is slower at most."""
    ratios = []
    for table in tables.values():
        plain = table[~table["sequence_parallel"]].pivot_table(index=["dp", "tp"], columns="scheme", values="step_ms")
        ratios.append((plain["naive"] / plain["megatron"]).max())
    return f"The naive scheme takes up to {max(ratios):.2g} times Megatron's time"
