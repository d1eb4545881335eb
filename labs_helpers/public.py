"""Export a topic's public names, imported on first use, so that importing a topic has no side effects.

    if TYPE_CHECKING:
        from <the package>.fused import fused_matmul
    __all__ = ["fused_matmul"]
    __getattr__, __dir__ = lazily(__name__, {"fused_matmul": "fused"})

Type checkers and editors read the import under TYPE_CHECKING; Python calls `__getattr__` once per name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`. names: public name → the module that defines it."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{names[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: sorted({*vars(sys.modules[package]), *names})
