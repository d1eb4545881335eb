"""Published training runs, to compare the planner's predictions with.

Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021
(arXiv 2104.04473), table 1: GPT models in float16 on A100s with 80 GB, 8 per node, with 8 × 200 Gb/s InfiniBand,
sequences of 2,048 tokens, full recomputation. Micro-batches and chunks are those of the authors' scripts
(Megatron-LM, examples/sc21/run_table_1.sh).

Dubey et al., "The Llama 3 herd of models", 2024 (arXiv 2407.21783), table 4: 405 billion parameters in bfloat16 on
H100s with 80 GB, 8 per node, 400 Gb/s RoCE per GPU. Three facts are not published and assumed here:

- Micro-batches have one sequence, and chunks one layer (126 layers, embedding and head in 16 × 8 chunks). With 4 chunks
  per rank all three predictions stay within 20% as well; with 1, none does.
- No run recomputes activations. The paper says so for 8,192 tokens only.
- TFLOP/s count the causal half of the L × L scores. If they count all, the published steps take 4% longer for 8,192
  tokens and 40% longer for 131,072, and the last prediction is too low by more than 20%.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.planner.accounting import GB
from labs_helpers.planner.candidate import evaluate
from labs_helpers.planner.cluster import LINK_SHARE, Cluster
from labs_helpers.planner.layout import Layout, Run
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.search import find_layouts
from labs_helpers.transformer import TransformerConfig

if TYPE_CHECKING:
    import pandas


class Published(NamedTuple):
    """A published run. flops: of a step, as the paper counts them. tflops: TFLOP/s per GPU of the paper."""

    name: str
    run: Run
    cluster: Cluster
    layout: Layout
    flops: float
    tflops: float

    @property
    def seconds(self) -> float:
        """Seconds of a step."""
        return self.flops / (self.tflops * 1e12 * self.cluster.gpus)


# (billion parameters, heads, width, layers, tp, pp, GPUs, batch, TFLOP/s per GPU; micro-batch, chunks)
NARAYANAN = (
    (1.7, 24, 2304, 24, 1, 1, 32, 512, 137, 16, 1),
    (3.6, 32, 3072, 30, 2, 1, 64, 512, 138, 16, 1),
    (7.5, 32, 4096, 36, 4, 1, 128, 512, 142, 16, 1),
    (18.4, 48, 6144, 40, 8, 1, 256, 1024, 135, 8, 1),
    (39.1, 64, 8192, 48, 8, 2, 512, 1536, 138, 4, 1),
    (76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140, 2, 3),
    (145.6, 96, 12288, 80, 8, 8, 1536, 2304, 148, 2, 2),
    (310.1, 128, 16384, 96, 8, 16, 1920, 2160, 155, 1, 2),
    (529.6, 128, 20480, 105, 8, 35, 2520, 2520, 163, 1, 3),
    (1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163, 1, 1),
)
# (GPUs, tp, cp, pp, dp, length, sequences per dp rank, TFLOP/s per GPU)
LLAMA = (
    (8192, 8, 1, 16, 64, 8192, 32, 430),
    (16384, 8, 1, 16, 128, 8192, 16, 400),
    (16384, 8, 16, 16, 8, 131072, 16, 380),
)
FITTED = (("GPT 145.6B", 1536), ("Llama 3 405B, 8,192 tokens", 8192))  # the rows that PRODUCTS is fitted to
LLAMA_405B = TransformerConfig(128_256, layers=126, width=16384, heads=128, hidden=53248, kv_heads=8, tied=False)
# bytes/s of a node's ports. As inside a node, messages are assumed to reach LINK_SHARE of them.
NODE_A100, NODE_H100 = 8 * 25e9, 8 * 50e9


def gpt(layers: int, width: int, heads: int, vocabulary: int = 51_200) -> TransformerConfig:
    """Return the shape of a GPT model; SwiGLU with 8/3 of the width has the matrices' parameters of an MLP with 4."""
    return TransformerConfig(vocabulary, layers, width, heads, hidden=-(-8 * width // (3 * 64)) * 64)


def published() -> list[Published]:
    """Return the thirteen runs."""
    return [*(_narayanan(*row) for row in NARAYANAN), *(_llama(*row) for row in LLAMA)]


def _narayanan(
    billions: float, heads: int, width: int, layers: int, tp: int, pp: int, gpus: int, batch: int, tflops: float,
    micro_batch: int, chunks: int,
) -> Published:  # fmt: skip
    run = Run(
        Model.of(gpt(layers, width, heads)), batch, 2048, states="fp16 with float32 copies of both",
        attention="plain", stages=("DDP",), checkpoint=(True,), sequence_parallel=False,
    )  # fmt: skip
    layout = Layout(gpus // (tp * pp), tp, pp, chunks=chunks, micro_batch=micro_batch, checkpoint=True)
    share = 1 + 2048 / (6 * width) + 51_200 / (16 * layers * width)
    flops = 96 * batch * 2048 * layers * width**2 * share  # equation 3 of the paper, with recomputation
    cluster = Cluster.of("A100", gpus, between=LINK_SHARE * NODE_A100)
    return Published(f"GPT {billions:g}B", run, cluster, layout, flops, tflops)


def _llama(gpus: int, tp: int, cp: int, pp: int, dp: int, length: int, each: int, tflops: float) -> Published:
    run = Run(
        Model.of(LLAMA_405B), dp * each, length, states="bf16 with float32 master and gradients",
        stages=("DDP", "ZeRO-1"),
    )  # fmt: skip
    layout = Layout(dp, tp, pp, cp, chunks=8, stage="ZeRO-1", sequence_parallel=True)
    cluster = Cluster.of("H100", gpus, between=LINK_SHARE * NODE_H100)
    return Published(f"Llama 3 405B, {length:,} tokens", run, cluster, layout, run.flops(), tflops)


def predictions() -> pandas.DataFrame:
    """Return the published and the predicted seconds per step of each run.

    GB: predicted memory of the published layout. fitted: whether the planner's constant is fitted to the row.
    """
    import pandas

    rows = []
    for one in published():
        found = evaluate(one.run, one.cluster, one.layout)
        rows.append(
            {
                "run": one.name,
                "GPUs": one.cluster.gpus,
                "layout": str(one.layout),
                "published s": one.seconds,
                "predicted s": found.time.step,
                "ratio": found.time.step / one.seconds,
                "GB": found.memory / GB,
                "fitted": (one.name, one.cluster.gpus) in FITTED,
            }
        )
    return pandas.DataFrame(rows).set_index("run")


def compare() -> pandas.DataFrame:
    """Return `predictions`, with the place of each published grid in the planner's ranking. It takes seconds.

    The ranking allows the techniques of the paper: for Narayanan et al. no ZeRO, no sequence parallelism and
    recomputation everywhere; for Llama 3 its cp. In a grid the planner chooses micro-batch, chunks and, for Llama 3,
    ZeRO stage and checkpoints.
    """
    places, grids, first = [], [], []
    for one in published():
        ranking = find_layouts(one.run, one.cluster, one.layout.cp)
        order = [candidate.layout[:3] for candidate in ranking.candidates]
        places.append(order.index(one.layout[:3]) + 1)
        grids.append(len(order))
        first.append(str(ranking.candidates[0].layout))
    return predictions().assign(place=places, of=grids, **{"planner's first": first})
