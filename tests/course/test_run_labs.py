import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from labs_helpers.course.index_page import Result, write_index
from labs_helpers.course.run_labs import headings, run_lab, to_html
from labs_helpers.launch.process import ProcessFailed, run
from tests.processes import PATIENCE_S, eventually, started

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "labs_helpers.course.run_labs"]
FIGURE = """
import os
from labs_helpers.draw import figures
fig, ax = figures.new("Sums")
ax.plot([1, 2])
figures.finish(fig, "00-sums")
figures.finish(fig, "00-after")
open("left-behind.txt", "w").close()
"""


def write(path, *sources):
    """A notebook of `sources`: those that begin with '# ' are Markdown."""
    cells = [new_markdown_cell(s) if s.startswith("# ") else new_code_cell(s) for s in sources]
    nbformat.write(new_notebook(cells=cells), path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(folder of the notebooks, out, what was printed) of runs over labs that go well and labs that fail."""
    labs, out = tmp_path_factory.mktemp("my labs"), tmp_path_factory.mktemp("out")
    write(labs / "00_start.ipynb", "# Start here", "x = 1", "# Sums", FIGURE)
    write(labs / "01_error.ipynb", "# Errors", "x = 1", "# Division <by 0>", "1 / 0", "print('never')")
    write(labs / "02_dies.ipynb", "import os; os.write(2, b'last words'); os._exit(3)")
    write(labs / "03_slow.ipynb", "# Slow", "import time; time.sleep(600)")
    (labs / "04_damaged.ipynb").write_text("{")
    write(labs / "05_last.ipynb", "print('the ' + 'end')")
    before = {path: path.read_bytes() for path in labs.iterdir()}

    def printed(*arguments):
        with pytest.raises(ProcessFailed) as caught:
            run([*COMMAND, *arguments, "--out", out], timeout=300, cwd=ROOT)
        assert caught.value.returncode == 1
        return caught.value.output

    slow = labs / "03_slow.ipynb"  # by itself: a busy machine shall not be too slow for the others
    of_slow = printed(slow, "--cell-timeout", "1")
    of_others = printed(*sorted(before.keys() - {slow}))
    assert {path: path.read_bytes() for path in labs.iterdir()} == before
    return labs, out, of_others + of_slow


def test_a_lab_that_runs_through_has_one_line(ran):
    first = ran[2].splitlines()[0]
    assert first.startswith("✓ 00_start  ") and first.endswith(" s, 2 figures") and "lab 00" not in ran[2]


def test_each_lab_is_judged(ran):
    marks = [line.split()[:2] for line in ran[2].splitlines() if line[0] in "✓✗"]
    assert marks == [
        ["✓", "00_start"],
        ["✗", "01_error"],
        ["✗", "02_dies"],
        ["✗", "04_damaged"],
        ["✓", "05_last"],
        ["✗", "03_slow"],
    ]


@pytest.mark.parametrize(
    "said",
    [
        "lab 01 · cell 4/5 · Division <by 0>",
        "ZeroDivisionError: division by zero",
        "its kernel died",
        "last words",
        "lab 03 · cell 2/2 · Slow\n  it ran longer than 1 s",
        "04_damaged.ipynb is not a notebook",
    ],
)
def test_failures_are_explained(ran, said):
    assert said in ran[2]


def test_executed_notebook_page_and_figure_are_left(ran):
    out = ran[1]
    (output,) = nbformat.read(out / "05_last.ipynb", as_version=4).cells[0].outputs
    assert output.text == "the end\n"
    assert "the end" in (out / "05_last.html").read_text()
    assert "<svg" in (out / "figures" / "00-sums.svg").read_text()


def test_a_failed_lab_leaves_its_error(ran):
    out = ran[1]
    cells = nbformat.read(out / "01_error.ipynb", as_version=4).cells
    assert cells[3].outputs[0].ename == "ZeroDivisionError" and not cells[4].outputs
    assert "ZeroDivisionError" in (out / "01_error.html").read_text()


def test_index_lists_labs_errors_and_figures(ran):
    out, printed = ran[1:]
    page = (out / "index.html").read_text()
    assert f"Index: {out / 'index.html'}" in printed
    assert 'href="00_start.html"' in page and 'src="figures/00-sums.svg"' in page
    assert page.count("✗ failed") == 4 and page.count("✓ ran through") == 2
    assert "Division &lt;by 0&gt;" in page and "04_damaged.html" not in page
    assert "http" not in page
    assert "<h2>Start here</h2>" in page and "<h2>05_last</h2>" in page  # which has no heading
    assert page.index("figures/00-sums.svg") < page.index("figures/00-after.svg")


def test_a_run_of_one_lab_keeps_the_others_in_the_index(ran, tmp_path):
    shutil.copytree(ran[1], out := tmp_path / "out")
    write(tmp_path / "01_error.ipynb", "# Mended", "x = 1")
    result = run_lab(tmp_path / "01_error.ipynb", out, cell_timeout=60)
    page = write_index([result], out).read_text()
    # 04 is not in it: without a page there is nothing to show of an earlier run.
    assert re.findall("<h2>(.*)</h2>", page) == ["Start here", "Mended", "02_dies", "Slow", "05_last"]
    assert "Division" not in page and page.count("✗ failed") == 2 and "figures/00-sums.svg" in page
    (out / "05_last.html").unlink()
    assert "05_last" not in write_index([], out).read_text()
    assert "Lab &lt;6&gt;" in write_index([Result("06_other", "Lab <6>")], out).read_text()


def test_the_rows_of_a_table_do_not_break():
    style = to_html(new_notebook(), "x").partition("</head>")[0].rpartition("<style>")[2]
    assert "white-space: nowrap" in style and "overflow-x: auto" in style


def test_an_interrupt_ends_the_kernel(tmp_path):
    lab, pid = tmp_path / "00_wait.ipynb", tmp_path / "pid"
    source = f"import os, time\nprint(os.getpid(), file=open({str(pid)!r}, 'w'), flush=True)\ntime.sleep(600)"
    write(lab, source)
    command = [*COMMAND, lab, "--out", tmp_path / "out"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as running:
        assert eventually(lambda: pid.exists() and pid.read_text().strip())
        running.send_signal(signal.SIGINT)
        printed, _ = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 130 and "Interrupted" in printed and "Traceback" not in printed
        assert not Path("/proc", pid.read_text().strip()).exists()


@pytest.mark.parametrize("arguments", [["absent.ipynb"], ["00_lab.ipynb", "--out", "."]])
def test_bad_arguments_are_refused(tmp_path, arguments):
    write(tmp_path / "00_lab.ipynb", "1")
    with pytest.raises(ProcessFailed, match="no such notebook: absent|contains the source notebooks") as caught:
        run([*COMMAND, *arguments], timeout=60, cwd=tmp_path)
    assert caught.value.returncode == 2 and (tmp_path / "00_lab.ipynb").exists()


def test_headings():
    cells = [
        new_code_cell(""),
        new_markdown_cell("# A\ntext\n## B ##\n#not one"),
        new_code_cell("# no heading"),
    ]
    assert headings(new_notebook(cells=[*cells, new_markdown_cell("text")])) == ["", "B", "B", "B"]
