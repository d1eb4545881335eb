"""Random valid schedules: every rank works in an order that some run of the pipeline could have had."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from labs_helpers.pipeline.schedule import BACKWARD, FORWARD, INPUT, WEIGHT, Action, Schedule, needs


@st.composite
def random_schedules(draw, max_ranks: int = 4, max_micro_batches: int = 5, split: bool | None = None) -> Schedule:
    """Draw ranks, chunks and micro-batches, and hand out computations that are ready until none is left."""
    ranks, micro_batches = draw(st.integers(1, max_ranks)), draw(st.integers(1, max_micro_batches))
    stages = ranks * draw(st.integers(1, 2))
    rank_of = tuple(range(ranks)) + tuple(draw(st.permutations(range(ranks)))) * (stages > ranks)
    split = draw(st.booleans()) if split is None else split
    kinds = (FORWARD, INPUT, WEIGHT) if split else (FORWARD, BACKWARD)
    generator = random.Random(draw(st.integers(0, 2**32)))
    left = {Action(kind, stage, i) for kind in kinds for stage in range(stages) for i in range(micro_batches)}
    done: set[Action] = set()
    orders: list[list[Action]] = [[] for _ in range(ranks)]
    while left:
        ready = sorted(action for action in left if done.issuperset(needs(action, stages, split)))
        action = generator.choice(ready)
        orders[rank_of[action.stage]].append(action)
        left.remove(action)
        done.add(action)
    return Schedule("random", tuple(map(tuple, orders)), rank_of, micro_batches)
