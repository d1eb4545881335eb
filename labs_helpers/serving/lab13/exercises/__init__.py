"""The exercises of lab 13, one file each: stub, answer and reference in one."""

from labs_helpers.serving.lab13.exercises.ex1_step_cost import step_cost
from labs_helpers.serving.lab13.exercises.ex2_attend_cached import attend_cached
from labs_helpers.serving.lab13.exercises.ex3_users_that_fit import users_that_fit
from labs_helpers.serving.lab13.exercises.ex4_block_tables import block_tables
from labs_helpers.serving.lab13.exercises.ex5_paged_attention import paged_attention
from labs_helpers.serving.lab13.exercises.ex6_next_step import next_step
from labs_helpers.serving.lab13.exercises.ex7_chunked_passes import chunked_passes
from labs_helpers.serving.lab13.exercises.ex8_stream_text import stream_text
from labs_helpers.serving.lab13.exercises.ex9_verify import verify
from labs_helpers.serving.lab13.exercises.ex10_best_speculation import best_speculation

__all__ = [
    "attend_cached",
    "best_speculation",
    "block_tables",
    "chunked_passes",
    "next_step",
    "paged_attention",
    "step_cost",
    "stream_text",
    "users_that_fit",
    "verify",
]
