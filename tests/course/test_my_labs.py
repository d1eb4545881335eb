import json
import os
import socket
import subprocess
import sys
from unittest import mock
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from labs_helpers.course import my_labs, own_copies
from labs_helpers.course.own_copies import copy_labs
from labs_helpers.course.reset import put_back, reset
from tests.processes import eventually, started


def exercise(number, source):
    mark = {
        "grade_id": f"02-{number}",
        "solution": True,
        "grade": False,
        "locked": False,
        "schema_version": 3,
    }
    return new_code_cell(source, metadata={"nbgrader": mark})


def lab(title="Lab"):
    cells = [new_markdown_cell(f"# {title}"), exercise(1, "def one(): ..."), check(1, "check.one(one)")]
    return executed(new_notebook(cells=[*cells, exercise(2, "def two(): ..."), check(2, "check.two(two)")]))


def check(number, source):
    return new_code_cell(source, metadata={"nbgrader": {"grade_id": f"02-{number}-check", "grade": True}})


def executed(notebook, said="○ not attempted"):
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        cell.execution_count, cell.outputs = count, [new_output("stream", text=said)]
    return notebook


def run_cells(path):
    """The sources of the cells that look as if they had been run."""
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return [cell.source for cell in code if cell.outputs or cell.execution_count]


@pytest.fixture
def folders(tmp_path):
    """(shipped, mine): one lab has been shipped, and copied."""
    shipped, mine = tmp_path / "notebooks", tmp_path / "my labs"
    shipped.mkdir()
    nbformat.write(lab(), shipped / "02_fused.ipynb")
    assert copy_labs(shipped, mine) == ["02_fused.ipynb is new"]
    return shipped, mine


def edit(path, change):
    notebook = nbformat.read(path, as_version=4)
    change(notebook.cells)
    nbformat.write(notebook, path)


def sources(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


def test_a_copy_holds_the_cells_of_the_lab_as_if_none_had_been_run(folders):
    shipped, mine = folders
    ours, theirs = (nbformat.read(f / "02_fused.ipynb", as_version=4) for f in folders)
    for cell in ours.cells:
        if cell.cell_type == "code":
            assert cell.execution_count and cell.outputs  # the shipped lab keeps them, for nbval
            cell.execution_count, cell.outputs = None, []
    assert ours.cells == theirs.cells
    nbformat.validate(theirs)
    assert [path.name for path in mine.iterdir()] == ["02_fused.ipynb"]


def test_copying_again_changes_nothing(folders):
    shipped, mine = folders
    edit(mine / "02_fused.ipynb", lambda cells: cells[1].update(source="def one(): return 1"))
    before = (mine / "02_fused.ipynb").read_bytes()
    assert copy_labs(shipped, mine) == []
    assert (mine / "02_fused.ipynb").read_bytes() == before


def test_a_copy_names_the_kernel_as_jupyterlab_does(folders):
    """Else JupyterLab would write its own metadata on opening, and mark the lab as changed."""
    metadata = nbformat.read(folders[1] / "02_fused.ipynb", as_version=4).metadata
    client = NotebookClient(new_notebook(), kernel_name="python3", startup_timeout=100)
    spec = client.create_kernel_manager().kernel_spec
    client.execute()  # takes language_info from the kernel's own reply
    assert metadata.kernelspec == {"name": "python3", "display_name": spec.display_name, "language": spec.language}
    assert metadata.language_info == client.nb.metadata.language_info


def test_a_lab_that_was_only_executed_again_has_not_changed(folders):
    shipped, mine = folders
    edit(shipped / "02_fused.ipynb", lambda cells: executed(new_notebook(cells=cells), "other"))
    assert copy_labs(shipped, mine) == []


def test_a_changed_lab_is_put_beside_the_copy(folders):
    shipped, mine = folders
    before = (mine / "02_fused.ipynb").read_bytes()
    nbformat.write(lab("Better"), shipped / "02_fused.ipynb")
    (said,) = copy_labs(shipped, mine)
    assert "changed" in said and "02_fused.new.ipynb" in said
    assert (mine / "02_fused.ipynb").read_bytes() == before
    assert sources(mine / "02_fused.new.ipynb")[0] == "# Better"
    assert run_cells(mine / "02_fused.new.ipynb") == []


def test_a_new_version_that_was_worked_in_is_not_written_over(folders):
    shipped, mine = folders
    nbformat.write(lab("Better"), shipped / "02_fused.ipynb")
    copy_labs(shipped, mine)
    before = (mine / "02_fused.new.ipynb").read_bytes()
    nbformat.write(lab("Best"), shipped / "02_fused.ipynb")
    (said,) = copy_labs(shipped, mine)
    assert "rename or delete 02_fused.new.ipynb" in said
    assert (mine / "02_fused.new.ipynb").read_bytes() == before


def test_the_new_version_may_take_the_place_of_the_old(folders):
    shipped, mine = folders
    nbformat.write(lab("Better"), shipped / "02_fused.ipynb")
    copy_labs(shipped, mine)
    (mine / "02_fused.new.ipynb").replace(mine / "02_fused.ipynb")
    assert copy_labs(shipped, mine) == []
    assert [path.name for path in mine.iterdir()] == ["02_fused.ipynb"]


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"a": 1}'])
def test_a_damaged_copy_is_left_alone_and_named_on_reset(folders, text):
    shipped, mine = folders
    (mine / "02_fused.ipynb").write_text(text)
    nbformat.write(lab("Better"), shipped / "02_fused.ipynb")
    assert copy_labs(shipped, mine) == []
    with pytest.raises(ValueError, match="my labs/02_fused.ipynb is damaged"):
        reset("02/1", shipped, mine)
    assert (mine / "02_fused.ipynb").read_text() == text


