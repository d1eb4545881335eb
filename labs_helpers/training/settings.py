"""The settings of a run, checked before anything starts. Imports no PyTorch."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labs_helpers.tensor_parallel.grid import check_divides
from labs_helpers.tensor_parallel.layouts import check_layout
from labs_helpers.training.pipelining import check_pipeline, usual_micro_batches
from labs_helpers.transformer import SIZES, TransformerConfig

DIGITS_LENGTH = 64  # pixels
GRAYS = 17
# digits: one token per pixel and gray value, 10 labels, and 6 unused tokens, so 16 ranks can split the vocabulary.
VOCABULARY = {"digits": DIGITS_LENGTH * GRAYS + 10 + 6, "text": 256}
CHOICES: dict[str, tuple[Any, ...]] = {
    "data": tuple(VOCABULARY),
    "dtype": ("float32", "float64"),
    "scheme": ("megatron", "naive"),
    "way": ("mpi", "own", "torch"),
    "schedule": ("1F1B", "GPipe", "interleaved", "ZB-H1"),
    "zero": (0, 1),
}
CHECKPOINTS_PER_RUN = 10
LINES_PER_RUN = 20


class Refused(ValueError):
    """Raised on every rank, before the run starts, for a run that is not possible."""


def make_config(
    data: str,
    length: int = DIGITS_LENGTH,
    size: str | None = None,
    width: int | None = None,
    layers: int | None = None,
    heads: int | None = None,
) -> TransformerConfig:
    """Return the transformer for `data` and sequences of `length` tokens.

    size: a name of `SIZES`, or None for a model that trains in seconds and that 8 ranks can split. width, layers,
    heads: replace those of the size. Raises ValueError for incompatible sizes.
    """
    config = SIZES[size] if size else TransformerConfig(VOCABULARY[data], layers=2, width=64, heads=8, hidden=192)
    changes: dict[str, Any] = {"vocabulary": VOCABULARY[data], "context": length}
    if width is not None:
        changes |= {
            "width": width,
            "hidden": -(-8 * width // (3 * 64)) * 64,
        }  # SwiGLU's 8/3 · width, rounded up to a multiple of 64
    if layers is not None:
        changes["layers"] = layers
    if heads is not None:
        changes |= {"heads": heads, "kv_heads": None}
    return dataclasses.replace(config, **changes)


@dataclass(frozen=True)
class Settings:
    """The settings of a run on dp × pp × tp ranks. batch: sequences per step on all ranks, each of `length` tokens."""

    dp: int = 1
    tp: int = 1
    data: str = "digits"
    config: TransformerConfig = field(default_factory=lambda: make_config("digits"))
    steps: int = 300
    batch: int = 32
    length: int = DIGITS_LENGTH
    lr: float = 5e-3  # the peak of `transformer.train.learning_rate`
    dtype: str = "float32"
    seed: int = 0  # for the weights and the order of the data
    scheme: str = "megatron"
    sequence_parallel: bool = False
    pp: int = 1  # ranks of the pipeline
    micro_batches: int | None = None  # per step and copy of the model; None: see `usual_micro_batches`
    schedule: str = "1F1B"
    chunks: int = 1  # stages per rank of the pipeline
    zero: int = 0  # 1: each data-parallel rank updates a part of the parameters (ZeRO-1)
    checkpoint_activations: bool = False  # keep only each stage's input, and compute the rest again
    way: str = "mpi"
    bucket_mb: float = 0.25
    threads: int = 1  # of PyTorch per rank
    checkpoint: Path | None = None  # the folder of checkpoints
    every: int | None = None  # steps between checkpoints; None: a tenth of all steps
    resume: bool = False
    report: int | None = None  # steps between lines of progress; None: a twentieth of all steps
    out: Path | None = None  # file for the records

    @property
    def axes(self) -> dict[str, int]:
        """The sizes of the mesh, slowest axis first; tensor-parallel ranks, which send the most, are neighbors."""
        return {"dp": self.dp, "pp": self.pp, "tp": self.tp}

    @property
    def micro_batches_per_step(self) -> int:
        """The number of micro-batches into which a copy of the model cuts its part of the batch."""
        return self.micro_batches or usual_micro_batches(self.batch // self.dp, self.pp, self.chunks)

    @property
    def micro_batch(self) -> int:
        """The sequences of a micro-batch."""
        return self.batch // (self.dp * self.micro_batches_per_step)

    @property
    def checkpoint_every(self) -> int:
        """Steps from one checkpoint to the next; the last step always saves one."""
        return self.every or max(1, self.steps // CHECKPOINTS_PER_RUN)

    @property
    def report_every(self) -> int:
        """Steps from one line of progress to the next."""
        return self.report or max(1, self.steps // LINES_PER_RUN)

    def check(self, ranks: int) -> None:
        """Raise Refused, with a message for the command line, unless `ranks` ranks can do this run."""
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise Refused(f"{name} is {getattr(self, name)!r}, not one of {', '.join(map(str, choices))}")
        for name in ("steps", "batch", "length", "threads", "every", "report", "micro_batches", "chunks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise Refused(f"{name} is {value}, but has to be 1 or more")
        for name in ("lr", "bucket_mb"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise Refused(f"{name} is {getattr(self, name)}, but has to be positive")
        if self.seed < 0:
            raise Refused(f"seed is {self.seed}, but has to be 0 or more")
        if self.data == "digits" and self.length != DIGITS_LENGTH:
            raise Refused(f"length is {self.length}, but a digit has {DIGITS_LENGTH} pixels")
        if self.checkpoint is None and (self.resume or self.every):
            raise Refused(f"{'resume' if self.resume else 'every'} needs a folder of checkpoints (--checkpoint FOLDER)")
        if self.scheme == "naive" and self.sequence_parallel:
            raise Refused("the naive scheme has no sequence parallelism: use sequence_parallel with megatron")
        try:
            check_layout(ranks, self.dp, self.tp, self.config, self.pp)
            sizes = self.pp, self.micro_batches_per_step, self.chunks
            check_pipeline(self.schedule, *sizes, self.config.layers, self.batch, self.dp)
            if self.sequence_parallel:
                check_divides("length", self.length, "tp", self.tp)
        except ValueError as error:
            raise Refused(str(error)) from None

    def identity(self) -> dict[str, Any]:
        """Return the settings that determine the loss curve, by name; a run can resume a checkpoint with the same ones.

        Layout, scheme and way may differ.
        """
        names = ("data", "dtype", "length", "batch", "steps", "lr", "seed")
        return {name: getattr(self, name) for name in names} | dataclasses.asdict(self.config)
