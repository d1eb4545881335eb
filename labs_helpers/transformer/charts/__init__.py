"""Draw the transformer's study; each function takes a table of records from `study.load`.

If a table lacks records, the figure says so instead; a student's own machine has fewer records.
"""

from labs_helpers.transformer.charts.batches import draw_batches
from labs_helpers.transformer.charts.checkpoints import draw_checkpoints
from labs_helpers.transformer.charts.launches import draw_launches
from labs_helpers.transformer.charts.peak import draw_peak
from labs_helpers.transformer.charts.precision import draw_precision
from labs_helpers.transformer.charts.remedies import draw_waterfall, remedies_table
from labs_helpers.transformer.charts.sizes import draw_sizes
from labs_helpers.transformer.records import timed
from labs_helpers.transformer.setups import treatment

__all__ = [
    "draw_batches",
    "draw_checkpoints",
    "draw_launches",
    "draw_peak",
    "draw_precision",
    "draw_sizes",
    "draw_waterfall",
    "remedies_table",
    "timed",
    "treatment",
]
