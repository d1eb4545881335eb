"""Keep imports of older copies of the labs working: a module that moved is found at its new place, with a warning."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

# Old place → new place of modules that earlier notebooks import; submodules move with them.
MOVED = {
    "collectives.practice": "practice",
    "data_parallel.practice": "practice.process_groups",
    "tensor_parallel.practice": "communication.practice",
    "tensor_parallel.communication": "communication.interface",
    "tensor_parallel.training": "training",
    "gemm.random_report": "gemm.random_study",
    "data_parallel.settings": "data_parallel.zero.settings",
    "data_parallel.accounting": "planner.accounting",
    "data_parallel.cluster": "planner.cluster",
    "data_parallel.memory": "planner.memory",
    "data_parallel.model_size": "planner.model_size",
    "data_parallel.plan": "planner.plan",
    "data_parallel.strategies": "planner.strategies",
    "attention.lab05.charts": "attention.lab05.pictures",
    "collectives.racing": "collectives.race",
    "collectives.pictures": "collectives.lab06.pictures",
    "first_kernels.lab00.charts": "first_kernels.lab00.pictures",
    "gemm.lab03.charts": "gemm.lab03.pictures",
    "gemm.lab03.search_charts": "gemm.lab03.pictures",
    "gemm.lab03.model_chart": "gemm.lab03.pictures",
    "transformer.lab01.charts": "transformer.lab01.pictures",
    "data_parallel.charts_measured": "data_parallel.charts",
    "data_parallel.lab08.recorded": "data_parallel.charts.recorded",
    "data_parallel.lab09.recorded": "data_parallel.charts.recorded",
    "data_parallel.planner": "planner",
    "data_parallel.volume": "planner.volume",
    "data_parallel.zero3_against_tp": "planner.zero3_against_tp",
}
# Modules whose name now belongs to a function → their replacements.
PUBLIC = {
    "gemm.fused_matmul": "from labs_helpers.gemm import fused_matmul",
    "attention.flash_attention": "from labs_helpers.attention import flash_attention",
}


class Moved(MetaPathFinder, Loader):
    """Find modules by their old names. Python asks this finder last, so it never hides an existing module."""

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        """Return a spec for an old name, None for any other. Raises ModuleNotFoundError for a name in PUBLIC."""
        if line := PUBLIC.get(name.removeprefix("labs_helpers.")):
            raise ModuleNotFoundError(f"{name} is a function now, and no module: {line}", name=name)
        return ModuleSpec(name, self, is_package=True) if new_name(name) else None

    def exec_module(self, module: ModuleType) -> None:
        """Fill the old module with the new one's contents, so that both hold the same functions."""
        old, new = module.__name__, new_name(module.__name__)
        found = importlib.import_module(new)
        vars(module).update({name: value for name, value in vars(found).items() if not name.startswith("__")})
        said = f"{old} is now {new}. This import still works; change it in your copy, or take a new copy of the lab."
        warnings.warn(said, FutureWarning, stacklevel=2)


def new_name(name: str) -> str:
    """Return a module's new place, or '' if it has not moved."""
    package, _, rest = name.partition(".")
    for old, new in MOVED.items() if package == "labs_helpers" else ():
        if rest == old or rest.startswith(f"{old}."):
            return f"labs_helpers.{new}{rest.removeprefix(old)}"
    return ""


def find_moved_modules() -> None:
    """Let this process import modules by their old names too."""
    if not any(isinstance(finder, Moved) for finder in sys.meta_path):
        sys.meta_path.append(Moved())
