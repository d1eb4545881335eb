"""Import modules of the course whose files a jail hides, from text that the judge was given."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import labs_helpers

COURSE = Path(labs_helpers.__file__).parent
HIDDEN = ("checks", "exercises")  # folders of a lab that no answer shall read
_OF_A_LAB = re.compile(r"labs_helpers\.\w+\.lab\d\d(\.|$)")


def hidden_folders() -> list[Path]:
    return sorted(folder for name in HIDDEN for folder in COURSE.glob(f"*/lab*/{name}"))


def hidden_sources() -> dict[str, str]:
    """Return file → text for each module in these folders."""
    return {str(path): path.read_text() for folder in hidden_folders() for path in sorted(folder.rglob("*.py"))}


def import_from(sources: Mapping[str, str]) -> None:
    """Import from these texts from now on, in this process. Modules of labs that were imported without them are
    imported again."""
    sys.meta_path.insert(0, _Given(sources))
    for name in filter(_OF_A_LAB.match, list(sys.modules)):
        del sys.modules[name]


class _Given(ExecutionLoader, MetaPathFinder):
    def __init__(self, sources: Mapping[str, str]) -> None:
        self.sources = sources

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if self._file(fullname) not in self.sources:
            return None
        spec = spec_from_loader(fullname, self, origin=self._file(fullname))
        if spec is not None:
            spec.has_location = True  # so that the module has a __file__
        return spec

    def _file(self, name: str) -> str:
        place = COURSE.parent.joinpath(*name.split("."))
        package = str(place / "__init__.py")
        return package if package in self.sources else f"{place}.py"

    def is_package(self, fullname: str) -> bool:
        return self._file(fullname).endswith("__init__.py")

    def get_filename(self, fullname: str) -> str:
        return self._file(fullname)

    def get_source(self, fullname: str) -> str:
        return self.sources[self._file(fullname)]
