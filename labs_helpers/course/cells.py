"""Cells that have run in this notebook. They tell whether a cell that defines a function failed, and which cell was
never run.

IPython reports each cell, so this works in JupyterLab, in Colab and under nbval.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from labs_helpers.course.interrupted import where_interrupted
from labs_helpers.course.scoreboard import SCORES, WRONG
from labs_helpers.course.wrap import wrap

# Names that the cells at the top of the labs import; a misspelled name is none of these.
IMPORTED = frozenset(
    "torch triton tl np numpy pandas plt partial check exercises pictures charts study figures predict reveal "
    "this_machine setup".split()
)
RUN_ABOVE = "In JupyterLab: Run → Run All Above Selected Cell. In Colab: Runtime → Run before."
_CHECK = re.compile(r"^\s*(\w+)\s*=\s*check\.(\w+)\(", re.MULTILINE)
_DEF = re.compile(r"^(?:async )?(?:def|class) +(\w+)|^(\w+) *=(?!=)", re.MULTILINE)
_KEPT = 500


@dataclass(frozen=True)
class Cell:
    """One run of a cell. `text`: the source as Python got it. `defines`: functions and variables at its top level."""

    text: str
    id: str | None
    error: BaseException | None
    ran: bool  # False after a SyntaxError

    @property
    def defines(self) -> list[str]:
        return [] if _CHECK.search(self.text) else [a or b for a, b in _DEF.findall(self.text)]


class Cells:
    """The runs of a notebook's cells, in order."""

    def __init__(self) -> None:
        self.run: list[Cell] = []

    def note(self, result) -> None:
        """Record a cell; IPython calls this after each one."""
        text = result.info.raw_cell or ""
        shell = running_shell()
        if shell is not None and result.error_before_exec is None:
            text = shell.transform_cell(text)
        error = result.error_before_exec or result.error_in_exec
        cell = Cell(text, getattr(result.info, "cell_id", None), error, result.error_before_exec is None)
        self.run = [*self.run[1 - _KEPT :], cell]
        if (picture := getattr(error, "picture", None)) is not None:  # of a wrong answer, below its message
            from labs_helpers.draw import cells, figures

            figures.finish(cells.draw_cells(picture), "mistake")

    def why_stale(self, name: str, function: Callable) -> str:
        """Return why `name` is not what its cell says now: the last run failed, or defined another name. Otherwise
        ''."""
        cell = self.home_of(name)
        if cell is None or (cell.ran and _text_of(function).strip() == cell.text.strip()):
            return ""
        left = f"`{name}` is still the previous version. Fix that cell, run it, and run this check again."
        if cell.error is not None:
            how = "run to its end" if cell.ran else "run"
            return f"the cell above did not {how}: {_told(cell.error)}{_line_of(cell)}\n{left}"
        other = self.renamed(name) if name not in cell.defines else ""
        return f"the cell above defines `{other}`; rename it to `{name}`.\n{left}" if other else ""

    def texts(self, function: Callable | None = None) -> list[str]:
        """Return the cells that this kernel ran, preceded by the one that defined `function`, which may still be
        running."""
        return ([_text_of(function)] if function else []) + [cell.text for cell in self.run if cell.ran]

    def latest_of(self, name: str) -> Cell | None:
        """Return the latest run of a cell that should define `name`."""
        return next((cell for cell in reversed(self.run) if name in cell.defines), None)

    def home_of(self, name: str) -> Cell | None:
        """Return the latest run of the cell of `latest_of`, which may define another name by now."""
        before = self.latest_of(name)
        return None if before is None else next(cell for cell in reversed(self.run) if _same(cell, before, name))

    def renamed(self, name: str) -> str:
        """Return the function that the exercise's cell defines instead of `name`; '' if there is no such function."""
        latest = next((cell for cell in reversed(self.run) if not _CHECK.search(cell.text)), None)
        of_others = {other.trial.__name__ for other in SCORES.exercises.values()}
        if latest is None or latest.error or name in latest.defines or of_others & set(latest.defines):
            return ""
        before = self.latest_of(name)
        beside = [] if before is None else before.defines  # a kernel, whose launcher has another name now
        functions = [f for f in re.findall(r"^def +(\w+)", latest.text, re.MULTILINE) if f not in beside]
        same = before is not None and _same(latest, before, name)
        found = get_close_matches(name, functions, 1, 0.6) or (functions[-1:] if same else [])
        return found[0] if found else ""


