"""The command-line options of train_2d.py and of `-m labs_helpers.training`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from labs_helpers.launch import program
from labs_helpers.training.settings import CHOICES, DIGITS_LENGTH, Refused, Settings, make_config
from labs_helpers.transformer import SIZES

USUAL = Settings()


class Parser(program.Parser):
    """A parser that raises Refused instead of printing and exiting on every rank."""

    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def make_parser(doc: str, way: str = USUAL.way) -> Parser:
    """Return the parser. doc: the program's docstring, shown by --help. way: the default of --way."""
    parser = Parser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, limit=24 * program.HOUR)

    def add(name: str, kind: Any, metavar: str, told: str, default: Any = None) -> None:
        shown = "" if default is None else f"{'; ' if told else ''}default: {default}"
        parser.add_argument(name, type=kind, metavar=metavar, default=default, help=told + shown)

    def choose(name: str, told: str) -> None:
        key = name.removeprefix("--")
        default = way if key == "way" else getattr(USUAL, key)
        parser.add_argument(name, choices=CHOICES[key], default=default, help=f"{told}; default: %(default)s")

    add("--dp", int, "N", "data-parallel ranks, each with a part of the batch", 1)
    add("--pp", int, "N", "ranks of the pipeline, each with some of the layers", 1)
    add("--tp", int, "N", "tensor-parallel ranks, each with a part of each layer", 1)
    add("--micro-batches", int, "N", "parts of a batch that pass through the pipeline; default: about twice its ranks")
    choose("--schedule", "the order of the pipeline's passes")
    add("--chunks", int, "N", "stages per rank, in the interleaved schedule", USUAL.chunks)
    parser.add_argument(
        "--zero", type=int, choices=CHOICES["zero"], default=USUAL.zero,
        help="1: each data-parallel rank updates a part of the parameters (ZeRO-1); default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint-activations", action="store_true", help="keep only each stage's input, and compute the rest again"
    )
    choose("--data", "train on handwritten digits (pixels, then the label) or on the bytes of Python source")
    add("--steps", int, "N", "", USUAL.steps)
    add("--batch", int, "N", "sequences per step on all ranks together", USUAL.batch)
    add("--length", int, "N", f"tokens per sequence of text; default: {DIGITS_LENGTH}, the fixed length of a digit")
    parser.add_argument("--size", choices=SIZES, help="model size, instead of 2 layers of width 64 with 8 heads")
    add("--width", int, "N", "width of the residual stream")
    add("--layers", int, "N", "")
    add("--heads", int, "N", "")
    add("--lr", float, "RATE", "peak learning rate", USUAL.lr)
    choose("--dtype", "dtype of the parameters")
    add("--seed", int, "N", "seed for the weights and the order of the data", USUAL.seed)
    choose("--scheme", "how the layers are split")
    parser.add_argument("--sequence-parallel", action="store_true", help="split the norms along the sequence")
    choose("--way", "the MPI library's collectives, the course's own, or torch.distributed (NCCL on GPUs, else gloo)")
    add("--bucket-mb", float, "MB", "size of a bucket of gradients", USUAL.bucket_mb)
    add("--threads", int, "N", "PyTorch threads per rank; use more if cores are free and layers are large", 1)
    add("--checkpoint", Path, "FOLDER", "save checkpoints there and keep the last two")
    add("--every", int, "N", "steps between checkpoints; default: a tenth of all steps")
    parser.add_argument(
        "--resume", action="store_true", help="resume from the folder's last checkpoint, if there is one"
    )
    add("--report", int, "N", "steps between lines of progress; default: a twentieth of all steps")
    add("--out", Path, "RECORDS", "append time, bytes, memory and the loss curve to this JSON Lines file")
    return parser


def parse(arguments: list[str], doc: str, ranks: int) -> Settings:
    """Parse a command line into Settings for `ranks` ranks; raise Refused if they are impossible."""
    return settings_of(make_parser(doc).parse_args(arguments), ranks)


def settings_of(parsed: argparse.Namespace, ranks: int) -> Settings:
    """Return the Settings of parsed options; raise Refused if they are impossible for `ranks` ranks."""
    given = {name: value for name, value in vars(parsed).items() if name not in ("limit", "timeout")}
    shape = {name: given.pop(name) for name in ("size", "width", "layers", "heads")}
    given["length"] = DIGITS_LENGTH if given["length"] is None else given["length"]
    try:
        settings = Settings(**given, config=make_config(given["data"], max(1, given["length"]), **shape))
        settings.check(ranks)
    except ValueError as error:
        raise Refused(str(error)) from None
    return settings
