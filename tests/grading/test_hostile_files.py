"""Test that hostile notebooks, and zips with members that no learning platform writes, are read without execution
and reported."""

from __future__ import annotations

import zipfile

import pytest

from labs_helpers.grading.reading import packed
from labs_helpers.grading.reading.inbox import students
from labs_helpers.grading.reading.notebook_file import Unreadable
from labs_helpers.grading.reading.submission import read_submission
from tests.grading.hostile_notebooks import FIRST, LAB, NOTEBOOKS, notebook, odd_zip


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_hostile_notebook_is_read(tmp_path, name):
    (tmp_path / "ada.ipynb").write_text(notebook(name))
    found = read_submission(tmp_path / "ada.ipynb", LAB)
    assert len(found) == len(LAB.exercises()) and found[0].shipped.id == FIRST.id


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_odd_zip_stops_nobody_and_stays_in_its_folder(tmp_path):
    there = odd_zip(tmp_path / "in.zip")
    found = students(tmp_path / "in.zip", tmp_path / "out" / "inbox")
    assert {*there} <= {*found} and "z" not in found
    (tmp_path / "in.zip").unlink()
    assert all(path.is_relative_to(tmp_path / "out") for path in tmp_path.rglob("*"))
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))
    for student in ("link", "bomb"):
        with pytest.raises(Unreadable):
            read_submission(found[student].path, LAB)
    assert found["bomb"].path.stat().st_size < 21 * 2**20


def test_a_damaged_member_of_a_zip_is_an_empty_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("ada.ipynb", "x" * 1000)
        archive.writestr("bob.ipynb", "{}")
    content = (tmp_path / "in.zip").read_bytes()
    (tmp_path / "in.zip").write_bytes(content.replace(b"x" * 1000, b"y" * 1000))
    found = students(tmp_path / "in.zip", tmp_path / "out")
    assert found["ada"].path.read_bytes() == b"" and found["bob"].path.read_bytes() == b"{}"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_that_holds_too_much_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "MOST_IN_ALL", 2**20)
    odd_zip(tmp_path / "in.zip")
    with pytest.raises(packed.BadInbox, match="MB of notebooks"):
        students(tmp_path / "in.zip", tmp_path / "out")
