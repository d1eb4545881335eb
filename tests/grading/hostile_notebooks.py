"""Notebooks of lab 00 that seek points outside an answer or try to stop the reader, and files of an inbox that do
the same."""

from __future__ import annotations

import json
import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labs_helpers.labs import lab
from tests.grading.notebook_changes import own
from tests.grading.written import mark_of, solved, with_answers

LAB = lab("00")
FIRST = LAB.exercises()[0]
NAME, POINTS = FIRST.trial.__name__, FIRST.points
WRONG, RIGHT = f"def {NAME}(n, block):\n    return None", solved(LAB)[FIRST.id]

Notebook = dict[str, Any]


def answer(notebook: Notebook) -> Notebook:
    return next(cell for cell in notebook["cells"] if mark_of(cell) == FIRST.id)


def checks(notebook: Notebook) -> list[Notebook]:
    return [cell for cell in notebook["cells"] if mark_of(cell).endswith("-check")]


def tagged(*tags: str) -> Callable[[Notebook], None]:
    def change(notebook: Notebook) -> None:
        for cell in checks(notebook):
            cell["metadata"]["tags"] = [*tags]

    return change


def before(source: str, reading: str = "") -> Callable[[Notebook], None]:
    """With a cell above the answer, and what the answer reads of it."""

    def change(notebook: Notebook) -> None:
        notebook["cells"].insert(2, own(source))
        answer(notebook)["source"] = f"{reading}\n{WRONG}".strip() if reading else WRONG

    return change


def check_says(source: str) -> Callable[[Notebook], None]:
    def change(notebook: Notebook) -> None:
        for cell in checks(notebook):
            cell["source"] = source

    return change


def answer_is(source: str) -> Callable[[Notebook], None]:
    return lambda notebook: answer(notebook).update(source=source)


def marked(mark: object) -> Callable[[Notebook], None]:
    return lambda notebook: answer(notebook)["metadata"].update(nbgrader=mark)


def with_outputs(notebook: Notebook) -> None:
    for cell in checks(notebook):
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "✓ passed: 1000 of 1000 points"}]
        cell["metadata"]["nbgrader"]["points"] = 1000


def many_times(notebook: Notebook) -> None:
    notebook["cells"] += [answer(notebook)] * 1500


def broken_cells(notebook: Notebook) -> None:
    strange: list[Any] = [None, 3, [], {"cell_type": 7}, {"cell_type": "code"}, {"cell_type": "code", "source": 5},
                          {"cell_type": "code", "source": [1, None, "x"], "metadata": None},
                          {"cell_type": "code", "source": "1", "metadata": {"nbgrader": [], "tags": "x"}}]  # fmt: skip
    notebook["cells"][:0] = strange


def kernel_of_its_own(notebook: Notebook) -> None:
    notebook["metadata"]["kernelspec"] = {"name": "x", "argv": ["touch", "/tmp/hostile-mark"], "language": "python"}


PATCH = (
    "import labs_helpers.course.exercise as e\n"
    "def patch():\n    e.Exercise.tried = lambda *a: (['x'], None)\n    return 1"
)

