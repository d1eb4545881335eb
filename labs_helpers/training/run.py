"""Run a training from the first weights or a checkpoint to the report, on the ranks of a communicator."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from labs_helpers.communication.mesh import ranks_at
from labs_helpers.measure.results import try_to_write
from labs_helpers.training import datasets, records
from labs_helpers.training.checkpoints import Checkpoints
from labs_helpers.training.evaluation import validate
from labs_helpers.training.places import leave, on_rank_0, take_place
from labs_helpers.training.progress import Progress, duration
from labs_helpers.training.resumption import find_checkpoint
from labs_helpers.training.settings import Refused, Settings
from labs_helpers.training.trainer import Trainer
from labs_helpers.training.whole_state import PARTS, gather_whole_state, load_whole_state
from labs_helpers.transformer.counts import parameters

Say = Callable[[str], None]


def nothing(line: str) -> None:
    """Say nothing, as ranks other than 0 do."""


class Report(NamedTuple):
    """The result of a run, the same on every rank except for the records, which only rank 0 holds.

    losses: of all steps, including those before a resumption. validation: see `evaluation.validate`. first_step: the
    number of steps completed before this run.
    """

    losses: list[float]
    validation: dict[str, float]
    records: list[dict[str, Any]]
    first_step: int
    seconds: float
    on_gpus: bool

    def __str__(self) -> str:
        accuracy = self.validation.get("validation_accuracy")
        right = "" if accuracy is None else f", {accuracy:.1%} of the digits recognized"
        return (
            f"loss {self.losses[0]:.4f} → {self.losses[-1]:.4f}; validation: loss "
            f"{self.validation['validation_loss']:.4f}{right}; {duration(self.seconds)} for "
            f"{len(self.losses) - self.first_step} steps\n\n{records.table(self.records)}"
        )


def train(comm: Any, settings: Settings, say: Say = print, at: Say = nothing) -> Report:
    """Train according to `settings`, and return the report; every rank of comm calls this.

    comm: a communicator of MPI, or a `TorchWorld`. say: reports progress, on rank 0. at: notes what this rank begins,
    for the message about a rank that fails.

    Raises Refused on every rank, before any training, for impossible settings, unusable files or folders, or a
    checkpoint of another run. Raises FloatingPointError if the loss becomes NaN or infinite.
    """
    begun = time.perf_counter()
    settings.check(comm.Get_size())
    torch.set_num_threads(settings.threads)
    folder = Checkpoints(settings.checkpoint) if settings.checkpoint else None
    on_rank_0(comm, lambda: check_files(settings, folder))
    data = datasets.load(comm, settings.data, settings.batch, settings.length, settings.seed)
    identity = settings.identity() | {"fingerprint of the data": data.fingerprint}
    resumed = find_checkpoint(comm, folder, identity) if folder and settings.resume else None
    tell = say if comm.Get_rank() == 0 else nothing
    place = take_place(comm, settings)
    trainer, losses = Trainer(settings, place, data), []
    if resumed is not None:
        load_whole_state(trainer, resumed.step, resumed.names, resumed.whole)
        losses = resumed.losses
        for sentence in resumed.damaged:
            tell(f"{sentence}; it was renamed to *.damaged")
        tell(f"resuming after step {trainer.step} from {settings.checkpoint}")
    elif settings.resume:
        tell(f"no checkpoint in {settings.checkpoint} yet: starting from step 0")
    first_step = trainer.step
    step_s = run_steps(trainer, losses, folder, identity, tell, at)
    at("the validation")
    validation = validate(trainer)
    each = comm.gather(records.measured(trainer, step_s))
    leave(place)
    report = Report(losses, validation, [], first_step, time.perf_counter() - begun, place.device != "cpu")
    return report if each is None else report._replace(records=all_records(settings, report, each))


def run_steps(
    trainer: Trainer, losses: list[float], folder: Checkpoints | None, identity: dict[str, Any], tell: Say, at: Say
) -> list[float]:
    """Run the remaining steps with checkpoints and progress; append each step's loss, return each step's seconds."""
    settings = trainer.settings
    progress = Progress(settings.steps, trainer.step)
    new, step_s = [], []
    while trainer.step < settings.steps:
        at(f"step {trainer.step + 1}")
        before = time.perf_counter()
        new.append(trainer.train_step())
        trainer.wait_for_device()
        step_s.append(time.perf_counter() - before)
        last = trainer.step == settings.steps
        to_save = folder is not None and (last or trainer.step % settings.checkpoint_every == 0)
        to_tell = last or trainer.step % settings.report_every == 0
        if to_save or to_tell:
            losses += trainer.mean_losses(new)
            new.clear()
            if not np.isfinite(losses[-1]):
                raise FloatingPointError(f"the loss of step {trainer.step} is {losses[-1]}: try a lower --lr")
        if folder is not None and to_save and (trainer.dp.rank == 0 or settings.zero):
            arrays = gather_whole_state(trainer)
            if trainer.dp.rank == trainer.pp.rank == trainer.tp.rank == 0:
                folder.save(trainer.step, {"run": identity, "losses": losses}, arrays)
        if to_tell:
            tell(progress.line(trainer.step, losses[-settings.report_every :]))
    return step_s


def checkpoint_bytes(settings: Settings) -> int:
    """Estimate the bytes of one checkpoint file: the arrays, and the losses in decimal digits."""
    itemsize = getattr(torch, settings.dtype).itemsize
    return len(PARTS) * sum(parameters(settings.config).values()) * itemsize + 24 * settings.steps


def all_records(settings: Settings, report: Report, each: list[records.Measured]) -> list[dict[str, Any]]:
    """Return a run's records, on rank 0. each: the measurements of all ranks."""
    groups = []
    for dp_idx, pp_idx in itertools.product(range(settings.dp), range(settings.pp)):
        ranks = ranks_at(settings.axes, {"dp": dp_idx, "pp": pp_idx})
        groups.append(records.group_record(settings, dp_idx, pp_idx, {rank: each[rank] for rank in ranks}))
    curve = {
        "kind": "curve",
        "lr": settings.lr,
        "steps": settings.steps,
        "first_step": report.first_step,
        "losses": report.losses,
        "seconds": report.seconds,
        **report.validation,
    }
    return [*groups, records.run_record(settings) | curve]


def check_files(settings: Settings, folder: Checkpoints | None) -> None:
    """Raise Refused if records or checkpoints could not be written, or would mix with those of another run."""
    if settings.out is not None:
        if settings.out.is_dir():
            raise Refused(f"cannot write records to {settings.out}: it is a folder")
        try:
            try_to_write(settings.out)
        except OSError as error:
            raise Refused(f"cannot write records to {settings.out}: {error.strerror}") from None
    if folder is not None:
        folder.check_writable(checkpoint_bytes(settings))
        if not settings.resume:
            folder.check_new()
