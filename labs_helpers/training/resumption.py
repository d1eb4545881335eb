"""Resume from a checkpoint that rank 0 reads, on the ranks of any layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labs_helpers.training.checkpoint_file import Array, Checkpoint
from labs_helpers.training.checkpoints import Checkpoints
from labs_helpers.training.places import on_rank_0


class Resumed:
    """A checkpoint whose arrays only rank 0 holds. damaged: one sentence per later file that is unusable."""

    def __init__(self, comm: Any, mine: Checkpoint | None, header: tuple[int, list[float], Any, list[str]]) -> None:
        self.comm, self.mine = comm, mine
        self.step, self.losses, self.kinds, self.damaged = header

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    def whole(self, name: str) -> Array:
        """Return an array on every rank; all ranks call this with the same names in the same order."""
        kind, shape = self.kinds[name]
        # Copy it, because some of MPICH's algorithms write to the root's buffer, but this file is mapped read-only.
        array = np.array(self.mine.arrays[name]) if self.mine else np.empty(shape, kind)
        self.comm.Bcast(array)
        return array


def find_checkpoint(comm: Any, folder: Checkpoints, run: Mapping[str, Any]) -> Resumed | None:
    """Return the folder's last intact checkpoint, or None if it has none; every rank calls this.

    Renames damaged files. run: the settings that determine the loss curve. Raises Refused on every rank if the
    checkpoint's settings differ, or if all files are damaged.
    """
    found: list[Checkpoint] = []

    def look() -> tuple[int, list[float], Any, list[str]] | None:
        checkpoint, damaged = folder.latest()
        if checkpoint is None:
            return None
        folder.check_same(checkpoint.about["run"], run)
        folder.set_aside(damaged)
        found.append(checkpoint)
        kinds = {name: (array.dtype.str, array.shape) for name, array in checkpoint.arrays.items()}
        return checkpoint.about["step"], checkpoint.about["losses"], kinds, list(damaged.values())

    header = on_rank_0(comm, look)
    return None if header is None else Resumed(comm, found[0] if found else None, header)
