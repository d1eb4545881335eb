"""Train as `labs_helpers.training` does, but let one rank fail in the middle of a step.

    torchrun --nproc-per-node 2 -m labs_helpers.clinic.failing_rank stopped moment --pp 2

Before it fails, the rank makes the file `moment`, whose time tells when. The options are those of the training program.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from labs_helpers.launch import program
from labs_helpers.launch.leave import leave
from labs_helpers.training import __main__ as training
from labs_helpers.training.trainer import Trainer

RANK, STEP = 1, 2


def raises() -> None:
    raise ValueError("planted")


WAYS = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "stuck": signal.pause,
    "raises": raises,
}


def plant(way: str, moment: Path) -> None:
    """Let rank RANK fail after STEP steps, when the passes of the next one begin."""
    train_step = Trainer.train_step

    def fails(trainer: Any) -> Any:
        if trainer.step == STEP and os.environ["RANK"] == str(RANK):
            run = trainer.pipeline.run

            def in_the_middle(*given: Any) -> Any:
                moment.touch()
                WAYS[way]()
                return run(*given)

            trainer.pipeline.run = in_the_middle
        return train_step(trainer)

    Trainer.train_step = fails  # type: ignore[method-assign, assignment]


def main() -> int:
    way, moment = sys.argv[1:3]
    del sys.argv[1:3]
    plant(way, Path(moment))
    return training.main()


if __name__ == "__main__":
    program.run(main)
    leave()
