"""What a mistake's picture holds: which elements, which program, who holds what; and that a notebook shows it."""

import pickle
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

from labs_helpers.collectives.lab06 import checks as rank_checks
from labs_helpers.collectives.lab06 import exercises as rank_exercises
from labs_helpers.course.verdict.holdings import compared
from labs_helpers.course.verdict.picture import CELLS, NOTHING, elements
from labs_helpers.draw import cells, figures
from labs_helpers.first_kernels.lab00 import checks as check
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.measure.machine import this_machine
from tests.first_kernels.lab00.test_planted_bugs import BUGS
from tests.planted import planted

ROOT = Path(__file__).resolve().parents[3]
kernels = pytest.mark.skipif(not this_machine().interpreted, reason="a compiled kernel's accesses are not seen")


def picture(check, reference, tmp_path, *changes):
    _, wrong = check.tried(planted(reference, tmp_path, *changes), pictured=True)
    assert pickle.loads(pickle.dumps(wrong)).picture.title == wrong.picture.title  # from another process
    return wrong.picture


def places(picture, panel, kind):
    """The cells of a kind."""
    return np.argwhere(picture.panels[panel].kinds == list(picture.kinds).index(kind)).tolist()


@kernels
def test_elements_that_nothing_stores(tmp_path):
    shown = picture(check.vector_add, exercises.vector_add, tmp_path, ("triton.cdiv(n, BLOCK)", "n // BLOCK"))
    assert shown.title == "44 of 300 elements of z are not stored once"
    first = places(shown, 0, "never stored")[0]
    assert [panel.name for panel in shown.panels] == ["z"] and shown.panels[0].place[:2] == (0, 300)
    assert first[1] * 300 / shown.panels[0].kinds.shape[1] == pytest.approx(256, abs=4)


@kernels
def test_a_program_that_leaves_a_tensor(tmp_path):
    changes = ("tl.load(x_ptr + elements, mask=exists)", "tl.load(x_ptr + elements)")
    shown = picture(check.vector_add, exercises.vector_add, tmp_path, changes)
    assert shown.title == "Program 2 loads 84 elements outside x_ptr" and "tl.load(x_ptr + elements)" in shown.below
    assert shown.panels[0].box == (300, 0, 84, 1)
    assert places(shown, 0, "outside the tensor") and places(shown, 0, "loaded by this program")


@kernels
def test_the_program_of_the_first_wrong_element(tmp_path):
    changes = next(bug[2] for bug in BUGS if bug[:2] == ("transpose_copy", "not transposed"))
    shown = picture(check.transpose_copy, exercises.transpose_copy, tmp_path, *changes)
    assert shown.title == "4,032 of 4,096 elements of the result are wrong" and "Program (0, 0)" in shown.below
    assert [panel.name for panel in shown.panels] == ["y_ptr", "x_ptr"] and shown.panels[0].box == (0, 0, 32, 32)
    assert places(shown, 0, "right") == [[i, i] for i in range(64)]
    assert places(shown, 1, "loaded by this program") == [[i, j] for i in range(32) for j in range(32)]


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (3, 2, 3, 4), (1000,), (500, 700)])
def test_any_shape_is_at_most_four_small_panels_that_keep_what_is_wrong(shape):
    result = torch.zeros(shape)
    off = np.zeros(shape, bool)
    off[(-1,) * len(shape)] = True
    shown = elements("D", {"right": ~off, "wrong": off}, result, "one is wrong")
    assert 1 <= len(shown.panels) <= 4 and max(panel.kinds.size for panel in shown.panels) <= CELLS**2
    assert sum(len(places(shown, panel, "wrong")) for panel in range(len(shown.panels))) == 1
    assert shown.wrong == (result.untyped_storage().data_ptr(), tuple(size - 1 for size in shape))
    fig = cells.draw_cells(shown)
    assert len(figures.png(fig)) < 30_000 and "one is wrong" in figures.alternative(fig)
    assert ("2 more panels" in shown.below) == (shape == (3, 2, 3, 4))


def test_whose_parts_each_rank_holds(tmp_path):
    source = Path(rank_exercises.ring_reduce_scatter.__code__.co_filename).read_text()
    line = next(text for text in source.splitlines() if "op(" in text and "out=" in text)
    changes = (line.strip(), "own[:] = part")
    shown = picture(rank_checks.ring_reduce_scatter, rank_exercises.ring_reduce_scatter, tmp_path, changes)
    assert shown.title == "3 of 3 ranks lack a finished sum" and shown.axes == ("rank", "chunk")
    assert [list(row) for row in shown.panels[0].texts] == [["Σ", "", ""], ["", "Σ", ""], ["", "", "Σ"]]
    assert places(shown, 1, "wrong") == [[0, 0], [1, 1], [2, 2]] and not places(shown, 0, "wrong")
    assert [shown.panels[1].texts[rank][rank] for rank in range(3)] == ["1", "2", "0"]
    fig = cells.draw_cells(shown)
    assert len(figures.png(fig)) < 30_000 and "got: 0: 1" in figures.alternative(fig)


def test_whose_block_each_rank_holds_without_a_word_of_how():
    right = {(rank,): np.arange(4.0) + 10 * rank for rank in range(2)}
    found = {(0,): right[1,], (1,): np.array([10.0, 11.0, np.nan, np.nan])}
    shown = compared("rank {0}'s result", found, right, [(0,), (1,)], lambda path, a, b: a == b)
    assert shown.panels[0].texts == [["A", "B"], ["C", "D"]] and shown.panels[1].texts == [["C", "D"], ["C", "–"]]
    assert places(shown, 1, "wrong") == [[0, 0], [0, 1], [1, 1]]
    assert compared("the loss", found, right, [], None) is None  # no rank in its name
    uneven = {(0, "w"): right[0,], (0, "b"): right[1,], (1, "w"): right[0,]}
    shown = compared("rank {0}: {1}", uneven, uneven, [], lambda path, a, b: a == b)
    assert shown.panels[0].kinds[1].tolist() == [0, NOTHING]


NOTEBOOK = (
    """
from labs_helpers.course import setup
setup("06")
from labs_helpers.collectives.lab06 import checks as check

def ring_shift(comm, send, recv):
    comm.Sendrecv(send, dest=(comm.rank - 1) % comm.size, recvbuf=recv, source=(comm.rank + 1) % comm.size)
""",
    "ring_shift = check.ring_shift(ring_shift)",
)


def test_a_notebook_shows_the_picture_below_the_message(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in NOTEBOOK])
    NotebookClient(notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(ROOT)}}).execute()
    *_, message, shown = notebook.cells[1].outputs
    assert message.output_type == "error" and "travel the wrong way" in "\n".join(message.traceback)
    assert "4 of 4 ranks hold unexpected values" in shown.metadata["image/png"]["alt"]
