"""A job: a training program with one real cause of trouble, or a healthy one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from labs_helpers.clinic.training import Training


@dataclass(frozen=True)
class Job:
    """cause: a key of `causes.CAUSES`. sick: the program. part: the attribute of `Training` that it replaces; '' for a
    healthy job. other: the replacement that cures it, if the original does not. gpu: it falls ill only on a GPU."""

    cause: str
    sick: type[Training]
    part: str = ""
    other: object = None
    gpu: bool = False

    @cached_property
    def cured(self) -> type[Training]:
        """The same program with the cure: the one replaced attribute is put back."""
        if not self.part:
            return self.sick
        return type(f"Cured{self.sick.__name__}", (self.sick,), {self.part: self.other or getattr(Training, self.part)})
