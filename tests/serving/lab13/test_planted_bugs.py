"""Each check of lab 13 names the mistakes that people make, and accepts right answers written differently."""

from labs_helpers.serving.lab13 import checks as check
from labs_helpers.serving.lab13 import exercises
from tests.planted import PlantedBugs
from tests.serving.lab13.bugs import attention, batching
from tests.serving.lab13.exercises.ex11_conversation_tree import conversation_tree


class TestLab13(PlantedBugs):
    check = check
    BUGS = [*attention.BUGS, *batching.BUGS]
    DIFFERENT = [*attention.DIFFERENT, *batching.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {
        "conversation_tree": conversation_tree
    }
