"""Train lab 01's transformer on dp × pp × tp ranks, with data, checkpoints, progress and records."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.training.run import train
    from labs_helpers.training.settings import Settings

__all__ = ["Settings", "train"]
__getattr__, __dir__ = lazily(__name__, {"Settings": "settings", "train": "run"})
