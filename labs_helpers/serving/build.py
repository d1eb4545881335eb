"""Build an engine by the name of its model: the trained byte model, or any size with random weights."""

from __future__ import annotations

import torch

from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.byte_model import load_byte_model
from labs_helpers.quantization.model import quantize
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.measurements import BLOCK_SIZE, model_of
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.text import ByteTokenizer

TRAINED = "bytes"
CONTEXT = 2048  # of random weights


class LetterTokenizer(ByteTokenizer):
    """Stands for the tokenizer of a model with random weights: a token is a letter, whatever its number."""

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def decode(self, token: int) -> bytes:
        return bytes([ord("a") + token % 26])


def build(
    size: str = TRAINED,
    weights: str = "bf16",
    *,
    slots: int = 32,
    budget: int = 1024,
    static: bool = False,
    sharing: bool = True,
    most_waiting: int = 1024,
) -> Engine:
    """Return an engine on this machine's device, with a cache that holds `slots` requests as long as the context.

    size: TRAINED, or another key of `transformer.config.SIZES`. weights: 'bf16', or a key of
    `quantization.model.SCHEMES`; without a GPU, bf16 weights compute in float32, which CPUs do faster.
    """
    on_gpu = this_machine().device == "cuda"
    dtype = torch.bfloat16 if on_gpu else torch.float32
    if size == TRAINED:
        model = load_byte_model(device=this_machine().device, dtype=dtype)
        if weights != "bf16":
            quantize(model, weights)
    else:
        model = model_of(size, CONTEXT, weights, dtype)
    vocabulary, context = model.config.vocabulary, model.config.context
    tokenizer = None if vocabulary == ByteTokenizer.vocabulary else LetterTokenizer(vocabulary)
    blocks = slots * -(-context // BLOCK_SIZE)
    return Engine(
        model,
        blocks=blocks,
        block_size=BLOCK_SIZE,
        slots=slots,
        budget=max(budget, slots),
        static=static,
        sharing=sharing,
        most_waiting=most_waiting,
        tokenizer=tokenizer,
    )


def warm_up(engine: Engine) -> None:
    """Capture the engine's graphs, and compile what a short request needs."""
    engine.prepare()
    engine.add([0], SamplingParameters(max_tokens=2, seed=0))
    while engine.has_work():
        engine.step()
