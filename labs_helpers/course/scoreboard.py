"""What happened in this notebook so far: exercises, reveals, predictions; and how points are counted."""

from __future__ import annotations

from dataclasses import dataclass, field

OPEN, RIGHT, WRONG, RETIRED = "○", "✓", "✗", "–"


def points_of(most: float, state: str, passed: int = 0, cases: int | None = None) -> float:
    """The points of an answer, of at most `most`: in the notebook, in `make progress`, `make check` and grading alike.

    RIGHT: all. WRONG: the share that `passed` of `cases` are, rounded to 0.1; at least one case is wrong, whatever
    number was told. Nothing where the number of cases is not known, and for OPEN.
    """
    if state == RIGHT:
        return most
    return round(most * min(passed, cases - 1) / cases, 1) if state == WRONG and cases else 0.0


@dataclass
class Scoreboard:
    """One lab's state in this process. `exercises` maps an id ('02/3') to its Exercise."""

    lab: str | None = None
    exercises: dict = field(default_factory=dict)
    status: dict = field(default_factory=dict)
    revealed: set = field(default_factory=set)
    predictions: dict = field(default_factory=dict)
    passed: dict = field(default_factory=dict)  # an id → the function that was right last

    def of_lab(self) -> list:
        """The exercises of the current lab, in order; all that are known before `setup` named one."""
        return self.of(self.lab)

    def of(self, lab: str | None) -> list:
        """The exercises of a lab ('02') in order, of every lab for None."""
        chosen = [e for key, e in self.exercises.items() if lab is None or key.startswith(f"{lab}/")]
        return sorted(chosen, key=lambda e: [int(part) for part in e.id.split("/")])

    def others(self, id: str) -> set[str]:
        """The names of the answers of the same lab's other exercises."""
        return {e.trial.__name__ for e in self.of(id.partition("/")[0]) if e.id != id}


SCORES = Scoreboard()