# Name → (what is done to a notebook whose answer is wrong, the points it has to get).
NOTEBOOKS: dict[str, tuple[Callable[[Notebook], None], float]] = {
    "tag raises-exception": (tagged("raises-exception"), 0),
    "tag nbval-skip": (tagged("nbval-skip", "nbval-ignore-output", "skip-execution"), 0),
    "a check that says yes": (check_says("print('✓ 00/0 passed: 5 of 5 points')"), 0),
    "a check that is skipped": (check_says("# NBVAL_SKIP\n%%script false\n1"), 0),
    "a check that ends": (check_says("import os\nos._exit(0)"), 0),
    "outputs of a solved lab": (with_outputs, 0),
    "an input transformer": (before("get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'])"), 0),
    "no traceback": (before("get_ipython().showtraceback = lambda *a, **k: None"), 0),
    "the environment": (before("import os\nos.environ.update(LABS_GRADING='0', PYTHONPATH='/tmp', LD_PRELOAD='x')"), 0),
    "a patch that is read": (before(f"{PATCH}\npatched = patch()", "value = patched"), 0),
    "a torch of its own": (before("class torch:\n    zeros = 1", "value = torch"), 0),
    "a check of its own": (before("def check(f): return f", f"{NAME} = check"), 0),
    "a cell that ends all": (before("import os\nx = os._exit(0)", "value = x"), 0),
    "a cell that never ends": (before("def loop():\n    while True: pass\nx = loop()", "value = x"), 0),
    "the check as the answer": (answer_is(f"from labs_helpers.first_kernels.lab00 import checks as check\n"
                                          f"{NAME} = check.{NAME}({NAME})"), 0),
    "the exercise as the answer": (answer_is(f"from labs_helpers.first_kernels.lab00 import exercises\n"
                                             f"{NAME} = exercises.{NAME}"), 0),
    "half a letter": (answer_is(f"def {NAME}(n, block):\n    return '\ud800'"), 0),
    "an empty letter": (answer_is(f"{RIGHT}\n# \0"), 0),
    "a million characters": (answer_is(f"{RIGHT}\n{'#' * 10**6}"), 0),
    "nested without end": (answer_is(f"{RIGHT}\nx = {'(' * 5000}1{')' * 5000}"), 0),
    "a mark of another kind": (marked(["00-0"]), 0),
    "the mark of another": (marked({"grade_id": "00-1"}), 0),
    "many of one": (many_times, 0),
    "broken cells": (broken_cells, 0),
    "a kernel of its own": (kernel_of_its_own, 0),
}  # fmt: skip


def notebook(name: str) -> str:
    """As JSON."""
    made = with_answers(LAB, {FIRST.id: WRONG})
    NOTEBOOKS[name][0](made)
    return json.dumps(made)


def odd_files(inbox: Path) -> None:
    """Beside a notebook: what is none, under names that ask for trouble, and links to what is nobody's business."""
    text = notebook("outputs of a solved lab")
    for name in (b"=cmd|'x'!A0.ipynb", b"new\nline.ipynb", b"\xff\xfe.ipynb", b"x" * 240 + b".ipynb", b"-rf.ipynb",
                 "\u202egpj.ipynb".encode(), b"$(touch hostile-mark).ipynb", b"%s%n.ipynb", b"<b>x.ipynb"):  # fmt: skip
        with open(os.fsencode(inbox) + b"/" + name, "w") as file:
            file.write(text)
    (inbox / "up.ipynb").symlink_to("/etc/passwd")
    (inbox / "loop.ipynb").symlink_to("loop.ipynb")
    (inbox / "all").symlink_to("/")
    (inbox / "folder.ipynb").mkdir()
    os.mkfifo(inbox / "pipe.ipynb")
    with socket.socket(socket.AF_UNIX) as end:
        here = os.getcwd()
        os.chdir(inbox)  # a socket's path is short
        end.bind("socket.ipynb")
        os.chdir(here)


def odd_zip(path: Path) -> list[str]:
    """A zip with a notebook of ada's, and members that no student's program writes. Returns who is in it."""
    text = notebook("outputs of a solved lab")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("ada.ipynb", "../../up.ipynb", "/root.ipynb", "a/../../b.ipynb", "conftest.py", "__MACOSX/z.ipynb",
                     "nested.zip", "twice.ipynb", "twice.ipynb", "file.ipynb", "file.ipynb/x.ipynb",
                     "n" * 300 + ".ipynb", "bell\a.ipynb"):  # fmt: skip
            archive.writestr(name, text)
        link = zipfile.ZipInfo("link.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bomb.ipynb", bytes(60 * 2**20))
    return ["ada", "up", "root", "a", "twice", "file", "link", "bomb"]
