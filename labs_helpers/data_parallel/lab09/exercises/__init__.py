"""The exercises of lab 09, one file each: stub, answer and reference in one."""

from labs_helpers.data_parallel.lab09.exercises.ex1_states_in_bytes import states_in_bytes
from labs_helpers.data_parallel.lab09.exercises.ex2_shard_pieces import shard_pieces
from labs_helpers.data_parallel.lab09.exercises.ex3_sharded_groups import sharded_groups
from labs_helpers.data_parallel.lab09.exercises.ex4_zero1_step import zero1_step
from labs_helpers.data_parallel.lab09.exercises.ex5_sent_per_step import sent_per_step
from labs_helpers.data_parallel.lab09.exercises.ex6_reduce_in_backward import reduce_in_backward
from labs_helpers.data_parallel.lab09.exercises.ex7_shard_module import shard_module
from labs_helpers.data_parallel.lab09.exercises.ex8_clip_shards import clip_shards
from labs_helpers.data_parallel.lab09.exercises.ex9_checkpoint import checkpoint
from labs_helpers.data_parallel.lab09.exercises.ex11_gather_ahead import gather_ahead
from labs_helpers.data_parallel.lab09.exercises.ex12_tokens_to_hide import tokens_to_hide

__all__ = [
    "checkpoint",
    "clip_shards",
    "gather_ahead",
    "reduce_in_backward",
    "sent_per_step",
    "shard_module",
    "shard_pieces",
    "sharded_groups",
    "states_in_bytes",
    "tokens_to_hide",
    "zero1_step",
]
