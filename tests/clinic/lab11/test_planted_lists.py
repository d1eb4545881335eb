"""Plant each mistake that the checks of lab 11 list, as an answer."""

from labs_helpers.clinic.lab11 import checks as check
from labs_helpers.clinic.lab11.checks import (
    change_mistakes,
    elimination_mistakes,
    leak_mistakes,
    part_mistakes,
    replica_mistakes,
    straggler_mistakes,
    wait_mistakes,
)
from tests.planted import PlantedLists, by_number

STEP = {"forward": [(0, 1)]}, 2.0
TIMES = [[0.0, 9.0]] * 2, [[1.0, 10.0]] * 2


def with_part(name):
    return lambda ms: lambda *given: part_mistakes.right(*given) | {name: ms(*given)}


def with_cost(name):
    return lambda ms: lambda measure: elimination_mistakes.right(measure) | {name: ms(measure)}


def with_waste(rank):
    def answer(begun, finished):
        right = straggler_mistakes.right(begun, finished)
        found = rank(begun, finished)
        return None if found is None else (found, right[1] if right else 0.0)

    return answer


def with_rank(waste):
    def answer(begun, finished):
        right = straggler_mistakes.right(begun, finished)
        return right and (right[0], waste(begun, finished))

    return answer


def of_changes(mistake):
    return lambda measure, changes, goal: mistake(measure, changes, goal)


def of_events(leaks):
    return lambda events, steps: leaks(events, steps)


def of_records(waits):
    return lambda begun, members: waits(begun, members)


def of_replicas(lists):
    return lambda parameters, group: lists(group.comm.allgather(parameters))[group.rank]


class TestLab11(PlantedLists):
    LISTS = (
        (check.time_of_parts, by_number(part_mistakes.computing("backward"), *STEP), with_part("backward")),
        (check.time_of_parts, by_number(part_mistakes.data, *STEP), with_part("data")),
        (check.time_of_parts, by_number(part_mistakes.communication, *STEP), with_part("communication")),
        (check.time_of_parts, by_number(part_mistakes.idle, *STEP), with_part("idle")),
        *(
            (check.cost_by_elimination, by_number(mistakes, lambda **parts: [9.0]), with_cost(cost))
            for cost, mistakes in (
                ("communication", elimination_mistakes.part("communication")),
                ("data", elimination_mistakes.part("loading")),
                ("fixed", elimination_mistakes.fixed),
            )
        ),
        (check.find_straggler, by_number(straggler_mistakes.ranks, *TIMES), with_waste),
        (check.find_straggler, by_number(straggler_mistakes.limits, *TIMES), with_waste),
        (check.find_straggler, by_number(straggler_mistakes.wastes, *TIMES), with_rank),
        (check.find_leak, leak_mistakes.MISTAKES, of_events),
        (check.waits_for, wait_mistakes.MISTAKES, of_records),
        (check.differing, replica_mistakes.MISTAKES, of_replicas),
        (check.smallest_change, change_mistakes.MISTAKES, of_changes),
    )
