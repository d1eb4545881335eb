"""Train the transformer of bytes that the later labs use, in minutes on one GPU.

    python -m labs_helpers.quantization.train_byte_model --weights bytes.pt --out records
    python -m labs_helpers.quantization.train_byte_model --size tiny --steps 40 --batch 16 --length 64 --eager   # a try

The text is small for the model, which sees each byte dozens of times and begins to overfit halfway through. So the file
holds the weights of the lowest validation loss. (Chosen on the validation text, that loss is slightly too good.) It is
complete after every validation, whenever the program ends. Dropout slows the overfitting down.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.launch import program
from labs_helpers.measure import results
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.options import count, file_to_write, positive
from labs_helpers.measure.provenance import provenance
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Study, as_text, kept
from labs_helpers.quantization.byte_model import load_byte_model, save_byte_model
from labs_helpers.transformer import counts
from labs_helpers.transformer.attentions import sdpa
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.model import Attention, SwiGLU, Transformer
from labs_helpers.transformer.text import text
from labs_helpers.transformer.train import evaluate, learning_rate, train

STUDY = Study("transformer-bytes", "python -m labs_helpers.quantization.train_byte_model")
load = STUDY.load

PROBE = 12  # steps that measure the time of one; the first half compile


def main(arguments: list[str] | None = None) -> None:
    given = make_options().parse_args(arguments)
    torch.manual_seed(given.seed)
    device, began, path = this_machine().device, time.perf_counter(), STUDY.path(given.out)
    with torch.device(device):
        model = Transformer(SIZES[given.size], sdpa)
    add_dropout(model, given.dropout)
    if not given.eager:
        for block in model.blocks:  # all equal, so the code of one serves for all
            block.compile(dynamic=False)
    options: dict[str, Any] = {"batch": given.batch, "length": given.length, "lr": given.lr, "fused": True}
    with precision(device):
        evaluate(model, given.length, given.windows)
        steps = min(given.steps, steps_within(given.seconds, model, options))
        torch.manual_seed(given.seed)
        model.init_weights()
        watch = Watch(given, model, steps, path)
        print(f"{steps} steps after {time.perf_counter() - began:.0f} s of preparation", flush=True)
        train(model, steps, seed=given.seed, on_step=watch, **options)
    print(f"\n{as_text(table(frame(watch.records)))}\n")
    result = final_record(given, watch, time.perf_counter() - began, device)
    results.append(path, result | {"on": watch.on})
    said = (
        "{parameters:,} parameters, {bytes_per_parameter:.2f} bytes of text each; {epochs:.1f} epochs, {seconds:.0f} s"
    )
    print(said.format_map(result))
    print("validation loss of the file, in bfloat16: {validation_loss:.4f} nats per byte".format_map(result))
    print("a table of how often each byte comes: {unigram_loss:.4f}".format_map(result))
    print(f"\n{result['sample']}\n\n{given.weights}: {given.weights.stat().st_size:,} bytes")
    print(kept(len(watch.records) + 1, path))


def make_options() -> program.Parser:
    parser = STUDY.parser(__doc__, limit=program.HOUR)
    parser.add_argument("--weights", type=file_to_write, default=Path("bytes.pt"), help="default: %(default)s")
    parser.add_argument("--size", choices=SIZES, default="bytes", help="default: %(default)s")
    for option, kind, default, meaning in (
        ("--steps", count, 5000, "updates; fewer if they do not fit into --seconds"),
        ("--seconds", positive, 150.0, "time for the steps"),
        ("--batch", count, 64, "sequences per step"),
        ("--length", count, 1024, "bytes per sequence"),
        ("--lr", positive, 1.5e-3, "peak of the learning rate"),
        ("--dropout", float, 0.2, "share of a branch's outputs that training sets to 0"),
        ("--every", count, 100, "steps between validations"),
        ("--windows", count, 256, "sequences of each validation"),
        ("--seed", int, 0, "of weights, batches and dropout"),
    ):
        parser.add_argument(option, type=kind, default=default, help=f"{meaning}; default: %(default)s")
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    return parser


def add_dropout(model: Transformer, share: float) -> None:
    """Drop a share of what embedding, attention and SwiGLU add to the residual stream, in training only."""

    def drop(module: torch.nn.Module, _: Any, output: Tensor) -> Tensor:
        return F.dropout(output, share, module.training)

    for module in model.modules():
        if isinstance(module, torch.nn.Embedding | Attention | SwiGLU):
            module.register_forward_hook(drop)


def precision(device: str) -> contextlib.AbstractContextManager[Any]:
    """Return the autocast of a GPU: float32 weights, bfloat16 products. A CPU computes in float32.

    Autocast must not keep its bfloat16 copies of the weights from one step to the next.
    """
    return torch.autocast(device, torch.bfloat16, enabled=device == "cuda", cache_enabled=False)


def steps_within(seconds: float, model: Transformer, options: dict[str, Any]) -> int:
    """Return how many steps fit into a time, after some that change the model."""
    times: list[float] = []

    def clock(step: int, loss: Tensor) -> None:
        loss.item()
        times.append(time.perf_counter())

    train(model, PROBE, seed=0, on_step=clock, **options)
    return max(1, int(seconds * (PROBE // 2) / (times[-1] - times[PROBE // 2 - 1])))


class Watch:
    """Follow the training: validate now and then, write the best weights, and record each validation."""

    def __init__(self, given: Any, model: Transformer, steps: int, path: Path) -> None:
        self.given, self.model, self.steps, self.path = given, model, steps, path
        self.on, self.records, self.losses = provenance(), list[dict[str, Any]](), list[Tensor]()
        self.best, self.started = math.inf, time.perf_counter()

    def __call__(self, step: int, loss: Tensor) -> None:
        self.losses.append(loss)
        done = step + 1
        if done % self.given.every and done < self.steps:
            return
        validation = evaluate(self.model, self.given.length, self.given.windows)
        record = {
            "study": STUDY.name,
            "kind": "curve",
            "size": self.given.size,
            "seed": self.given.seed,
            "step": done,
            "epochs": done * self.given.batch * self.given.length / len(text("train")),
            "learning_rate": learning_rate(step, self.steps, self.given.lr),
            "training_loss": torch.stack(self.losses).mean().item(),
            "validation_loss": validation,
            "seconds": time.perf_counter() - self.started,
        }
        self.losses.clear()
        self.records.append(record)
        results.append(self.path, record | {"on": self.on})
        if validation < self.best:
            self.best = validation
            facts = ("step", "epochs", "training_loss", "validation_loss", "seed")
            about = {fact: record[fact] for fact in facts} | {"python": self.on["python"], "commit": self.on["commit"]}
            save_byte_model(self.given.weights, self.model, about)
        print(f"step {done}: {record['training_loss']:.4f} training, {validation:.4f} validation", flush=True)


def table(rows: Any) -> Any:
    """Return about twelve rows of the curve, the last one and the best among them."""
    columns = ["step", "epochs", "learning_rate", "training_loss", "validation_loss", "seconds"]
    every = -(-len(rows) // 10)
    chosen = {*range(every - 1, len(rows), every), len(rows) - 1, int(rows["validation_loss"].argmin())}
    return rows.iloc[sorted(chosen)][columns]


def final_record(given: Any, watch: Watch, seconds: float, device: str) -> dict[str, Any]:
    """Return the record of the whole training: its options, the loss of the file that it wrote, and what it writes."""
    model = load_byte_model(given.weights, device)
    best = min(watch.records, key=lambda record: record["validation_loss"])
    parameters = sum(counts.parameters(model.config).values())
    return {
        "study": STUDY.name,
        "kind": "result",
        "size": given.size,
        "seed": given.seed,
        "steps": watch.steps,
        "batch": given.batch,
        "length": given.length,
        "lr": given.lr,
        "dropout": given.dropout,
        "parameters": parameters,
        "bytes_per_parameter": len(text("train")) / parameters,
        "epochs": watch.records[-1]["epochs"],
        "best_step": best["step"],
        "validation_loss": evaluate(model, given.length, given.windows),
        "unigram_loss": unigram_loss(),
        "seconds": seconds,
        "command": " ".join(sys.argv[1:]),
        "sample": continued(model, "def ", 600),
    }


def unigram_loss() -> float:
    """Return the nats per byte of the validation text under the shares of bytes in the training text."""
    train_counts, others = (torch.bincount(text(split).long(), minlength=256) for split in ("train", "validation"))
    shares = (train_counts + 1) / (train_counts + 1).sum()
    return -(others * shares.log()).sum().item() / int(others.sum())


@torch.no_grad()
def continued(model: Transformer, prompt: str, length: int, temperature: float = 0.7, seed: int = 0) -> str:
    """Return the prompt and `length` bytes that the model writes after it, drawn with a seed."""
    tokens = torch.tensor([list(prompt.encode())], device=next(model.parameters()).device)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(length):
        logits = model(tokens[:, -model.config.context :])[:, -1].float().cpu()
        drawn = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
        tokens = torch.cat([tokens, drawn.to(tokens.device)], dim=1)
    return bytes(tokens[0].tolist()).decode(errors="replace")


if __name__ == "__main__":
    program.run(main)