def test_reset_puts_the_stub_back_and_keeps_the_code(folders):
    shipped, mine = folders
    edit(
        mine / "02_fused.ipynb",
        lambda cells: cells[3].update(source="def two(): return 2", execution_count=7),
    )
    edit(mine / "02_fused.ipynb", lambda cells: executed(new_notebook(cells=cells)))
    said = reset("2/2", shipped, mine)
    assert "old cell is kept" in said and "run the stub's cell" in said and "old function" in said
    notebook = nbformat.read(mine / "02_fused.ipynb", as_version=4)
    nbformat.validate(notebook)
    stub, kept, check = notebook.cells[3:6]
    assert stub.source == "def two(): ..." and stub.metadata.nbgrader.grade_id == "02-2"
    assert kept.cell_type == "raw" and kept.source.endswith("\ndef two(): return 2")
    assert check.source == "check.two(two)" and len(notebook.cells) == 6
    assert run_cells(mine / "02_fused.ipynb") == ["def one(): ...", "check.one(one)"]


def test_reset_of_a_stub_changes_nothing(folders):
    before = (folders[1] / "02_fused.ipynb").read_bytes()
    assert "already" in reset("02/1", *folders)
    assert (folders[1] / "02_fused.ipynb").read_bytes() == before


@pytest.mark.parametrize("which, place", [("02/1", 1), ("02/2", 3)])
def test_a_deleted_exercise_comes_back_where_it_was(folders, which, place):
    shipped, mine = folders
    edit(mine / "02_fused.ipynb", lambda cells: cells.pop(place))
    reset(which, shipped, mine)
    assert sources(mine / "02_fused.ipynb") == sources(shipped / "02_fused.ipynb")


@pytest.mark.parametrize("which, place", [("02/1", 2), ("02/2", 4)])
def test_a_check_that_was_deleted_or_changed_comes_back_too(folders, which, place):
    shipped, mine = folders
    edit(mine / "02_fused.ipynb", lambda cells: cells.pop(place))
    assert "Restored the check of exercise" in reset(which, shipped, mine)
    assert sources(mine / "02_fused.ipynb") == sources(shipped / "02_fused.ipynb")
    edit(mine / "02_fused.ipynb", lambda cells: cells[place].update(source="pass"))
    edit(mine / "02_fused.ipynb", lambda cells: cells[place - 1].update(source="def mine(): pass"))
    assert "is the stub again" in reset(which, shipped, mine)
    code = [c.source for c in nbformat.read(mine / "02_fused.ipynb", as_version=4).cells if c.cell_type != "raw"]
    assert code == sources(shipped / "02_fused.ipynb")


def test_reset_without_a_copy_makes_one(folders):
    shipped, mine = folders
    (mine / "02_fused.ipynb").unlink()
    assert "new" in reset("02/1", shipped, mine)
    assert sources(mine / "02_fused.ipynb") == sources(shipped / "02_fused.ipynb")


@pytest.mark.parametrize(
    "which, listed",
    [
        ("03/1", "labs are: 02"),
        ("x", "labs are: 02"),
        ("02/9", "exercises are: 02/1, 02/2"),
        ("02", "exercises are: 02/1"),
    ],
)
def test_unknown_exercises_are_answered_with_a_list(folders, which, listed):
    with pytest.raises(ValueError, match=listed):
        reset(which, *folders)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["def one(): ...", "def one(): return 1", "one = None"]), max_size=4), st.data())
def test_reset_loses_no_code_and_leaves_one_exercise(attempts, data):
    original = lab()
    notebook = lab()
    notebook.cells = [cell for cell in notebook.cells if "def one" not in cell.source]
    for attempt in attempts:
        notebook.cells.insert(data.draw(st.integers(0, len(notebook.cells))), exercise(1, attempt))
    before = [cell.source for cell in notebook.cells]
    changed = put_back(original.cells[1], notebook, original)
    after = notebook.cells
    assert changed == (attempts != ["def one(): ..."])
    assert [c.source for c in after if c.metadata.get("nbgrader", {}).get("grade_id") == "02-1"] == ["def one(): ..."]
    assert all(any(source in cell.source for cell in after) for source in before)
    assert len(after) == len(before) + changed


