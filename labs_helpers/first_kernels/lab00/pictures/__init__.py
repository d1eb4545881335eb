"""The figures of lab 00: drawings of a GPU and its waves, and measurements."""

from labs_helpers.first_kernels.lab00.pictures.gpu import chip, draw_gpu, draw_warp, draw_waves
from labs_helpers.first_kernels.lab00.pictures.measured import (
    draw_in_flight,
    draw_roofline,
    draw_strides,
    draw_wave_times,
)

__all__ = ["chip", "draw_gpu", "draw_in_flight", "draw_roofline", "draw_strides", "draw_warp", "draw_wave_times",
           "draw_waves"]  # fmt: skip
