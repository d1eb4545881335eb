"""The figures of labs 08 and 09: memory plans, and measurements from tables of records."""

from labs_helpers.data_parallel.charts.all_reduces import draw_all_reduce
from labs_helpers.data_parallel.charts.learning import draw_loss_curves
from labs_helpers.data_parallel.charts.memory import draw_memory_over_step
from labs_helpers.data_parallel.charts.plans import draw_crossing, draw_memory, draw_plan_memory, draw_states
from labs_helpers.data_parallel.charts.race import draw_race, race_table
from labs_helpers.data_parallel.charts.regimes import draw_regimes
from labs_helpers.data_parallel.charts.remedies import draw_accumulate, draw_compression
from labs_helpers.data_parallel.charts.scaling import draw_scaling
from labs_helpers.data_parallel.charts.steps import draw_buckets, draw_wrappers
from labs_helpers.data_parallel.charts.timelines import draw_timeline

__all__ = [
    "draw_accumulate", "draw_all_reduce", "draw_buckets", "draw_compression", "draw_crossing", "draw_loss_curves",
    "draw_memory", "draw_memory_over_step", "draw_plan_memory", "draw_race", "draw_regimes",
    "draw_scaling", "draw_states", "draw_timeline", "draw_wrappers", "race_table",
]  # fmt: skip
