"""Mistakes that are changes of a reference's text: as functions, and from the packed text of a placeholder."""

import zlib
from base64 import b85encode
from pathlib import Path

import pytest

from labs_helpers.course.verdict.variants import variant, variants
from labs_helpers.course.withheld import Withheld
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.exercises import ex10_best_speculation

REFERENCE = exercises.best_speculation
PACKED = b85encode(zlib.compress(Path(ex10_best_speculation.__file__).read_bytes())).decode()
FREE_DRAFT = "k * cost + 1", "1"


@pytest.mark.parametrize("reference", [REFERENCE, Withheld("13/10", "best_speculation", packed=PACKED)])
def test_a_variant_is_the_reference_with_its_changes(reference):
    assert variant(reference)(0.5, 0.5, 2) == REFERENCE(0.5, 0.5, 2)
    ((sentence, mistake),) = variants(reference, [("the draft is free", FREE_DRAFT)])
    assert sentence == "the draft is free"
    assert mistake(0.5, 0.5, 2) == REFERENCE(0.5, 0.0, 2)


def test_a_change_of_text_that_is_not_there_raises():
    with pytest.raises(ValueError, match="'k - cost' is not in the reference"):
        variant(REFERENCE, ("k - cost", "1"))