def _same(cell: Cell, before: Cell, name: str) -> bool:
    """Tell whether two runs are of one cell, by its id in JupyterLab, elsewhere by the other names that it defines."""
    if cell is before:
        return True
    if cell.id is not None and before.id is not None:
        return cell.id == before.id
    return bool(({*before.defines} - {name}) & {*cell.defines})


CELLS = Cells()


def watch() -> None:
    """Record each cell from now on, explain a NameError for a name that a skipped cell defines, and shorten the
    traceback of an interrupt. Calling it twice has no further effect."""
    shell = running_shell()
    if shell is None or getattr(shell, "tile_to_cluster", False):
        return
    shell.tile_to_cluster = True
    shell.events.register("post_run_cell", CELLS.note)
    if not shell.custom_exceptions:  # another's stays
        shell.set_custom_exc((NameError, KeyboardInterrupt), _explain)


def _explain(shell, kind, error, tb, tb_offset=None) -> None:
    """Explain an interrupt, and a NameError caused by a cell that was not run; show any other error as IPython does."""
    words = where_interrupted(error, tb) if isinstance(error, KeyboardInterrupt) else why_missing(error, tb)
    if words:
        sys.last_type, sys.last_value, sys.last_traceback = kind, error, tb  # for %tb and %debug
        shell._showtraceback(kind, error, wrap(f"{WRONG} {words}").splitlines())
    else:
        shell.showtraceback((kind, error, tb), tb_offset=tb_offset, running_compiled_code=True)


def why_missing(error: NameError, tb) -> str:
    """Return what to do about a NameError from a cell's own line; '' if the name does not belong to the lab."""
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or not tb.tb_frame.f_code.co_name.startswith(("<module>", "<cell line")):  # the latter on Colab
        return ""
    name, line = getattr(error, "name", None), linecache.getline(tb.tb_frame.f_code.co_filename, tb.tb_lineno)
    checked = _CHECK.match(line)
    if checked and name == checked[1] == checked[2]:
        cell = CELLS.latest_of(name)
        if cell is not None and cell.error is not None:
            return (
                f"the cell above did not run: {_told(cell.error)}{_line_of(cell)}\n  Fix it, run it, and run this "
                "check again."
            )
        other = CELLS.renamed(name)
        instead = f"; the last one defines `{other}`: rename it to `{name}`" if other else ""
        return f"no cell has defined `{name}` yet{instead}.\n  Run the exercise's cell above, then this check."
    if name not in IMPORTED | {exercise.trial.__name__ for exercise in SCORES.exercises.values()}:
        return ""
    return (
        f"`{name}` is not defined. A cell above defines it, but it has not run since this kernel started.\n  "
        f"{RUN_ABOVE}\n  Then run this cell again. Your code is still in its cells; each ✓ returns when its check "
        "runs."
    )


def _told(error: BaseException) -> str:
    text = getattr(error, "msg", None) or str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _line_of(cell: Cell) -> str:
    """Return '\\n line 4: if x = 3:', the place of a SyntaxError in its cell; '' for another error."""
    number, lines = getattr(cell.error, "lineno", None), cell.text.splitlines()
    return f"\n  line {number}: {lines[number - 1].strip()}" if number and number <= len(lines) else ""


def _text_of(function: Callable) -> str:
    """Return the source of the cell or file that defines a function."""
    code = getattr(getattr(function, "fn", function), "__code__", None)
    return "".join(linecache.getlines(code.co_filename)) if code is not None else ""


def running_shell():
    """Return IPython's shell, or None outside a notebook."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
