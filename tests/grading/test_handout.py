"""Test the hand-out: it is complete for its lab, contains nothing of other labs, and no answer that students are to
find."""

import json
import os
import re
import sys
from zipfile import ZipFile

import pytest

from labs_helpers import labs
from labs_helpers.grading.handout import student_pages
from labs_helpers.grading.handout.folder import _with_links, main, make_handout
from labs_helpers.grading.handout.needs import needs_of
from labs_helpers.labs import LABS, ROOT, SOURCES
from labs_helpers.launch.process import run
from tests.grading.secrets import answers, given_away


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_handout([labs.lab("02"), labs.lab("04")], tmp_path_factory.mktemp("made"))


@pytest.fixture
def folder(made):
    return made[0]


def rooms(folder):
    return {path.name for path in (folder / "labs_helpers").iterdir() if path.is_dir()}


def test_it_holds_the_labs_and_no_other(folder):
    names = [path.name for path in sorted((folder / "notebooks").iterdir())]
    assert names == ["02_fused_gemm.ipynb", "04_flash_attention_forward.ipynb"]
    assert rooms(folder) == {*"course practice measure compile draw launch gemm attention grading".split()}
    assert not list(folder.rglob("hidden*"))
    assert (folder / "labs_helpers/gemm/lab02/checks").is_dir() and not (folder / "labs_helpers/gemm/lab03").exists()
    assert {path.name.split(".")[0] for path in (folder / "results").iterdir()} >= {"gemm", "attention"}
    assert not {"collectives", "transformer", "traces"} & {
        path.name.split(".")[0] for path in (folder / "results").iterdir()
    }
    assert not (folder / "mpi_scripts").exists() and not list(folder.rglob("__pycache__"))


def test_of_grading_students_get_what_checks_their_own_notebook(folder):
    assert {path.stem for path in (folder / "labs_helpers/grading").rglob("*.py")} == {
        "__init__", "at_home", "cases", "flags", "judged", "lab_imports", "notebook_file", "own_cells", "own_process",
        "plain_python", "submission", "trials",
    }  # fmt: skip


def test_a_lab_about_ranks_brings_its_programs_and_a_lab_with_traces_its_traces(tmp_path):
    ranks, _ = make_handout([labs.lab("06")], tmp_path)
    names = {path.name for path in (ranks / "mpi_scripts").iterdir()}
    assert names == {"bench_collectives.py", "check_collectives.py", "hello.py"}
    traces = {path.relative_to(ROOT) for path in (ROOT / "results/traces").iterdir() if path.suffix != ".lock"}
    assert traces and traces <= {*needs_of([labs.lab("01")], []).results}


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_all_that_it_imports_is_in_it(lab):
    code = [cell for cell in json.loads(lab.path.read_text())["cells"] if cell["cell_type"] == "code"]
    needs = needs_of([lab], cells := ["".join(cell["source"]) for cell in code])
    there = {dotted(path.with_suffix("")) for path in needs.files}
    there |= {name.removesuffix(".__init__") for name in there}
    texts = {path: (ROOT / path).read_text() for path in needs.files + needs.scripts if path.suffix == ".py"}
    for path, text in {**texts, lab.path: "\n".join(cells)}.items():
        wanted = set(re.findall(r"^\s*(?:from|import) (labs_helpers[\w.]*)", text, re.MULTILINE))
        assert wanted <= there, path


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_no_lab_brings_one_that_does_not_come_before_it(lab):
    brought = {one.number for one in LABS for file in needs_of([lab], []).files if one.package in dotted(file)}
    assert brought <= {lab.number, *before(lab)}


def before(lab):
    """The numbers of the labs that it says it needs, and of those that they need."""
    return {number for name in lab.needs for number in (name, *before(labs.lab(name)))}


def dotted(file):
    return str(file).replace("/", ".")


@pytest.mark.parametrize("part", ["labs_helpers", "notebooks", "mpi_scripts"])
def test_no_answer_to_a_transfer_exercise_stands_where_students_look(part):
    """Colab installs labs_helpers and the records, and no more: tests/house/test_wheel.py."""
    assert given_away(ROOT / part) == {}


@pytest.mark.soak
def test_the_hand_out_of_all_labs_gives_no_answer_away(tmp_path):
    folder, packed = make_handout(list(LABS), tmp_path)
    assert given_away(folder) == {}
    assert nothing_of_the_tests(folder) and len(ZipFile(packed).namelist()) >= len(list((folder).rglob("*.py")))


def test_the_tests_are_not_in_it_and_the_zip_holds_the_same(made):
    folder, packed = made
    assert nothing_of_the_tests(folder)
    names = {name for name in ZipFile(packed).namelist() if not name.endswith("/")}
    assert names == {str(path.relative_to(folder.parent)) for path in folder.rglob("*") if path.is_file()}


def nothing_of_the_tests(folder):
    names = [path.relative_to(folder) for path in folder.rglob("*")]
    return not [name for name in names if "tests" in name.parts or name.name.startswith(("test_", "conftest"))]


