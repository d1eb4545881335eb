"""Run a measuring command on the ranks of torch.distributed, started by torchrun or srun."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labs_helpers.launch.world import environment, world
from labs_helpers.measure.machine import cores_label, prepare_triton, this_machine
from labs_helpers.measure.study import Record, Study

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Rank:
    """This rank. at: records what is starting, for the message about a rank that fails."""

    study: Study
    device: torch.device
    first: bool
    at: Callable[[str], None]

    def say(self, text: str) -> None:
        """Report progress, on rank 0."""
        if self.first:
            print(text, file=sys.stderr, flush=True)

    def keep(self, found: list[Record], out: Any = None, on: Any = None) -> None:
        """Keep records, on rank 0."""
        if self.first:
            self.study.keep(found, out, machine=None if self.device.type == "cuda" else cores_label(), on=on)

    def show(self, text: str) -> None:
        """Print results, on rank 0."""
        if self.first:
            print(text, flush=True)


def check_ranks(parser: argparse.ArgumentParser) -> int:
    """Return the number of ranks. Exit with the parser's error if nobody started them, or if GPUs exist and a rank
    has none."""
    try:
        told = environment(os.environ)
    except RuntimeError as error:
        parser.error(str(error))
    if this_machine().device == "cuda":
        import torch

        local, gpus = int(told["LOCAL_RANK"]), torch.cuda.device_count()
        if local >= gpus and "SLURM_PROCID" not in os.environ:  # a Slurm task may see only one GPU
            parser.error(f"{local + 1} ranks or more on this machine, which has {gpus} GPUs; each rank needs one")
    return int(told["WORLD_SIZE"])


@contextmanager
def on_ranks(study: Study, given: argparse.Namespace) -> Iterator[Rank]:
    """Run torch.distributed within the block, with NCCL if there are GPUs. given: has `timeout` and `limit`."""
    gpus = this_machine().device == "cuda"
    if gpus:
        prepare_triton()
    with world(given.timeout, given.limit, gpus) as note:
        import torch

        device = torch.device("cuda", torch.cuda.current_device()) if gpus else torch.device("cpu")
        yield Rank(study, device, os.environ["RANK"] == "0", note)
