"""A job: a training program with one real cause of trouble, or a healthy one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules

from labs_helpers.clinic.training import Training


@dataclass(frozen=True)
class Job:
    """cause: a key of `causes.CAUSES`. sick: the program. part: the attribute of `Training` that it replaces; '' for a
    healthy job. other: the replacement that cures it, if the original does not.

    What times on two cores show of it, if they do: slower: a sick step takes at least so many times as long per
    sequence as a cured one. waits: a rank spends at least this share of a sick step in the all-reduce, but not of a
    cured one.
    """

    cause: str
    sick: type[Training]
    part: str = ""
    other: object = None
    slower: float = 0.0
    waits: float = 0.0

    @property
    def hangs(self) -> bool:
        """Whether the job does not come to its end, so that only an autopsy shows what it has."""
        return self.cause in ("deadlock", "dead rank")

    @property
    def needs_gpu(self) -> bool:
        """Whether only CUDA's caching allocator shows what the job has."""
        return self.cause == "fragmentation"

    @cached_property
    def cured(self) -> type[Training]:
        """The same program with the cure: the one replaced attribute is put back."""
        if not self.part:
            return self.sick
        return type(f"Cured{self.sick.__name__}", (self.sick,), {self.part: self.other or getattr(Training, self.part)})


def jobs(folder: str = "jobs") -> dict[str, Job]:
    """Return name → job of each file in a folder of this package: 'jobs', 'later', or 'gpu'."""
    package = import_module(f"labs_helpers.clinic.{folder}")
    names = sorted(module.name for module in iter_modules(package.__path__))
    return {name: import_module(f"{package.__name__}.{name}").JOB for name in names}
