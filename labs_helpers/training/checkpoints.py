"""A run's checkpoints in one folder: the last two, the older one in case that the newer is found damaged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from labs_helpers.measure.results import room
from labs_helpers.training.checkpoint_file import UNFINISHED, Array, Checkpoint, Damaged, read, write
from labs_helpers.training.settings import Refused

NAME = re.compile(r"step-(\d+)\.checkpoint")
KEPT = 2


class Checkpoints:
    """The folder need not exist. For one process: rank 0's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def by_step(self) -> dict[int, Path]:
        """The files that are there, oldest first."""
        files = self.folder.iterdir() if self.folder.is_dir() else ()
        found = {int(name[1]): file for file in files if (name := NAME.fullmatch(file.name))}
        return dict(sorted(found.items()))

    def save(self, step: int, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Path:
        """Writes the checkpoint of `step`; then removes those that nobody needs any more, and what writers that were
        killed have left. OSError, when that was not possible, with the step from which a run can go on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"step-{step:08d}.checkpoint"
        try:
            write(path, {"step": step, **about}, arrays)
        except OSError as error:
            last = max(self.by_step(), default=None)
            told = f"the checkpoint of step {step} could not be written ({error.strerror}); "
            told += "there is none before" if last is None else f"that of step {last} holds: go on there with --resume"
            raise OSError(error.errno, told, str(path)) from error
        unneeded = list(self.by_step().values())[:-KEPT]
        for file in [*unneeded, *self.folder.glob(f"step-*{UNFINISHED}")]:
            file.unlink(missing_ok=True)
        return path

    def latest(self) -> tuple[Checkpoint | None, dict[Path, str]]:
        """The last whole checkpoint, or None; later files that are damaged, and what of it. Refused: there are some,
        and all are damaged."""
        damaged: dict[Path, str] = {}
        for file in reversed(self.by_step().values()):
            try:
                return read(file), damaged
            except Damaged as error:
                damaged[file] = str(error)
        if damaged:
            raise Refused("; ".join(damaged.values()) + ". There is none before: start in another folder")
        return None, {}

    def set_aside(self, damaged: Iterable[Path]) -> None:
        """Files that do not count any more, as the run will come to their steps again; kept under another name."""
        for file in damaged:
            file.rename(file.with_name(file.name + ".damaged"))

    def check_new(self) -> None:
        """Raises Refused where a new run would mix its checkpoints with those of another."""
        if there := self.by_step():
            raise Refused(
                f"{self.folder} has checkpoints up to step {max(there)}: go on from there with --resume, or name "
                "another folder"
            )

    def check_writable(self, nbytes: int = 1) -> None:
        """Makes the folder, and tries whether it has room for all checkpoints that there are at a time, of `nbytes`
        each. Refused, if not."""
        if odd := [path for path in self.by_step().values() if path.is_dir()]:
            raise Refused(f"{odd[0]} is a folder, but has the name of a checkpoint: give it another name")
        wanted = KEPT + 1 - min(KEPT, len(self.by_step()))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"no folder for checkpoints at {self.folder}: {error.strerror}") from None
        try:
            with ExitStack() as held:
                for _ in range(wanted):
                    held.enter_context(room(self.folder, nbytes))
        except OSError as error:
            files = f"{wanted} checkpoints of {nbytes / 1e6:.3g} MB"
            raise Refused(f"no room for {files} in {self.folder}: {error.strerror}") from None

    def check_same(self, saved: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
        """Raises Refused with the first difference between a checkpoint's run and this one (`Settings.identity`)."""
        for name, value in mine.items():
            if name not in saved or saved[name] != value:
                there = saved.get(name, "another")
                raise Refused(
                    f"the checkpoint in {self.folder} is of a run with {name} {there}, and this one has {value}"
                )
