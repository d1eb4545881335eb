"""Find the layouts of a run on a cluster, rank those that fit by predicted time, and explain why others are rejected.

found = find_layouts(Run(Model.of(175e9), batch=1536), Cluster.of("H100", 1024))
found.best, found.table(5), found.reasons(), found.at(dp=16, tp=8, pp=8)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.planner.accounting import GB
from labs_helpers.planner.candidate import Candidate, evaluate
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.layout import Layout, Run
from labs_helpers.planner.limits import BESIDE_A_PIPELINE, obstacle

if TYPE_CHECKING:
    import pandas

MICRO_BATCHES = (1, 2, 4, 8, 16)  # sequences


class Rejected(NamedTuple):
    """A grid of dp × tp × pp × cp ranks on which no layout works. kind: that of an `Obstacle`, or "memory"."""

    grid: Layout
    kind: str
    reason: str
    memory: float = 0.0  # bytes that its smallest layout needs, if it fails at memory


class Ranking(NamedTuple):
    """The best layout of every grid that fits, fastest first, and the grids that are rejected."""

    run: Run
    cluster: Cluster
    candidates: list[Candidate]
    rejected: list[Rejected]

    @property
    def best(self) -> Candidate | None:
        return self.candidates[0] if self.candidates else None

    def at(self, dp: int, tp: int, pp: int) -> Candidate | Rejected:
        """Return the best layout of one grid, or its rejection. Raise ValueError if it has another number of GPUs."""
        for candidate in self.candidates:
            if candidate.layout[:3] == (dp, tp, pp):
                return candidate
        for rejected in self.rejected:
            if rejected.grid[:3] == (dp, tp, pp):
                return rejected
        raise ValueError(f"dp {dp} × tp {tp} × pp {pp} is no grid of this cluster of {self.cluster.gpus} GPUs")

    def table(self, top: int | None = None) -> pandas.DataFrame:
        """Return one row per grid: its options, GB of the fullest GPU, seconds, and fractions of the step.

        tokens/s is per GPU. top: number of rows, by default all.
        """
        import pandas

        rows = {}
        for one in self.candidates[:top]:
            layout, time = one.layout, one.time
            rows[str(layout)] = {
                "stage": layout.stage,
                "micro-batch": layout.micro_batch,
                "v": layout.chunks,
                "checkpoint": "yes" if layout.checkpoint else "no",
                "GB": one.memory / GB,
                "step s": time.step,
                "bubble": time.bubble_share,
                "exposed": time.exposed_share,
                "MFU": one.mfu,
                "tokens/s": self.run.batch * self.run.length / time.step / self.cluster.gpus,
            }
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("layout")

    def reasons(self) -> list[str]:
        """Return one line per kind of rejection: the number of grids, and the one that needs the least memory."""
        kinds: dict[str, list[Rejected]] = {}
        for one in self.rejected:
            kinds.setdefault(one.kind, []).append(one)
        lines = []
        for kind, ones in kinds.items():
            one = min(ones, key=lambda each: each.memory)
            grids = "grid" if len(ones) == 1 else "grids"
            lines.append(f"{len(ones):,} {grids} ({kind}), such as {one.grid}: {one.reason}")
        return lines


def find_layouts(run: Run, cluster: Cluster, cp: int = 1) -> Ranking:
    """Evaluate every grid of dp × tp × pp × cp GPUs with its ZeRO stages, micro-batches, chunks and checkpoints.

    Raise ValueError if cp does not divide the GPUs.
    """
    candidates, rejected = [], []
    for grid in _grids(cluster, cp):
        found = _best_of(run, cluster, grid)
        if isinstance(found, Rejected):
            rejected.append(found)
        else:
            candidates.append(found)
    return Ranking(run, cluster, sorted(candidates, key=lambda one: one.time.step), rejected)


def _grids(cluster: Cluster, cp: int) -> Iterator[Layout]:
    if cp < 1 or cluster.gpus % cp:
        raise ValueError(f"cp {cp} does not divide {cluster.gpus} GPUs")
    left = cluster.gpus // cp
    for tp in _divisors(left):
        for pp in _divisors(left // tp):
            yield Layout(left // (tp * pp), tp, pp, cp)


def _best_of(run: Run, cluster: Cluster, grid: Layout) -> Candidate | Rejected:
    """Return the fastest layout of a grid that fits, or why there is none."""
    stages = [stage for stage in run.stages if grid.pp == 1 or stage in BESIDE_A_PIPELINE] or run.stages[:1]
    # Sequence parallelism saves memory and sends as much.
    grid = grid._replace(stage=stages[0], sequence_parallel=run.sequence_parallel and grid.tp > 1)
    if found := obstacle(run, cluster, grid):  # one chunk and one sequence divide whatever more of them divide
        return Rejected(grid, *found)
    fitting: list[Candidate] = []
    too_large: list[Candidate] = []
    for layout in _layouts(run, cluster, grid, stages):
        for checkpoint in sorted(run.checkpoint):
            one = evaluate(run, cluster, layout._replace(checkpoint=checkpoint))
            (fitting if one.fits else too_large).append(one)
            if one.fits:
                break  # checkpoints would only add time
    if fitting:
        return min(fitting, key=lambda one: one.time.step)
    least = min(too_large, key=lambda one: one.memory)
    return Rejected(grid, "memory", _too_large(least), least.memory)


def _layouts(run: Run, cluster: Cluster, grid: Layout, stages: Sequence[str]) -> Iterator[Layout]:
    """Yield the possible layouts of a grid, without checkpoints."""
    most = run.model.shape.layers // grid.pp + 1 if grid.pp > 1 else 1
    for micro_batch, chunks in product(MICRO_BATCHES, range(1, most + 1)):
        layout = grid._replace(micro_batch=micro_batch, chunks=chunks)
        if not obstacle(run, cluster, layout):
            for stage in stages if grid.dp * grid.cp > 1 else stages[:1]:
                yield layout._replace(stage=stage)


def _too_large(one: Candidate) -> str:
    part = max(one.parts, key=lambda each: each.bytes)
    return (
        f"needs at least {one.memory / GB:,.1f} GB per GPU ({part.name}: {part.bytes / GB:,.1f} GB), but a GPU has "
        f"{one.capacity / GB:.0f} GB"
    )


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