def test_an_interrupted_write_leaves_the_old_file(folders, monkeypatch):
    shipped, mine = folders
    before = (mine / "02_fused.ipynb").read_bytes()
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        own_copies.write(lab("Other"), mine / "02_fused.ipynb")
    assert (mine / "02_fused.ipynb").read_bytes() == before
    assert [path.name for path in mine.iterdir()] == ["02_fused.ipynb"]


def test_command(folders, capsys):
    shipped, mine = folders
    options = ["--labs", str(shipped), "--to", str(mine)]
    assert my_labs.main([*options, "--copy-only"]) == 0 and f"Your labs are in {mine}" in capsys.readouterr().out
    assert my_labs.main([*options, "--reset", "02/7"]) == 1 and "exercises are: 02/1" in capsys.readouterr().err
    assert my_labs.main(["--labs", str(mine / "none"), "--copy-only"]) == 1
    assert "there is no lab" in capsys.readouterr().err


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(address, token, root) of the JupyterLab that `make lab` opens, which ends with its process group."""
    root = tmp_path_factory.mktemp("course")
    shipped = root / "notebooks"
    for folder in ("notebooks", "labs_helpers", "tests"):
        (root / folder).mkdir()
    nbformat.write(lab(), shipped / "02_fused.ipynb")
    (root / "labs_helpers/model.py").write_text("x = 1\n")
    env = os.environ | {"BROWSER": "true", "JUPYTER_RUNTIME_DIR": str(root / ".runtime"), "HOME": str(root)}
    mine = root / "my_labs"
    command = [sys.executable, "-m", "labs_helpers.course.my_labs", "--labs", shipped, "--to", mine]
    with started(command, env=env, stderr=subprocess.DEVNULL), pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_RUNTIME_DIR", env["JUPYTER_RUNTIME_DIR"])
        yield eventually(lambda: my_labs.running_at(mine)), root, (command, env)


def asked(server, method, path, body=None):
    """(status, JSON) of a request to the server's contents."""
    address, _, _ = server
    base, token = address.partition("/lab")[0], address.partition("token=")[2]
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{base}/api/contents/{path}", data=data, method=method, headers=headers)
    try:
        with urlopen(request, timeout=100) as reply:
            return reply.status, json.loads(reply.read() or "{}")
    except HTTPError as error:
        return error.code, json.loads(error.read())


def test_jupyterlab_shows_the_course_read_only_and_writes_in_the_student_s_folder(server):
    listed = {one["name"] for one in asked(server, "GET", "")[1]["content"]}
    assert listed == {"labs_helpers", "my_labs", "notebooks"}
    source = asked(server, "GET", "labs_helpers/model.py?type=file&format=text")[1]
    assert source["content"] == "x = 1\n" and source["writable"] is False
    text = {"type": "file", "format": "text", "content": "changed"}
    for method, path, body in [
        ("PUT", "labs_helpers/model.py", text),
        ("PUT", "my_labs/../labs_helpers/model.py", text),
        ("PATCH", "labs_helpers/model.py", {"path": "my_labs/model.py"}),
        ("PATCH", "my_labs/02_fused.ipynb", {"path": "labs_helpers/02.ipynb"}),
        ("DELETE", "labs_helpers/model.py", None),
        ("DELETE", "my_labs", None),
        ("POST", "labs_helpers", {"type": "notebook"}),
        ("POST", "labs_helpers/model.py/checkpoints", {}),
    ]:
        status, said = asked(server, method, path, body)
        assert status in (403, 404) and (status == 404 or "part of the course" in said["message"]), (method, path, said)
    assert (server[1] / "labs_helpers/model.py").read_text() == "x = 1\n"
    assert [path.name for path in (server[1] / "labs_helpers").iterdir()] == ["model.py"]
    assert asked(server, "GET", "my_labs/02_fused.ipynb")[1]["writable"] is True
    assert asked(server, "PUT", "my_labs/mine.py", text)[0] == 201
    assert (
        asked(server, "POST", "labs_helpers", {"copy_from": "labs_helpers/model.py"})[1]["path"] == "my_labs/model.py"
    )
    assert asked(server, "PATCH", "my_labs/mine.py", {"path": "my_labs/other.py"})[0] == 200
    assert asked(server, "DELETE", "my_labs/other.py")[0] == 204


def test_a_second_make_lab_says_the_address_of_the_first(server):
    address, root, (command, env) = server
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    said = done.stdout.splitlines()[-1]
    assert (
        done.returncode == 0
        and said.startswith("JupyterLab is already running: http://")
        and address.split("token=")[1] in said
    )
    assert len(list((root / ".runtime").glob("jpserver-*.json"))) == 1


def test_a_server_that_does_not_answer_is_none(tmp_path, monkeypatch):
    """The file of one that was killed, or that runs on another machine with the same home."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        there = {"url": url, "root_dir": str(tmp_path), "token": "x"}
        monkeypatch.setattr(my_labs, "list_running_servers", lambda: [there])
        assert my_labs.running_at(tmp_path / "my_labs") == ""
