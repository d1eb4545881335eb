"""The study's records as tables: the links of the last run, and its steps and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas

from labs_helpers.tensor_parallel.variants import Variant

VARIANT = {"dp": int, "tp": int, "placement": str, "scheme": str, "sequence_parallel": bool, "overlap": bool}


def frame(records: list[dict[str, Any]]) -> pandas.DataFrame:
    """Records as `study.load` gives them."""
    return pandas.json_normalize(records, max_level=1)


def variant_of(row: Mapping[str, Any]) -> Variant:
    """The Variant of a record."""
    return Variant(**{name: kind(row[name]) for name, kind in VARIANT.items()})


def links(rows: pandas.DataFrame) -> list[str]:
    """The links over which steps were measured, those between nodes first, from slow to fast. Where one was asked for
    several times, so that it has several measured names, the last of them. ValueError: there is none."""
    steps = select(rows, "step")
    last = steps.drop_duplicates(["asked", "nodes"], keep="last")
    rates = rows[rows["kind"] == "link"].drop_duplicates("link", keep="last").set_index("link")["rate_Gbps"]
    return sorted(last["link"], key=lambda link: rates.get(link, float("inf")))


def select(rows: pandas.DataFrame, kind: str, **wanted: Any) -> pandas.DataFrame:
    """The last record of each variant, length and link, of the kind "step" or "count", where the columns have the
    values `wanted`; in the order in which they were measured. ValueError: there is none."""
    found = rows[rows["kind"] == kind] if "kind" in rows else rows[:0]
    found = found if found.empty else found.astype(VARIANT)
    for column, value in wanted.items():
        found = found[found[column] == value] if column in found else found[:0]
    if found.empty:
        asked = ", ".join(f"{column} {value}" for column, value in wanted.items())
        raise ValueError(f"no records of the kind {kind!r}{' with ' * bool(wanted)}{asked}")
    return found.drop_duplicates(["link", "length", *VARIANT], keep="last")
