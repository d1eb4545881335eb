"""From a checkpoint, which rank 0 reads, to the ranks of any layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labs_helpers.training.checkpoint_file import Array, Checkpoint
from labs_helpers.training.checkpoints import Checkpoints
from labs_helpers.training.places import on_rank_0


class Resumed:
    """A checkpoint whose arrays only rank 0 has. damaged: a sentence for each later file that was none."""

    def __init__(self, comm: Any, mine: Checkpoint | None, header: tuple[int, list[float], Any, list[str]]) -> None:
        self.comm, self.mine = comm, mine
        self.step, self.losses, self.kinds, self.damaged = header

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    def whole(self, name: str) -> Array:
        """The array of this name, on every rank. Called by all, with the same names in the same order."""
        kind, shape = self.kinds[name]
        # A copy: some of MPICH's algorithms write to the root's buffer, too, which lies in a file that is only read.
        array = np.array(self.mine.arrays[name]) if self.mine else np.empty(shape, kind)
        self.comm.Bcast(array)
        return array


def find_checkpoint(comm: Any, folder: Checkpoints, run: Mapping[str, Any]) -> Resumed | None:
    """The folder's last whole checkpoint, if it has one. Called by every rank; damaged files are set aside.

    run: what decides about the loss curve. Refused on every rank where the checkpoint's differs, or all are damaged.
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
