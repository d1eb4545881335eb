"""Which jail answers run in: bubblewrap's, Apptainer's with an image, or none where an instructor insists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from labs_helpers.grading.jails import apptainer, bubblewrap, without_jail


@dataclass(frozen=True)
class Jail:
    """name: as records have it. run: as `bubblewrap.run_in_jail`. why_not: says why it does not work here, '' where it
    does. warning: what the command says before it grades. It can be pickled, for engines on other nodes."""

    name: str
    run: Callable[..., str]
    why_not: Callable[[], str]
    warning: str = ""


BUBBLEWRAP = Jail("bubblewrap", bubblewrap.run_in_jail, bubblewrap.why_not)


def chosen(image: Path | None = None, unsafe: bool = False) -> Jail:
    """The jail of `--image course.sif` and `--unsafe`; the latter without looking for one."""
    if unsafe:
        return Jail("none", without_jail.run_without_jail, without_jail.why_not, without_jail.warning())
    if image:
        whole = image.resolve()
        return Jail("apptainer", partial(apptainer.run_in_apptainer, whole), partial(apptainer.why_not, whole))
    return BUBBLEWRAP
