"""Lab 03: find the configuration of a kernel by search, prune what cannot win, remember what did."""

from labs_helpers.gemm.tuning.budget import random_search
from labs_helpers.gemm.tuning.cache import TuningCache
from labs_helpers.gemm.tuning.cache_key import cache_key
from labs_helpers.gemm.tuning.cost_model import learned_search, race, random_over_all
from labs_helpers.gemm.tuning.grid import grid
from labs_helpers.gemm.tuning.pruning import prune
from labs_helpers.gemm.tuning.resources import resources
from labs_helpers.gemm.tuning.search import grid_search
from labs_helpers.gemm.tuning.waves import waves

__all__ = ["TuningCache", "cache_key", "grid", "grid_search", "learned_search", "prune", "race",
           "random_over_all", "random_search", "resources", "waves"]
