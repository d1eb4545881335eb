"""Test folders, zips and tables as instructors have them, including other files, a nested folder, and Excel's
format."""

import os
import zipfile
from pathlib import PurePosixPath

import pytest

from labs_helpers.grading.reading.inbox import students
from labs_helpers.grading.reading.packed import BadInbox
from labs_helpers.grading.reading.senders import sender
from labs_helpers.grading.reading.tables import class_list, load_overrides
from labs_helpers.labs import NOTEBOOKS, ROOT


@pytest.fixture(params=["folder", "zip"])
def inbox(request, tmp_path):
    """inbox(names, known): what is found in a folder, or a zip, of files that are called like that."""

    def read(names, known=None):
        if request.param == "zip":
            with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
                for name in names:
                    archive.writestr(name, name)
            return students(tmp_path / "in.zip", tmp_path / "unpacked", known)
        for number, name in enumerate(names):
            (path := tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (1000 + number, 1000 + number))
        return students(tmp_path / "in", tmp_path / "unpacked", known)

    return read


def test_ids_with_an_underscore_are_those_of_the_class_list(inbox):
    known = dict.fromkeys(["a", "a_mueller", "a_schmidt", "stu_0017", "b_c"], "")
    names = ["a_mueller.ipynb", "a_schmidt/x.ipynb", "stu_0017_lab02.ipynb", "b_c_12345_67890_x.ipynb", "a_lab.ipynb"]
    assert sorted(inbox(names, known)) == sorted(known)
    assert sender("a_mueller_lab", ["a_mueller", "a_mueller_l"])[0].name == "a_mueller"


@pytest.mark.parametrize("above", ["inbox", "own/inbox"])
@pytest.mark.parametrize("known", [None, {"anna": "", "ben": ""}])
def test_a_folder_that_holds_all_of_them_is_no_student(inbox, above, known, capsys):
    found = inbox([f"{above}/anna.ipynb", f"{above}/ben/x.ipynb", f"{above}/class.csv", "notes.md"], known)
    assert sorted(found) == ["anna", "ben"] and f"all notebooks are in {above}/" in capsys.readouterr().err


def test_a_students_own_folder_is_one(inbox):
    assert sorted(inbox(["eve/mine.ipynb"])) == ["eve"]
    assert sorted(inbox(["eve/mine.ipynb", "eve/later.ipynb"], {"eve": ""})) == ["eve"]


def test_a_platforms_folder_is_a_students(inbox):
    assert sorted(inbox([f"Ada_1_assignsubmission_file_/{name}.ipynb" for name in "ab"])) == ["Ada"]


def test_of_several_files_it_is_said_which_is_graded(inbox):
    found = inbox(["a_schmidt.ipynb", "a_mueller.ipynb", "b.ipynb"])
    assert len(found["a"].others) == 1 and not found["b"].flags
    (flag,) = found["a"].flags
    assert "a_mueller.ipynb" in flag and "a_schmidt.ipynb" in flag and flag.startswith("graded is ")


def test_what_is_no_notebook_has_its_name_told(inbox):
    names = ["ada.pdf", "bob/lab.py", "bob/own.zip", "cy.ipynb", "cy/helper.py", "class.csv", "Thumbs.db",
             "Di_7_assignsubmission_file_/x.ipynb", "Di_7_assignsubmission_onlinetext_/text.html"]  # fmt: skip
    found = inbox(names)
    assert {student: one.instead for student, one in found.items()} == {
        "ada": "ada.pdf", "bob": "bob/lab.py, bob/own.zip", "cy": "", "Di": "",
    }  # fmt: skip
    assert found["cy"].flags == ("no notebook, and not read: cy/helper.py",)


@pytest.mark.parametrize("folder", [ROOT, ROOT.parent, NOTEBOOKS])
def test_the_course_is_no_inbox(folder, tmp_path):
    with pytest.raises(BadInbox, match="holds the course itself"):
        students(folder, tmp_path)


MOST = {"00/1": 10.0, "00/2": 5.0}


@pytest.mark.parametrize(
    "text, found",
    [
        ("id,exercise,points\nada,00/1,7.5\n", {("ada", "00/1"): 7.5}),
        ("id;exercise;points\nada;0/1;4,5\n", {("ada", "00/1"): 4.5}),
        ("\ufeffPoints, ID ,Exercise\n0,ada,00/2\n5,bob,00/2\n", {("ada", "00/2"): 0, ("bob", "00/2"): 5}),
    ],
)
def test_points_of_ones_own_are_read_as_spreadsheets_write_them(tmp_path, text, found):
    (tmp_path / "o.csv").write_text(text)
    assert load_overrides(tmp_path / "o.csv", MOST, ["ada", "bob"]) == found


@pytest.mark.parametrize(
    "row, said",
    [
        ("ada,00/1,50", "line 2: 50 of the 10 points of 00/1 cannot be given"),
        ("ada,00/1,-3", "line 2: -3 of the 10"),
        ("ada,00/1,nan", "line 2: nan of the 10"),
        ("ada,00/1,many", "line 2: points are a number, such as 4.5, and not many"),
        ("ada,00/1", "and not nothing"),
        ("ada,00/77,1", "no exercise 00/77; there are 00/1, 00/2"),
        ("eve,00/1,1", "nobody is called eve"),
        ("ada,00/1,1\nada,00/1,2", "line 3: ada, 00/1 stands there twice"),
    ],
)
def test_points_that_cannot_be_are_told(tmp_path, row, said):
    (tmp_path / "o.csv").write_text(f"id,exercise,points\n{row}\n")
    with pytest.raises(BadInbox, match=said):
        load_overrides(tmp_path / "o.csv", MOST, ["ada"])


def test_tables_and_inboxes_that_are_none_are_told_in_words(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, said in (("empty", "no notebook"), ("absent", "neither a folder nor a zip")):
        with pytest.raises(BadInbox, match=said):
            students(tmp_path / name, tmp_path / "unpacked")
    for text, said in (
        (None, "class.csv: No such file"), ("id,name\na,Jürgen\n".encode("cp1252"), "is not in UTF-8"),
        (b"name\nx", "one called id is needed"), (b"id\na\na", "a stands there twice"), (b"id\n \n", "empty"),
    ):  # fmt: skip
        if text is not None:
            (tmp_path / "class.csv").write_bytes(text)
        with pytest.raises(BadInbox, match=said):
            class_list(tmp_path / "class.csv")
    (tmp_path / "other.csv").write_text("id;exercise\n")
    with pytest.raises(BadInbox, match="has the columns id, exercise; one called points is needed"):
        load_overrides(tmp_path / "other.csv", MOST, ["ada"])
    for text in ("ID;Name\nada;Ada, L.\n", '\ufeffID, Name\nada," Ada,  L."\n'):
        (tmp_path / "class.csv").write_text(text)
        assert class_list(tmp_path / "class.csv") == {"ada": "Ada, L."}


def test_names_in_a_zip_stay_in_it_and_a_later_zip_replaces_it(tmp_path):
    for names in (["old.ipynb"], ["../up.ipynb", "/root.ipynb", "ada/../x.pdf"]):
        with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
            for name in names:
                archive.writestr(name, "{}")
        found = students(tmp_path / "in.zip", tmp_path / "out")
    assert sorted(found) == ["ada", "root", "up"] and found["ada"].instead == str(PurePosixPath("ada/x.pdf"))
    assert {path.parent for path in tmp_path.rglob("*.ipynb")} == {tmp_path / "out"}
