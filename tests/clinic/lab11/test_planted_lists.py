"""Plant each mistake that the checks of lab 11 list, as an answer."""

from labs_helpers.clinic.lab11 import checks as check
from labs_helpers.clinic.lab11.checks import leak_mistakes, replica_mistakes, wait_mistakes
from tests.planted import PlantedLists


def of_events(leaks):
    return lambda events, steps: leaks(events, steps)


def of_records(waits):
    return lambda begun, members: waits(begun, members)


def of_replicas(lists):
    return lambda parameters, group: lists(group.comm.allgather(parameters))[group.rank]


class TestLab11(PlantedLists):
    LISTS = (
        (check.find_leak, leak_mistakes.MISTAKES, of_events),
        (check.waits_for, wait_mistakes.MISTAKES, of_records),
        (check.differing, replica_mistakes.MISTAKES, of_replicas),
    )
