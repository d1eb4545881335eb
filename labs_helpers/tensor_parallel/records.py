"""Read the study's records: the links of the last run, and its steps and counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas

from labs_helpers.measure import records
from labs_helpers.measure.study import Study
from labs_helpers.tensor_parallel.variants import Variant

STUDY = Study("tensor-parallel", "python -m labs_helpers.tensor_parallel.study", "4-core CPU")
VARIANT = {"dp": int, "tp": int, "placement": str, "scheme": str, "sequence_parallel": bool, "overlap": bool}


def variant_of(row: Mapping[str, Any]) -> Variant:
    """Return the Variant of a record."""
    return Variant(**{name: kind(row[name]) for name, kind in VARIANT.items()})


def links(rows: pandas.DataFrame) -> list[str]:
    """Return the links over which steps were measured, from slow to fast and shared memory last.

    A link that was measured several times has several names; only the last one counts. Raises ValueError if there is
    none.
    """
    steps = select(rows, "step")
    last = steps.drop_duplicates(["asked", "nodes"], keep="last")
    rates = rows[rows["kind"] == "link"].drop_duplicates("link", keep="last").set_index("link")["rate_Gbps"]
    return sorted(last["link"], key=lambda link: rates.get(link, float("inf")))


def select(rows: pandas.DataFrame, kind: str, **wanted: Any) -> pandas.DataFrame:
    """Return the last record of each variant, length and link whose columns have the `wanted` values.

    kind: "step" or "count". Records keep the order in which they were measured. Raises ValueError if there is none.
    """
    return records.select(rows, kind, ["link", "length", *VARIANT], **wanted).astype(VARIANT)
