"""Choose the jail that answers run in: bubblewrap, Apptainer with an image, or none if an instructor insists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from labs_helpers.grading.jails import apptainer, bubblewrap, without_jail


@dataclass(frozen=True)
class Jail:
    """A kind of jail. name: as in records. run: as `bubblewrap.run_in_jail`. why_not: returns the reason why it does
    not work here, or ''. warning: what the command says before it grades. It can be pickled for engines on other
    nodes."""

    name: str
    run: Callable[..., str]
    why_not: Callable[[], str]
    warning: str = ""


BUBBLEWRAP = Jail("bubblewrap", bubblewrap.run_in_jail, bubblewrap.why_not)


def chosen(image: Path | None = None, unsafe: bool = False) -> Jail:
    """Return the jail of `--image course.sif` or `--unsafe`; for the latter, without looking for a jail."""
    if unsafe:
        return Jail("none", without_jail.run_without_jail, without_jail.why_not, without_jail.warning())
    if image:
        whole = image.resolve()
        return Jail("apptainer", partial(apptainer.run_in_apptainer, whole), partial(apptainer.why_not, whole))
    return BUBBLEWRAP
