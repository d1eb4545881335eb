"""Draw lab 03's figures: the space of configurations, searches in it, and the choices of the time model."""

from labs_helpers.gemm.lab03.pictures.model import draw_losses
from labs_helpers.gemm.lab03.pictures.searches import (
    draw_elsewhere,
    draw_kept,
    draw_long,
    draw_picks,
    draw_regret,
    draw_tuned,
    elsewhere,
    kept_losses,
    stale,
    until,
)
from labs_helpers.gemm.lab03.pictures.space import (
    draw_heat,
    draw_pipeline,
    draw_rules,
    draw_waves,
    first_fall,
    programs_per_sm,
    short,
)
from labs_helpers.gemm.lab03.pictures.tile import draw_tile

__all__ = [
    "draw_elsewhere", "draw_heat", "draw_kept", "draw_long", "draw_losses", "draw_picks", "draw_pipeline",
    "draw_regret", "draw_rules", "draw_tile", "draw_tuned", "draw_waves", "elsewhere", "first_fall", "kept_losses",
    "programs_per_sm", "short", "stale", "until",
]  # fmt: skip
