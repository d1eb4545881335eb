"""Plant each mistake that the checks of exercises 5 and 7 of lab 08 name, as an answer."""

from labs_helpers.data_parallel.lab08 import checks as check
from labs_helpers.data_parallel.lab08.checks import bucket_mistakes, interval_mistakes
from tests.planted import PlantedLists


def in_buckets(fill):
    return lambda parameters, *limits: [[parameters[i] for i in one] for one in fill(parameters, *limits)]


def of_intervals(lengths):
    return lambda compute, communication: lengths(compute, communication)


class TestLab08(PlantedLists):
    LISTS = (
        (check.make_buckets, bucket_mistakes.MISTAKES, in_buckets),
        (check.exposed, interval_mistakes.MISTAKES, of_intervals),
    )
