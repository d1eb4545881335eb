"""A run's checkpoints in one folder: the last two, so the older one remains if the newer is damaged."""

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
    """A folder of checkpoints, which need not exist yet. Only rank 0 uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def by_step(self) -> dict[int, Path]:
        """Return the checkpoint files by step, oldest first."""
        files = self.folder.iterdir() if self.folder.is_dir() else ()
        found = {int(name[1]): file for file in files if (name := NAME.fullmatch(file.name))}
        return dict(sorted(found.items()))

    def save(self, step: int, about: Mapping[str, Any], arrays: Mapping[str, Array]) -> Path:
        """Write the checkpoint of `step`, then delete older ones and unfinished files.

        Raises OSError, with the step from which a run can resume, if the file cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"step-{step:08d}.checkpoint"
        try:
            write(path, {"step": step, **about}, arrays)
        except OSError as error:
            last = max(self.by_step(), default=None)
            told = f"the checkpoint of step {step} could not be written ({error.strerror}); "
            told += (
                "there is no earlier one"
                if last is None
                else f"the one of step {last} is intact: resume there with --resume"
            )
            raise OSError(error.errno, told, str(path)) from error
        unneeded = list(self.by_step().values())[:-KEPT]
        for file in [*unneeded, *self.folder.glob(f"step-*{UNFINISHED}")]:
            file.unlink(missing_ok=True)
        return path

    def latest(self) -> tuple[Checkpoint | None, dict[Path, str]]:
        """Return (the last intact checkpoint or None, {damaged later file: message}).

        Raises Refused if there are files and all are damaged.
        """
        damaged: dict[Path, str] = {}
        for file in reversed(self.by_step().values()):
            try:
                return read(file), damaged
            except Damaged as error:
                damaged[file] = str(error)
        if damaged:
            raise Refused("; ".join(damaged.values()) + ". There is no earlier checkpoint: start in another folder")
        return None, {}

    def set_aside(self, damaged: Iterable[Path]) -> None:
        """Rename damaged files, because the run will write checkpoints of their steps again."""
        for file in damaged:
            file.rename(file.with_name(file.name + ".damaged"))

    def check_new(self) -> None:
        """Raise Refused if a new run would mix its checkpoints with those of another."""
        if there := self.by_step():
            raise Refused(
                f"{self.folder} has checkpoints up to step {max(there)}: resume with --resume, or choose another folder"
            )

    def check_writable(self, nbytes: int = 1) -> None:
        """Create the folder, and raise Refused unless it has room for all checkpoints that exist at the same time.

        nbytes: of each checkpoint.
        """
        if odd := [path for path in self.by_step().values() if path.is_dir()]:
            raise Refused(f"{odd[0]} is a folder, but has the name of a checkpoint: rename it")
        wanted = KEPT + 1 - min(KEPT, len(self.by_step()))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"cannot create the folder {self.folder} for checkpoints: {error.strerror}") from None
        try:
            with ExitStack() as held:
                for _ in range(wanted):
                    held.enter_context(room(self.folder, nbytes))
        except OSError as error:
            files = f"{wanted} checkpoints of {nbytes / 1e6:.3g} MB"
            raise Refused(f"no room for {files} in {self.folder}: {error.strerror}") from None

    def check_same(self, saved: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
        """Raise Refused, naming the first difference, if a checkpoint's run is not this one (`Settings.identity`)."""
        for name, value in mine.items():
            if name not in saved or saved[name] != value:
                there = saved.get(name, "another")
                raise Refused(
                    f"the checkpoint in {self.folder} is from a run with {name} {there}, but this run has {value}"
                )
