"""The checks of lab 03, one file per exercise; the notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.gemm.lab03.checks.ex1_resources import resources
from labs_helpers.gemm.lab03.checks.ex2_waves import waves
from labs_helpers.gemm.lab03.checks.ex3_prune import prune
from labs_helpers.gemm.lab03.checks.ex4_grid_search import grid_search
from labs_helpers.gemm.lab03.checks.ex5_random_search import random_search
from labs_helpers.gemm.lab03.checks.ex6_cache_key import cache_key
from labs_helpers.gemm.lab03.checks.ex7_tune_silu import tune_silu

__all__ = ["cache_key", "grid_search", "prune", "random_search", "resources", "summary", "tune_silu", "waves"]
