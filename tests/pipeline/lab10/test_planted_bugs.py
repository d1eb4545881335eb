"""Each check of lab 10 names the mistakes that people make, and accepts right answers written differently."""

from __future__ import annotations

from labs_helpers.pipeline.lab10 import checks as check
from labs_helpers.pipeline.lab10 import exercises
from tests.pipeline.lab10.bugs import (
    ex1_stage_spans,
    ex2_naive_step,
    ex3_gpipe_order,
    ex4_one_f_one_b_order,
    ex5_bubble_and_stashes,
    ex6_interleaved_order,
    ex7_split_backward,
    ex8_rank_groups,
    ex9_unequal_order,
)
from tests.pipeline.lab10.exercises.ex9_unequal_order import unequal_order
from tests.planted import PlantedBugs

FILES = (
    ex1_stage_spans,
    ex2_naive_step,
    ex3_gpipe_order,
    ex4_one_f_one_b_order,
    ex5_bubble_and_stashes,
    ex6_interleaved_order,
    ex7_split_backward,
    ex8_rank_groups,
    ex9_unequal_order,
)


class TestLab10(PlantedBugs):
    check = check
    BUGS = [bug for file in FILES for bug in file.BUGS]
    DIFFERENT = [answer for file in FILES for answer in file.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"unequal_order": unequal_order}
