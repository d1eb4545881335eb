"""Cut a transformer into pipeline stages of equal cost, and build the ones that a rank holds.

The parts to cut between are the embedding, each block, and the output. The embedding costs little time, the output as
much as several blocks, so stages with the same number of blocks take different times.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from labs_helpers.transformer import Transformer, TransformerConfig
from labs_helpers.transformer.counts import forward_flops

Span = tuple[int, int]  # the parts start … stop − 1


def part_costs(config: TransformerConfig, length: int) -> list[float]:
    """Return the FLOPs per token of each part's forward pass: the embedding, the blocks, the output."""
    flops = forward_flops(config, length, causal=True)
    block = (flops["attention"] + flops["scores"] + flops["mlp"]) / config.layers
    return [0.0, *[block] * config.layers, flops["output"]]


def cut_by_cost(costs: Sequence[float], stages: int) -> list[Span]:
    """Return the parts of each stage, such that the most expensive stage costs as little as possible.

    costs: of the parts, in order. Each stage has at least one part. ValueError for fewer parts than stages.
    """
    count = len(costs)
    if not 1 <= stages <= count:
        raise ValueError(f"{count} parts do not make {stages} stages of at least one part each")
    sums = [0.0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    # best[k][n]: the smallest possible largest cost of k stages that hold the first n parts, and where the last begins.
    best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
    for k in range(1, stages + 1):
        best.append({
            n: min((max(best[-1][start][0], sums[n] - sums[start]), start) for start in best[-1] if start < n)
            for n in range(k, count - stages + k + 1)
        })  # fmt: skip
    spans, stop = [], count
    for k in range(stages, 0, -1):
        start = best[k][stop][1]
        spans.append((start, stop))
        stop = start
    return spans[::-1]


def equal_blocks(layers: int, stages: int) -> list[Span]:
    """Return the parts of stages with equal numbers of blocks, the earlier ones larger: the embedding joins the first
    stage and the output the last. ValueError for fewer layers than stages."""
    if stages > layers:
        raise ValueError(f"{layers} blocks do not make {stages} stages of at least one block each")
    size, larger = divmod(layers, stages)
    stops = [sum(size + (s < larger) for s in range(k + 1)) + 1 for k in range(stages)]
    return list(zip([0, *stops[:-1]], [*stops[:-1], layers + 2], strict=True))


class TransformerStage(nn.Module):
    """The parts start … stop − 1 of a transformer: a module from tokens or activations to activations or logits.

    model: the whole transformer (lab 01's, or lab 07's tensor-parallel one), from which this stage takes its parts;
    the other parts are dropped. `model`'s parameters keep their names. A tied output on a later stage than the
    embedding is a copy of its weight, so that the gradients of both have to be added (`tied.sum_tied_gradients`).
    """

    def __init__(self, model: Transformer, span: Span) -> None:
        super().__init__()
        layers, (start, stop) = model.config.layers, span
        self.model, self.span = model, span
        self.first, self.last = start == 0, stop == layers + 2
        blocks = {str(i): block for i, block in enumerate(model.blocks) if start <= i + 1 < stop}
        model.blocks = nn.ModuleDict(blocks)  # type: ignore[assignment]  # not a list: the blocks keep their names
        if not self.first and not (self.last and model.output is None):
            model.embedding = None  # type: ignore[assignment]
        if not self.last:
            model.norm, model.output = None, None  # type: ignore[assignment]

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, L) on the first stage, or activations (B, L, width), to activations, or on the last stage
        logits."""
        model = self.model
        if self.first:
            length, x = x.shape[1], model.embedding(x)
        else:
            length = model.whole_length(x)
        x = model.run_blocks(x, model.blocks.children(), length)
        return model.logits(x) if self.last else x
