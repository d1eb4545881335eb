"""Show a reference, that is, the tested code itself, in a folded block."""

from __future__ import annotations

from labs_helpers.course.retired import RetiredExercise
from labs_helpers.course.scoreboard import OPEN, RETIRED, SCORES
from labs_helpers.course.stub import cell_of
from labs_helpers.course.withheld import Withheld


def reveal(reference, now: bool = False) -> None:
    """Show the source of an exercise's reference, collapsed.

    Before an attempt it requires `now=True`, and the summary then says so. Raises ValueError for a function that is not
    the reference of an exercise. In a hand-out without references, prints that there is none.
    """
    if isinstance(reference, Withheld):
        print(f"{OPEN} This hand-out does not include the references; the hints are there.")
        return
    if isinstance(reference, RetiredExercise):
        print(f"{RETIRED} {reference.exercise}")
        return
    found = [e for e in SCORES.exercises.values() if e.reference is reference]
    if not found:
        raise ValueError(f"{getattr(reference, '__name__', reference)!r} is not the reference of an exercise")
    exercise = found[0]
    if SCORES.status.get(exercise.id, OPEN) == OPEN:
        if not now:
            print(f"{exercise.id} has not been attempted. Read the hints first; `now=True` shows the reference.")
            return
        SCORES.revealed.add(exercise.id)
    _show(f"Reference for {exercise.id} {exercise.title}", cell_of(reference))


def _show(title: str, code: str) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import Markdown, display
    except ImportError:
        get_ipython = None
    if get_ipython is None or get_ipython() is None:
        print(f"# {title}\n{code}")
        return
    display(Markdown(f"<details>\n<summary>{title}</summary>\n\n```python\n{code}\n```\n\n</details>"))
