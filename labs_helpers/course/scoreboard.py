"""The events in this notebook (exercises, reveals, predictions), and the rule for points."""

from __future__ import annotations

from dataclasses import dataclass, field

OPEN, RIGHT, WRONG, RETIRED = "○", "✓", "✗", "–"


def points_of(most: float, state: str, passed: int = 0, cases: int | None = None) -> float:
    """Return the points of an answer, up to `most`: the same rule in the notebook, `make progress`, `make check` and
    grading.

    RIGHT: all points. WRONG: the fraction `passed` of `cases`, rounded to 0.1; at least one case counts as wrong. OPEN,
    and an unknown number of cases: 0.
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
        """Return the exercises of the current lab, in order; before `setup` has named one, all known exercises."""
        return self.of(self.lab)

    def of(self, lab: str | None) -> list:
        """Return the exercises of a lab ('02') in order, or of every lab for None."""
        chosen = [e for key, e in self.exercises.items() if lab is None or key.startswith(f"{lab}/")]
        return sorted(chosen, key=lambda e: [int(part) for part in e.id.split("/")])

    def others(self, id: str) -> set[str]:
        """Return the names of the other answers of the same lab."""
        return {e.trial.__name__ for e in self.of(id.partition("/")[0]) if e.id != id}


SCORES = Scoreboard()
