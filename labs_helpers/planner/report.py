"""Text of the planner's command: tables, the ranking of layouts, and the comparison with published runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labs_helpers.planner.accounting import GB
from labs_helpers.planner.search import Ranking

if TYPE_CHECKING:
    import pandas

FORMATS = (
    dict.fromkeys(("step ms", "exposed ms", "GB"), "{:,.1f}")
    | dict.fromkeys(("bubble", "exposed", "MFU"), "{:.1%}")
    | dict.fromkeys(("step s", "published s", "predicted s", "ratio"), "{:.2f}")
    | {"tokens/s": "{:,.0f}"}
)
FITTED = """place, of: of the published grid in the planner's ranking of the grids that fit.
GB: predicted memory of the published layout.
The planner's only fitted constant is the fraction of the peak that large matrix products reach, fitted to GPT 145.6B
and to Llama 3 on 8,192 GPUs. labs_helpers/planner/published.py names the sources and what they leave open."""


def show(table: pandas.DataFrame) -> str:
    """Format a table of the planner as its command prints it."""
    formats = {name: FORMATS.get(name, "{:,.3f}").format for name in table if table[name].dtype == float}
    return table.to_string(formatters=formats, na_rep="–")


def show_ranking(found: Ranking, top: int, formulas: bool = False) -> str:
    """Describe the run, its `top` fastest layouts, the memory of the best one by formula, and the rejected grids."""
    run, best = found.run, found.best
    lines = [str(run.model), f"{run.batch:,} × {run.length:,} tokens per step, {run.states}", str(found.cluster), ""]
    lines.append(show(found.table(top)) if best else "No layout fits.")
    if best and formulas:
        lines += ["", f"Memory of one GPU with {best.layout}:"]
        lines += [f"{part.bytes / GB:9.3f} GB  {part.name}: {part.formula}" for part in best.parts]
    if found.rejected:
        grids = len(found.candidates) + len(found.rejected)
        lines += ["", f"Rejected: {len(found.rejected):,} of {grids:,} grids", *found.reasons()]
    return "\n".join(lines)
