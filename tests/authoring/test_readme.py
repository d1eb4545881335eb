import pytest

from labs_helpers.authoring import readme_picture
from labs_helpers.authoring.readme import BEGIN, END, table, with_table
from labs_helpers.labs import LABS, ROOT


def test_the_readme_has_the_table_of_labs():
    text = (ROOT / "README.md").read_text()
    assert with_table(text, LABS) == text, "make sync"


def test_the_picture_is_that_of_the_records():
    assert readme_picture.write(check=True) == [], "make sync"


def test_a_row_has_number_lab_what_is_built_and_minutes():
    first = LABS[0]
    row = f"| 00 | Start here | {first.sentence} | {first.hardware} | {first.minutes} |"
    assert table(LABS[:1]).splitlines()[-1] == row


@pytest.mark.parametrize("text", ["", BEGIN, f"{BEGIN}{END}{BEGIN}{END}"])
def test_marks_that_are_missing_or_doubled_are_an_error(text):
    with pytest.raises(ValueError, match="once each"):
        with_table(text, LABS)
