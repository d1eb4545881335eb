"""Test finding a file's sender from the names that Moodle, Canvas and instructors use, with and without a class
list."""

import csv
import zipfile

import pytest

from labs_helpers.grading.reading.inbox import LATE, students
from labs_helpers.grading.reading.senders import Sender, ids, sender
from labs_helpers.grading.reading.tables import class_list
from labs_helpers.grading.results.plain_text import named

NAMES = {
    "Ada Smith_111_assignsubmission_file_": Sender("Ada Smith", "111"),  # Moodle
    "Ada Smith_111_assignsubmission_file": Sender("Ada Smith", "111"),
    "Ada Smith_111_assignsubmission_file_my_2_3_lab": Sender("Ada Smith", "111"),  # without folders
    "Participant_111_assignsubmission_file_": Sender("Participant", "111"),
    "smithada_12345_67890_02_fused_gemm": Sender("smithada", "12345"),  # Canvas
    "smithada_LATE_12345_67890_02_fused_gemm-1": Sender("smithada", "12345"),
    "smith_ada_12345_67890_x_9_9_x": Sender("smith_ada", "12345"),
    "_12345_67890_x": Sender("", "12345"),
    "anon_x7Kd2_67890_x": Sender("anon_x7Kd2"),
    "LATE_anon_x7Kd2_67890_x": Sender("anon_x7Kd2"),
    "ada": Sender("ada"),
    "ada_02_fused_gemm": Sender("ada"),
    "ada_02_03_x": Sender("ada"),
    "_ada": Sender("_ada"),
}


@pytest.mark.parametrize("name", NAMES)
def test_platforms_names_are_read(name):
    assert sender(name) == (NAMES[name], "LATE_" in name)


def ids_of(*senders, known=None):
    return {one.both: id for one, id, _ in ids(senders, known or {})}


ADA1, ADA2, CANVAS = Sender("Ada Smith", "111"), Sender("Ada Smith", "222"), Sender("smithada", "333")


def test_namesakes_are_two():
    assert ids_of(ADA1) == {"Ada Smith_111": "Ada Smith"}
    assert ids_of(ADA1, ADA2) == {"Ada Smith_111": "Ada Smith_111", "Ada Smith_222": "Ada Smith_222"}
    by_hand = Sender("Ada Smith")
    assert len(set(ids_of(ADA1, ADA2, by_hand).values())) == 3


@pytest.mark.parametrize(
    "known, id",
    [
        ({"Ada Smith": "", "bob": "Bob"}, "Ada Smith"),
        ({"as1": "Ada Smith", "bob": "Bob"}, "as1"),
        ({"as1": "Smith, Ada"}, "as1"),
        ({"as1": "Ada Smith", "as2": "Ada Smith"}, "Ada Smith_111"),
        ({"111": "Ada Smith", "as2": "Ada Smith"}, "111"),
        ({"111": "", "222": ""}, "111"),
        ({"111": "Bob", "222": "Cy"}, "Ada Smith"),  # the number is somebody else's
        ({"Ada Smith 111": "", "Ada Smith": ""}, "Ada Smith 111"),
        ({"Ada Smith_111": "", "Ada Smith": ""}, "Ada Smith_111"),
    ],
)
def test_one_of_a_name_gets_the_id_that_the_class_list_has(known, id):
    assert ids_of(ADA1, known=known)["Ada Smith_111"] == id
    moved = {key.replace("111", "333").replace("Ada Smith_", "smithada_"): name for key, name in known.items()}
    if "Ada Smith" not in moved and "Ada Smith 333" not in moved:
        expected = id.replace("111", "333").replace("Ada Smith", "smithada")
        assert ids_of(CANVAS, known=moved)["smithada_333"] == expected


def test_of_namesakes_the_number_says_who_it_is_or_they_are_unknown_and_told_why():
    both = {"111": "Ada Smith", "222": "Ada Smith"}
    assert [*ids([ADA1, ADA2], both)] == [(ADA1, "111", ""), (ADA2, "222", "")]
    for known in ({"Ada Smith": ""}, {"as1": "Ada Smith"}, {"as1": "Ada Smith", "as2": "Ada Smith"}):
        found = [*ids([ADA1, ADA2], known)]
        assert [id for _, id, _ in found] == ["Ada Smith_111", "Ada Smith_222"]
        assert all(f"write {one.both} into" in why for one, _, why in found)
    assert [why for *_, why in ids([ADA1], {"bob": "Bob"})] == [""]  # a stranger, who is listed as one


def test_no_two_get_one_id():
    senders = [Sender("111"), ADA1, Sender("smithada", "111"), ADA2]
    for known in ({}, {"111": ""}, {"111": "Ada Smith"}, {"as1": "Ada Smith"}, {"Ada Smith": "Smith Ada"}):
        assert len(set(ids_of(*senders, known=known).values())) == len(senders)


def test_a_zip_of_namesakes_is_two_students(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for number in ("111", "222"):
            archive.writestr(f"Ada Smith_{number}_assignsubmission_file_/x.ipynb", number)
        archive.writestr("bobby_LATE_5_6_x.ipynb", "bob")
        archive.writestr("Cy_7_assignsubmission_file_/x.ipynb", "cy")
        archive.writestr("Cy.ipynb", "put there by hand")
    found = students(tmp_path / "in.zip", tmp_path / "out", {"b": "Y, Bobb", "111": "Ada Smith"})
    assert sorted(found) == ["111", "Ada Smith_222", "Cy", "b"]
    assert (
        found["Ada Smith_222"].path.read_text() == "222"
        and "write Ada Smith_222 into" in found["Ada Smith_222"].flags[0]
    )
    assert found["b"].flags == (LATE,) and found["111"].flags == () and len(found["Cy"].others) == 1


ODD = ["a", "a ", "a\n", "a\t", "a\x1b[1m", "a\u202e", "a\u202d", "a\udcff", "a\udcfe", "a\u200b", "a\u00a0b", "a b",
       "x" * 301, "x" * 302]  # fmt: skip


def test_ids_show_what_they_are_and_stay_different():
    shown = [named(name) for name in ODD]
    assert len(set(shown)) == len(ODD) and all(one.isprintable() and len(one) < 400 for one in shown)
    assert shown[0] == "a" and shown[11] == "a b"


def test_odd_names_of_files_stay_different_students(tmp_path):
    names = [name for name in ODD if len(name) < 200]
    (tmp_path / "in").mkdir()
    for name in names:
        (tmp_path / "in" / f"{name}.ipynb").write_text("{}")
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for number, name in enumerate(ODD):
            archive.writestr(f"{name.encode(errors='replace').decode()}{number % 2}_x.ipynb", "{}")
    assert sorted(students(tmp_path / "in", tmp_path / "out")) == sorted(map(named, names))
    assert len(students(tmp_path / "in.zip", tmp_path / "out")) == len(ODD)
    (tmp_path / "class.csv").write_text('id,name\na\u202e,"Ada\nL"\n', newline="")
    assert class_list(tmp_path / "class.csv") == {named("a\u202e"): "Ada L"}
    with open(tmp_path / "class.csv", newline="") as file:
        assert len([*csv.reader(file)]) == 2
