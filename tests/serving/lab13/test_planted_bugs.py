"""Each check of lab 13 names the mistakes that people make, and accepts right answers written differently."""

import sys

from labs_helpers.serving.lab13 import checks as check
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.tree_mistakes import MISTAKES
from tests.planted import PlantedBugs, PlantedLists, named
from tests.serving.lab13 import bugs
from tests.serving.lab13.exercises.ex11_conversation_tree import conversation_tree


def listed(name):
    """The mistakes of a check, which are changes of its reference."""
    return named(name, sys.modules[getattr(check, name).trial.__module__].MISTAKES)


class TestLab13(PlantedBugs):
    check = check
    BUGS = [*bugs.BUGS, *(bug for name in exercises.__all__ for bug in listed(name))]
    DIFFERENT = bugs.DIFFERENT
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {
        "conversation_tree": conversation_tree
    }


class TestTransfer(PlantedLists):
    LISTS = ((check.conversation_tree, MISTAKES, lambda mistake: lambda events, size: mistake(events, size)),)
