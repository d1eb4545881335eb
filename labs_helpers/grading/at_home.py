"""Report the points of a student's own notebook on the checks that students have: make check LAB=02 [FILE=notebook]

The notebook is read as data, as in grading, and each attempted answer runs with its check in its own process, on the
processor. Exit status: 0, whatever the points; 2 if there is no such lab or notebook.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from labs_helpers.course.scoreboard import OPEN, RETIRED, RIGHT, WRONG, points_of
from labs_helpers.course.wrap import wrap
from labs_helpers.grading.own_process import in_a_process
from labs_helpers.grading.reading import submission
from labs_helpers.grading.reading.lab_imports import imports_of, used_by
from labs_helpers.grading.reading.notebook_file import Unreadable, read_cells
from labs_helpers.grading.reading.own_cells import whole
from labs_helpers.grading.reading.submission import Answer, read_submission
from labs_helpers.grading.results.flags import FLAGS
from labs_helpers.labs import ROOT, Lab, lab
from labs_helpers.measure.machine import prepare_triton

OLD_S = 15 * 60.0  # JupyterLab saves every two minutes, so an older file may lack recent edits
# What a student can do about a flag; the feedback page's sentence precedes it.
TO_DO = {
    submission.MISSING: "`make lab RESET={id}` puts its stub back.",
    submission.UNMARKED: "`make lab RESET={id}` brings the marked cell back: put your code there.",
    submission.ELSEWHERE: "Your notebook's check may have taken the other one: put all into the cell marked {mark}.",
    submission.NEW_CELL: "Its own cell is the one marked {mark}.",
    submission.IN_TEXT: "Put it into the code cell marked {mark}.",
}
NO_SHARE = "how many cases there are is not known here, so there are no points for a part; in grading there may be"
HIDDEN = "This is what the checks that you have say. Grading runs them too, and inputs that they do not show."


@dataclass(frozen=True)
class Row:
    """The result of one exercise. cases: the number of cases, or None if it is unknown."""

    mark: str
    points: float
    passed: int = 0
    cases: int | None = None
    message: str = ""

    @property
    def said(self) -> str:
        if self.mark == OPEN:
            return "not attempted"
        return f"{self.passed} of {self.cases}" if self.cases else f"{self.passed}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make check", description="The points of your notebook on the lab's checks.")
    parser.add_argument("lab", help="its number, as 02")
    parser.add_argument("--file", type=Path, help="default: your copy in my_labs/")
    given = parser.parse_args(arguments)
    os.environ["LABS_DEVICE"] = "cpu"  # as in grading; a GPU's check has other cases
    prepare_triton()
    try:
        chosen = lab(given.lab.zfill(2) if given.lab else "")
        path = given.file or ROOT / "my_labs" / chosen.notebook
        if not path.exists():
            raise Unreadable("there is no such file. `make lab` copies the labs to my_labs/; FILE= names another one")
        answers = _whole(read_submission(path, chosen), chosen)
    except Unreadable as error:
        print(f"{_shown(path)}: {error}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"LAB={given.lab}: {error}", file=sys.stderr)
        return 2
    try:
        print(_saved(path), flush=True)
        _report(chosen, answers)
    except KeyboardInterrupt:
        print("\nInterrupted.")
        return 130
    except BrokenPipeError:  # `make check | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
    return 0


def _whole(answers: list[Answer], chosen: Lab) -> list[Answer]:
    """Return the answers with the definitions that they need from their author's other cells above, including cells
    of exercises without a reference."""
    found, own = list[Answer](), list[str]()
    for answer, exercise in zip(answers, chosen.exercises(), strict=True):
        found.append(replace(answer, before=(*own, *answer.before)))
        if exercise.withheld and answer.attempted and not answer.problem:
            own.append(answer.source)
    return whole(found)


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _saved(path: Path) -> str:
    at = path.stat().st_mtime
    line = f"{_shown(path)}, saved {time.strftime('%Y-%m-%d %H:%M', time.localtime(at))}"
    if time.time() - at > OLD_S:
        line += ". What you have written since is not in it: save it in JupyterLab with Ctrl+S"
    return f"{line}\n"


def _report(chosen: Lab, answers: list[Answer]) -> None:
    """Print one line per exercise as soon as it is known; then the total, the errors, and oddities."""
    imports, rows = imports_of(read_cells(chosen.path)), []
    print(f"  {'exercise':42} {'points':>11}  cases right")
    for answer in answers:
        rows.append(row := _row(chosen, answer, imports))
        one = answer.shipped
        print(
            f"{row.mark} {one.id:5} {one.name:36} {row.points:>5g} / {one.points:>3}  {row.said}".rstrip(), flush=True
        )
    total = f"{sum(row.points for row in rows):.1f}".removesuffix(".0")
    print(f"  {'':42} {total:>5} / {sum(answer.shipped.points for answer in answers):>3}")
    for gone in chosen.retired:
        print(wrap(f"{RETIRED} {gone}"))
    for row, answer in zip(rows, answers, strict=True):
        name = f"{answer.shipped.id} {answer.shipped.name}"
        if row.message:
            print(f"\n{wrap(f'{WRONG} {name}: {row.message}')}")
        if row.mark == WRONG and row.passed and row.cases is None:
            print(wrap(f"! {name}: {NO_SHARE}"))
        for flag in answer.flags:
            to_do = TO_DO.get(flag, "").format(id=answer.shipped.id, mark=answer.shipped.grade_id)
            print(wrap(f"! {name}: {FLAGS[flag]} {to_do}"))
    print(f"\n{HIDDEN}")


def _row(chosen: Lab, answer: Answer, imports: list[str]) -> Row:
    if answer.problem:
        return Row(WRONG, 0, message=answer.problem)
    if not answer.attempted:
        return Row(OPEN, 0)
    job = {"exercise": answer.shipped.id, "name": answer.shipped.name, "imports": used_by(answer, imports)}
    found = in_a_process(chosen, job | {"before": list(answer.before), "source": answer.source})
    passed = len(found["lines"])
    if found["status"] == "right":
        return Row(RIGHT, points_of(answer.shipped.points, RIGHT), passed, passed)
    cases = in_a_process(chosen, {"exercise": answer.shipped.id}).get("cases") if passed else None
    message = f"the check itself failed: {found['message']}" if found["status"] == "failed" else found["message"]
    counted = 0 if found["status"] == "timeout" else passed  # as in grading
    return Row(WRONG, points_of(answer.shipped.points, WRONG, counted, cases), passed, cases, message)


if __name__ == "__main__":
    sys.exit(main())
