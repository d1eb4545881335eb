"""Each check of lab 09 names the mistakes that people make, and accepts right answers written differently."""

from __future__ import annotations

from labs_helpers.data_parallel.lab09 import checks as check
from labs_helpers.data_parallel.lab09 import exercises
from tests.data_parallel.lab09.bugs import (
    ex1_states_in_bytes,
    ex2_shard_pieces,
    ex3_sharded_groups,
    ex4_zero1_step,
    ex5_sent_per_step,
    ex6_reduce_in_backward,
    ex7_shard_module,
    ex8_clip_shards,
    ex9_checkpoint,
    ex10_hybrid_step,
    ex11_gather_ahead,
    ex12_tokens_to_hide,
)
from tests.data_parallel.lab09.exercises.ex10_hybrid_step import hybrid_step
from tests.planted import PlantedBugs

FILES = (
    ex1_states_in_bytes,
    ex2_shard_pieces,
    ex3_sharded_groups,
    ex4_zero1_step,
    ex5_sent_per_step,
    ex6_reduce_in_backward,
    ex7_shard_module,
    ex9_checkpoint,
    ex8_clip_shards,
    ex10_hybrid_step,
    ex11_gather_ahead,
    ex12_tokens_to_hide,
)


class TestLab09(PlantedBugs):
    check = check
    BUGS = [bug for file in FILES for bug in file.BUGS]
    DIFFERENT = [answer for file in FILES for answer in file.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"hybrid_step": hybrid_step}
