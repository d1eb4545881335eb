"""Each check of lab 12 names the mistakes that people make, and accepts right answers written differently."""

from labs_helpers.quantization.lab12 import checks as check
from labs_helpers.quantization.lab12 import exercises
from tests.planted import PlantedBugs
from tests.quantization.lab12.bugs import functions, kernels
from tests.quantization.lab12.exercises.ex9_int8_cache_attention import int8_cache_attention


class TestLab12(PlantedBugs):
    check = check
    BUGS = [*functions.BUGS, *kernels.BUGS]
    DIFFERENT = [*functions.DIFFERENT, *kernels.DIFFERENT]
    REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {
        "int8_cache_attention": int8_cache_attention
    }
