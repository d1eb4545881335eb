"""The figures of labs 08 and 09's measurements: each is a function of a table of records (see study/records.py)."""

from labs_helpers.data_parallel.charts_measured.all_reduces import draw_all_reduce
from labs_helpers.data_parallel.charts_measured.learning import draw_loss_curves
from labs_helpers.data_parallel.charts_measured.memory import draw_memory_over_step, draw_stage_memory
from labs_helpers.data_parallel.charts_measured.offload import draw_offload
from labs_helpers.data_parallel.charts_measured.race import draw_race, race_table
from labs_helpers.data_parallel.charts_measured.regimes import draw_regimes
from labs_helpers.data_parallel.charts_measured.remedies import draw_accumulate, draw_compression
from labs_helpers.data_parallel.charts_measured.scaling import draw_scaling
from labs_helpers.data_parallel.charts_measured.steps import draw_buckets, draw_stage_steps, draw_wrappers
from labs_helpers.data_parallel.charts_measured.timelines import draw_timeline

__all__ = [
    "draw_accumulate", "draw_all_reduce", "draw_buckets", "draw_compression", "draw_loss_curves",
    "draw_memory_over_step", "draw_offload", "draw_race", "draw_regimes", "draw_scaling", "draw_stage_memory",
    "draw_stage_steps", "draw_timeline", "draw_wrappers", "race_table",
]  # fmt: skip
