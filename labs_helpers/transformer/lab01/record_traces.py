"""Record on this machine the traces, and the memory of a step, that lab 01 shows beside those of a student's machine.

    python -m labs_helpers.transformer.lab01.record_traces                  # all of them, to build/records/traces/
    python -m labs_helpers.transformer.lab01.record_traces step --record    # for the lab, to results/traces/

    forward          the forward pass, eager, of one sequence, with the parts of plain attention as ranges
    step             a training step of two layers, eager with plain attention; ranges forward, backward, update
    step-compiled    the same with scaled_dot_product_attention, compiled
    experts-looped   the forward pass of a block of experts, one after another
    experts-batched  the same, all in one batch
    memory           the bytes alive during a training step of the whole model

A GPU runs the model `small`; a CPU runs `tiny` with smaller inputs.
"""

from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from labs_helpers.launch import program
from labs_helpers.measure import results, trace
from labs_helpers.measure.device_memory import release
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.memory_timeline import memory_timeline
from labs_helpers.measure.options import add_out, folder_to_write
from labs_helpers.measure.provenance import provenance
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.lab01 import ranges
from labs_helpers.transformer.lab01.moe import ACTIVE, WAYS, Experts
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.setups import Setup
from labs_helpers.transformer.training_step import Training

LARGEST = 150_000  # bytes of a file: all of them travel with the course
COMMAND = "python -m labs_helpers.transformer.lab01.record_traces"
SHAPES: dict[str, dict[str, Any]] = {
    "cuda": {
        "size": "small", "dtype": torch.bfloat16, "precision": "bf16", "forward": (1, 512), "step": (4, 1024),
        "width": 1024, "hidden": 2816, "experts": 8, "tokens": 2048,
    },
    "cpu": {
        "size": "tiny", "dtype": torch.float32, "precision": "fp32", "forward": (1, 128), "step": (2, 128),
        "width": 64, "hidden": 192, "experts": 8, "tokens": 128,
    },
}  # fmt: skip


def path_of(name: str, machine: str | None = None, folder: Path | None = None) -> Path:
    """Return the file of a recording: results/traces/step.nvidia-h200.json.gz; that of memory is plain JSON.

    machine: a Machine's label, by default this machine's. folder: the parent of traces/, by default results/.
    """
    path = results.path_for(name, machine, folder)
    return path.parent / "traces" / (path.stem + (".json" if name == "memory" else ".json.gz"))


def recorded(name: str, machine: str = "NVIDIA H200") -> trace.Trace:
    """Return a trace recorded on a machine, for the course or else by the reader. FileNotFoundError names the
    command that records it."""
    return trace.load(_there(name, machine))


def recorded_memory(machine: str = "NVIDIA H200") -> dict[str, Any]:
    """Return the recorded memory of a step: "timeline" and "base" as `draw_memory` takes them, "size", "batch",
    "length", "setup" and "on". FileNotFoundError names the command that records it."""
    content: dict[str, Any] = json.loads(_there("memory", machine).read_text())
    return content


def _there(name: str, machine: str) -> Path:
    paths = [path_of(name, machine, folder) for folder in (results.results_dir(), results.own_dir())]
    for path in paths:
        if path.is_file():
            return path
    raise FileNotFoundError(f"nothing recorded at {paths[0]}; make it with: {COMMAND}")


def forward() -> trace.Trace:
    """Run one sequence through the model, or through two of its layers if all would give too large a file."""
    shape, device = _shape(), this_machine().device
    config = SIZES[shape["size"]]

    def through(layers: int) -> trace.Trace:
        torch.manual_seed(0)
        with torch.device(device):
            model = Transformer(dataclasses.replace(config, layers=layers), ranges.plain).to(shape["dtype"])
            tokens = torch.randint(config.vocabulary, shape["forward"])
        return _record(lambda: model(tokens))

    whole = through(config.layers)
    return whole if len(trace.packed(whole)) <= LARGEST else through(2)


def step() -> trace.Trace:
    return _step(Setup(precision=_shape()["precision"]))


def step_compiled() -> trace.Trace:
    return _step(Setup(precision=_shape()["precision"], attention="sdpa", compiled=True))


def _step(setup: Setup) -> trace.Trace:
    config = dataclasses.replace(SIZES[_shape()["size"]], layers=2)
    training = Training(config, setup, *_shape()["step"])
    return _record(lambda: _phases(training, ranges.named), grad=True)