def test_an_answer_that_is_given_away_is_found(tmp_path):
    (tmp_path / "answer.py").write_text("\n".join(answers()["07"]))
    notebook = {"cells": [{"source": [f"    {line}\n" for line in answers()["02"]]}]}
    (tmp_path / "lab.ipynb").write_text(json.dumps(notebook))
    assert {where.partition(" ")[2] for where in given_away(tmp_path)} == {"answer.py", "lab.ipynb"}
    assert all(len(lines) > 1 for lines in answers().values())


def test_the_notebooks_are_those_of_the_course_without_outputs(folder):
    for name in ("02_fused_gemm.ipynb", "04_flash_attention_forward.ipynb"):
        ours = json.loads((ROOT / "notebooks" / name).read_text())
        theirs = json.loads((folder / "notebooks" / name).read_text())
        sources = ["".join(cell["source"]) for cell in ours["cells"]]
        told = [_with_links(text, folder) for text in sources]  # code has no links
        assert ["".join(cell["source"]) for cell in theirs["cells"]] == told
        code = [cell for cell in theirs["cells"] if cell["cell_type"] == "code"]
        assert not any(cell["outputs"] or cell["execution_count"] for cell in code)


def test_its_pages_speak_of_these_labs(folder):
    readme = (folder / "README.md").read_text()
    assert readme.startswith("# Tile to Cluster: labs 02 and 04\n") and "`my_labs/02_fused_gemm.ipynb`" in readme
    assert "| 02 | One kernel instead of three |" in readme and "| 03 |" not in readme
    for target in re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", readme, re.MULTILINE):
        assert re.search(rf"^{''.join(target)}:", (folder / "Makefile").read_text(), re.MULTILINE)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    shown = run(["make", "help"], timeout=60, cwd=folder, env=clean)
    assert "  lab " in shown and "soak" not in shown and "refresh" not in shown
    assert "--editable .\n" in run(["make", "-n", "setup"], timeout=60, cwd=folder, env=clean)
    run(["make", "clean"], timeout=60, cwd=folder, env=clean)


def test_a_command_that_a_lab_names_is_in_its_makefile():
    course = (ROOT / "Makefile").read_text()
    for lesson, there in ((labs.lab("13").path.read_text(), True), (labs.lab("02").path.read_text(), False)):
        text = student_pages.makefile(course, lesson)
        assert ("\nserve: " in text) == there == (" serve" in re.search(r"^\.PHONY: .*", text, re.MULTILINE)[0])


def test_its_code_knows_these_labs_alone(folder):
    program = "from labs_helpers import labs; print(labs.__file__, *(one.number for one in labs.LABS))"
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    said = run([sys.executable, "-c", program], timeout=60, cwd=folder, env=env).split()
    assert said == [str(folder / "labs_helpers/labs.py"), "02", "04"]


def test_a_newer_one_replaces_the_older_as_a_whole(tmp_path):
    folder, packed = make_handout([labs.lab("00")], tmp_path)
    (folder / "labs_helpers/old.py").touch()
    packed.write_bytes(b"")
    assert make_handout([labs.lab("00")], tmp_path) == (folder, packed)
    assert not (folder / "labs_helpers/old.py").exists() and ZipFile(packed).testzip() is None
    assert sorted(tmp_path.iterdir()) == [folder, packed]


def test_nobodys_work_is_replaced(tmp_path, capsys):
    folder, _ = make_handout([labs.lab("00")], tmp_path)
    (folder / "my_labs").mkdir()
    assert (
        main(["00", "--out", str(tmp_path)]) == 1 and "holds my_labs, which no hand-out has" in capsys.readouterr().err
    )
    assert (folder / "my_labs").is_dir()


def test_an_unknown_lab_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["42", "--out", str(tmp_path / "out")])
    assert "there is no lab '42'" in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.soak
@pytest.mark.parametrize("lab", {lab.topic: lab for lab in LABS}.values(), ids=lambda lab: lab.number)
def test_a_topic_s_last_lab_runs_to_its_end_in_a_hand_out_of_its_own(lab, tmp_path):
    folder, _ = make_handout([lab], tmp_path)
    env = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        "-m",
        "jupyter",
        "nbconvert",
        "--to",
        "notebook",
        "--execute",
        "--output-dir",
        tmp_path,
        "--output",
        "run",
    ]
    run([sys.executable, *command, folder / "notebooks" / lab.notebook], timeout=300, cwd=folder, env=env)
    printed = (tmp_path / "run.ipynb").read_text()
    assert f"Lab {lab.number} · ran on" in printed and "points" in printed


def test_a_link_to_a_file_that_is_not_handed_out_leads_to_the_course_s_own(tmp_path):
    (tmp_path / "labs_helpers").mkdir()
    (tmp_path / "labs_helpers/here.py").touch()
    text = (
        'see [`here.py`](../labs_helpers/here.py), [x](../mpi_scripts/gone.py#L3), <a href="../results/a-b.jsonl">y</a>'
    )
    told = _with_links(text, tmp_path)
    assert told == text.replace("../mpi", f"{SOURCES}/mpi").replace("../results", f"{SOURCES}/results")
