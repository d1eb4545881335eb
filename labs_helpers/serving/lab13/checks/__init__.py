"""The checks of lab 13, one file per exercise; the notebook calls `check.name(name)`."""

from labs_helpers.course.lab_summary import summary
from labs_helpers.serving.lab13.checks.ex1_step_cost import step_cost
from labs_helpers.serving.lab13.checks.ex2_attend_cached import attend_cached
from labs_helpers.serving.lab13.checks.ex3_users_that_fit import users_that_fit
from labs_helpers.serving.lab13.checks.ex4_block_tables import block_tables
from labs_helpers.serving.lab13.checks.ex5_paged_attention import paged_attention
from labs_helpers.serving.lab13.checks.ex6_next_step import next_step
from labs_helpers.serving.lab13.checks.ex7_chunked_passes import chunked_passes
from labs_helpers.serving.lab13.checks.ex8_stream_text import stream_text
from labs_helpers.serving.lab13.checks.ex9_verify import verify
from labs_helpers.serving.lab13.checks.ex10_best_speculation import best_speculation
from labs_helpers.serving.lab13.checks.ex11_conversation_tree import conversation_tree

__all__ = [
    "attend_cached",
    "best_speculation",
    "block_tables",
    "chunked_passes",
    "conversation_tree",
    "next_step",
    "paged_attention",
    "step_cost",
    "stream_text",
    "summary",
    "users_that_fit",
    "verify",
]
