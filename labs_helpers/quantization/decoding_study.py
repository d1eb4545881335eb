"""Measure decoding with one launch per product on a GPU, in bf16 and with quantised weights, beside PyTorch's loops.

    python -m labs_helpers.quantization.decoding_study                  # about 100 s on an H200
    python -m labs_helpers.quantization.decoding_study --batches 1

It measures as `transformer.decoding_study` does. The embedding and the output's weight stay in bf16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from labs_helpers.launch import program
from labs_helpers.measure.machine import prepare_triton
from labs_helpers.measure.study import Study
from labs_helpers.quantization.weights import Fp8Weight, Int4Weight, Int8Weight, PairedInt4Weight
from labs_helpers.transformer.decoding_study import LOOPS, Case, Made, ours, run
from labs_helpers.transformer.model import Transformer
from labs_helpers.transformer.sampling import Sampling

STUDY = Study("quantization-decoding", "python -m labs_helpers.quantization.decoding_study")
load = STUDY.load
FORMATS: dict[str, Callable[[Any], Any]] = {
    "int8": Int8Weight.quantize,
    "int4, group 128": lambda weight: PairedInt4Weight.of(Int4Weight.quantize(weight, 128)),
    "fp8": Fp8Weight.quantize,
}


class Weights(nn.Module):
    """A linear layer's place, with a quantised weight that only the decode loop reads."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight


def requantised(quantise: Callable[[Any], Any], model: Transformer) -> None:
    """Replace the weights of all blocks' linear layers, one at a time."""
    blocks: Any = model.blocks
    for block in blocks:
        for part in block.children():
            for name, layer in list(part.named_children()):
                setattr(part, name, Weights(quantise(layer.weight.detach())))


def cases() -> dict[str, Case]:
    """Return the loops to measure for each format of the weights."""
    prepare_triton()
    from labs_helpers.quantization.decode_operations import few_rows_operations

    graph = partial(ours, operations=few_rows_operations())
    few_rows: dict[str, Made] = {
        "few_rows, eager": partial(graph, graph=False),
        "few_rows, CUDA graph": graph,
        "few_rows, CUDA graph, greedy": partial(graph, how=Sampling()),
    }
    quantised: dict[str, Made] = {"few_rows, CUDA graph": graph}
    formats: dict[str, Case] = {name: (quantised, partial(requantised, way)) for name, way in FORMATS.items()}
    return {"bf16": (LOOPS | few_rows, None)} | formats


def main(arguments: list[str] | None = None) -> None:
    run(cases(), arguments, STUDY, __doc__)


if __name__ == "__main__":
    program.run(main)
