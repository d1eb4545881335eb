"""Each check of lab 12 names the mistakes that people make, and accepts right answers written differently."""

from labs_helpers.quantization.lab12 import checks as check
from labs_helpers.quantization.lab12 import exercises
from tests.planted import PlantedBugs
from tests.quantization.lab12.exercises.ex2_scale_and_add import scale_and_add

BUGS = [
    # double
    ("double", "no mask on the load", [("x_ptr + elements, mask=exists", "x_ptr + elements")], "load outside x_ptr"),
    ("double", "no mask on the store", [("x + x, mask=exists", "x + x")], "store outside y_ptr"),
    ("double", "no program id", [("tl.program_id(0) * BLOCK + ", "")], "blocks overlap"),
    ("double", "copied", [("x + x", "x")], "copied, not doubled"),
    ("double", "squared", [("x + x", "x * x")], "squared, not doubled"),
    ("double", "grid rounds down", [("triton.cdiv(n, BLOCK)", "max(1, n // BLOCK)")], "the grid rounds down"),
    # scale_and_add
    ("scale_and_add", "no mask", [("y_ptr + elements, mask=exists", "y_ptr + elements")], "load outside y_ptr"),
    ("scale_and_add", "no y", [("a * x + y", "a * x")], "y is not added"),
    ("scale_and_add", "no a", [("a * x + y", "x + y")], "not multiplied by a"),
    ("scale_and_add", "swapped", [("a * x + y", "x + a * y")], "a multiplies y, not x"),
    ("scale_and_add", "brackets", [("a * x + y", "a * (x + y)")], "a multiplies the sum"),
]

DIFFERENT = [
    ("double", [("x + x", "2 * x")]),
    ("double", [("elements < n", "~(elements >= n)")]),
    ("scale_and_add", [("a * x + y", "tl.fma(x, a + tl.zeros_like(x), y)")]),
    ("scale_and_add", [("a * x + y", "y + x * a"), ("BLOCK=128", "BLOCK=64")]),
]


class TestLab12(PlantedBugs):
    check, BUGS, DIFFERENT = check, BUGS, DIFFERENT
    REFERENCES = {"double": exercises.double, "scale_and_add": scale_and_add}
