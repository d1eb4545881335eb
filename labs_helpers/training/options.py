"""The command-line options of train_2d.py."""

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


def make_parser(doc: str) -> Parser:
    """Return the parser. doc: the script's docstring, shown by --help."""
    parser = Parser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, limit=24 * program.HOUR)

    def add(name: str, kind: Any, metavar: str, told: str, default: Any = None) -> None:
        shown = "" if default is None else f"{'; ' if told else ''}default: {default}"
        parser.add_argument(name, type=kind, metavar=metavar, default=default, help=told + shown)

    def choose(name: str, told: str) -> None:
        key = name.removeprefix("--")
        parser.add_argument(
            name, choices=CHOICES[key], default=getattr(USUAL, key), help=f"{told}; default: %(default)s"
        )

    add("--dp", int, "N", "data-parallel ranks, each with a part of the batch", 1)
    add("--tp", int, "N", "tensor-parallel ranks, each with a part of the model", 1)
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
    parser = make_parser(doc)
    given = vars(parser.parse_args(arguments))
    del given["limit"]  # the process's time limit, not a training setting
    shape = {name: given.pop(name) for name in ("size", "width", "layers", "heads")}
    given["length"] = DIGITS_LENGTH if given["length"] is None else given["length"]
    try:
        settings = Settings(**given, config=make_config(given["data"], max(1, given["length"]), **shape))
        settings.check(ranks)
    except ValueError as error:
        raise Refused(str(error)) from None
    return settings
