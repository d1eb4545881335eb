"""Plant each mistake that the check of lab 13's transfer exercise lists, as an answer."""

from labs_helpers.serving.lab13 import checks as check
from labs_helpers.serving.lab13.checks.tree_mistakes import MISTAKES
from tests.planted import PlantedLists


def as_answer(mistake):
    return lambda events, size: mistake(events, size)


class TestLab13(PlantedLists):
    LISTS = ((check.conversation_tree, MISTAKES, as_answer),)