def experts_looped() -> trace.Trace:
    return _experts("looped")


def experts_batched() -> trace.Trace:
    return _experts("batched")


def _experts(way: str) -> trace.Trace:
    """Record both implementations. Raise RuntimeError if their results differ: `batched` has rows for twice the
    mean, which should suffice."""
    shape, device = _shape(), this_machine().device
    torch.manual_seed(0)
    with torch.device(device):
        block = Experts(
            shape["width"], shape["hidden"], shape["experts"], capacity=2 * ACTIVE * shape["tokens"] // shape["experts"]
        ).to(shape["dtype"])
        x = torch.randn(shape["tokens"], shape["width"], dtype=shape["dtype"])
    with torch.no_grad():
        one, other = (function(block, x).float() for function in WAYS.values())
    if not (difference := float((one - other).norm() / one.norm())) < 0.02:
        raise RuntimeError(f"the two ways of the experts differ by {difference:.1%}: are there rows for all tokens?")
    block.way = way
    return _record(lambda: block(x))


def memory() -> dict[str, Any]:
    """Record the bytes alive during a training step, above the parameters and moments."""
    shape = _shape()
    batch, length = shape["step"]
    setup = Setup(precision=shape["precision"])
    training = Training(SIZES[shape["size"]], setup, batch, length)
    for _ in range(2):  # libraries take their workspaces, the optimizer makes its states
        training.step()
    states = [value for state in training.optimizer.state.values() for value in state.values()]
    base = {
        "parameters": sum(parameter.nbytes for parameter in training.model.parameters()),
        "AdamW's moments": sum(value.nbytes for value in states if value.ndim),
    }
    before = None if training.device.type == "cuda" else sum(base.values())
    timeline = memory_timeline(lambda mark: _phases(training, mark), before=before)[1]
    named = {"size": shape["size"], "batch": batch, "length": length, "setup": str(setup)}
    return named | {"base": base, "timeline": timeline, "on": provenance()}


RECORDINGS: dict[str, Callable[[], Any]] = {
    "forward": forward,
    "step": step,
    "step-compiled": step_compiled,
    "experts-looped": experts_looped,
    "experts-batched": experts_batched,
    "memory": memory,
}


def _shape() -> dict[str, Any]:
    return SHAPES[this_machine().device]


def _phases(training: Training, begin: Callable[[str], Any]) -> None:
    """Run a training step. begin(name) is called as each phase begins, and may return a context for it."""

    def phase(name: str, work: Callable[[], Any]) -> Any:
        context = begin(name)
        if context is None:
            return work()
        with context:
            return work()

    loss = phase("forward", training.forward)
    phase("backward", lambda: training.backward(loss))
    phase("update", training.update)


def _record(function: Callable[[], Any], grad: bool = False) -> trace.Trace:
    """Trace a call that has been made before. Raise RuntimeError if a GPU worked but the profiler did not see it."""
    with torch.set_grad_enabled(grad):
        for _ in range(5):
            function()
        found = trace.record(function, warmup=2)
    if not trace.launches(found.events):
        raise RuntimeError("the profiler saw no kernel; on a GPU it needs CUPTI, and that nothing else profiles")
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = program.Parser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(RECORDINGS)}; by default all")
    add_out(parser, "traces/", folder_to_write)
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(RECORDINGS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(RECORDINGS)}")
    failures = 0
    for name in options.names or RECORDINGS:
        path = path_of(name, folder=options.out or results.own_dir())
        try:
            release()
            made = RECORDINGS[name]()
            if name == "memory":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(made) + "\n")
                said = f"peak {made['timeline']['peak'] / 1e9:.3g} GB"
            else:
                trace.save(path, made)
                us = ", ".join(f"{kind} {us:.0f}" for kind, us in trace.by_kind(made.events).items())
                said = f"{trace.launches(made.events)} kernels, {trace.busy(made.events):.0%} busy, in µs: {us}"
        except Exception:
            traceback.print_exc()  # the others are recorded all the same
            failures += 1
            continue
        size = path.stat().st_size
        print(f"{path}: {size:,} bytes{' (TOO LARGE)' if size > LARGEST else ''}; {said}", flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    program.run(main)
