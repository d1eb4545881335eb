"""The checks of lab 09, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.data_parallel.lab09.checks.ex1_states_in_bytes import states_in_bytes
from labs_helpers.data_parallel.lab09.checks.ex2_shard_pieces import shard_pieces
from labs_helpers.data_parallel.lab09.checks.ex3_sharded_groups import sharded_groups
from labs_helpers.data_parallel.lab09.checks.ex4_zero1_step import zero1_step
from labs_helpers.data_parallel.lab09.checks.ex5_sent_per_step import sent_per_step
from labs_helpers.data_parallel.lab09.checks.ex6_reduce_in_backward import reduce_in_backward
from labs_helpers.data_parallel.lab09.checks.ex7_shard_module import shard_module
from labs_helpers.data_parallel.lab09.checks.ex8_clip_shards import clip_shards
from labs_helpers.data_parallel.lab09.checks.ex9_checkpoint import checkpoint
from labs_helpers.data_parallel.lab09.checks.ex10_hybrid_step import hybrid_step
from labs_helpers.data_parallel.lab09.checks.ex11_gather_ahead import gather_ahead
from labs_helpers.data_parallel.lab09.checks.ex12_tokens_to_hide import tokens_to_hide

__all__ = [
    "checkpoint",
    "clip_shards",
    "gather_ahead",
    "hybrid_step",
    "reduce_in_backward",
    "sent_per_step",
    "shard_module",
    "shard_pieces",
    "sharded_groups",
    "states_in_bytes",
    "summary",
    "tokens_to_hide",
    "zero1_step",
]
