"""Test that with the references in all exercise cells every check passes, and that a wrong answer fails only its own
cell."""

import builtins

import nbclient
import pytest

from labs_helpers import labs
from labs_helpers.authoring.references import solved_cell
from labs_helpers.course.reset import grade_id
from tests.notebooks.labs import by_grade_id, names, shipped, solved, without_demonstrations

RUN_BY_MAKE_TEST = ("06", "09")  # of MPI, of a cluster; the last test runs one of kernels in part


def run(notebook, folder, allow_errors=False):
    nbclient.NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return {grade_id(cell) or number: cell for number, cell in enumerate(notebook.cells)}


def printed(cell) -> str:
    return "".join(output.get("text", "") for output in cell.get("outputs", []))


def errors(cell) -> list:
    return [output for output in cell.get("outputs", []) if output.output_type == "error"]


every_lab = pytest.mark.parametrize("lab", labs.LABS, ids=lambda lab: lab.path.stem)


@every_lab
def test_a_reference_uses_what_the_notebook_has_bound_before_it(lab):
    bound = set(dir(builtins))
    for cell in solved(lab).cells:
        if cell.cell_type == "code":
            binds, uses = names(cell.source)
            bound |= binds
            if (id := grade_id(cell)) and not id.endswith("-check"):
                assert uses <= bound, id


@pytest.mark.parametrize(
    "lab",
    [lab for lab in labs.LABS if lab.number in RUN_BY_MAKE_TEST],
    ids=lambda lab: lab.path.stem,
)
def test_the_references_pass_every_check(lab, tmp_path):
    """Without the cells between the exercises: nbval runs them as they are shipped, over the same references. In every
    lab the planted bugs' tests try the references too, outside of the notebook."""
    all_checks_pass(lab, run(without_demonstrations(solved(lab)), tmp_path))


@pytest.mark.soak
@every_lab
def test_all_the_lab_runs_with_the_references(lab, tmp_path):
    all_checks_pass(lab, run(solved(lab), tmp_path))


def all_checks_pass(lab, cells):
    checks = {identifier: cell for identifier, cell in cells.items() if str(identifier).endswith("-check")}
    assert len(checks) == len(lab.exercises())
    for identifier, cell in checks.items():
        assert printed(cell).startswith("✓") and "○" not in printed(cell), identifier
    summary = next(cell for cell in reversed(list(cells.values())) if "check.summary()" in cell.source)
    assert "✗" not in printed(summary) and printed(summary).endswith("All done.\n")


def test_a_wrong_answer_fails_its_own_cell_and_the_lab_goes_on(tmp_path):
    lab = labs.lab("02")
    notebook, tile = shipped(lab), next(e for e in lab.exercises() if e.id == "02/2")
    end = next(i for i, cell in enumerate(notebook.cells) if "## 3 ·" in cell.source)
    notebook.cells = notebook.cells[:end]
    by_grade_id(notebook)["02-2"].source = solved_cell(lab, tile).replace("* stride_xm", "* stride_xn")
    cells = run(notebook, tmp_path, allow_errors=True)
    failed = [identifier for identifier, cell in cells.items() if errors(cell)]
    assert failed == ["02-2-check"]
    (error,) = errors(cells["02-2-check"])
    shown = "\n".join(error.traceback)
    assert error.ename == "Wrong" and "02/2 one tile" in shown and "Traceback" not in shown
    assert "Likely cause" in shown and "bound to it until this check passes" in shown and len(error.traceback) < 10
