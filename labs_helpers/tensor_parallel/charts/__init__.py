"""Lab 07's figures of measurements; each is a function of a table of records (see study.py)."""

from labs_helpers.tensor_parallel.charts.counts import draw_bytes, draw_memory
from labs_helpers.tensor_parallel.charts.gpus import draw_gpus
from labs_helpers.tensor_parallel.charts.steps import draw_layouts, draw_schemes

__all__ = ["draw_bytes", "draw_gpus", "draw_layouts", "draw_memory", "draw_schemes"]
