"""The exercises of lab 03, one file each; a file holds the stub and the reference answer."""

from labs_helpers.gemm.lab03.exercises.ex1_resources import resources
from labs_helpers.gemm.lab03.exercises.ex2_waves import waves
from labs_helpers.gemm.lab03.exercises.ex3_prune import prune
from labs_helpers.gemm.lab03.exercises.ex4_grid_search import grid_search
from labs_helpers.gemm.lab03.exercises.ex5_random_search import random_search
from labs_helpers.gemm.lab03.exercises.ex6_cache_key import cache_key

__all__ = ["cache_key", "grid_search", "prune", "random_search", "resources", "waves"]
