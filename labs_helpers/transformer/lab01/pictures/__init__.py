"""The figures that only lab 01 draws: the GPU's time by kind, counted bytes, wrong timings, and lost numbers."""

from labs_helpers.transformer.lab01.pictures.kernels import draw_counters, draw_kinds
from labs_helpers.transformer.lab01.pictures.numbers import draw_gradients, draw_lost_updates
from labs_helpers.transformer.lab01.pictures.timings import draw_wrong_timings

__all__ = ["draw_counters", "draw_gradients", "draw_kinds", "draw_lost_updates", "draw_wrong_timings"]
