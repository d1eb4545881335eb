"""What happened in this notebook so far: exercises, reveals, predictions."""

from __future__ import annotations

from dataclasses import dataclass, field

OPEN, RIGHT, WRONG = "○", "✓", "✗"
PREDICTION_POINTS = 5


@dataclass
class Prediction:
    """A number given before a measurement; `value` is None while none was given."""

    question: str
    value: float | None = None


@dataclass
class Scoreboard:
    """One lab's state in this process. `exercises` maps an id ('02/3') to its Exercise."""

    lab: str | None = None
    exercises: dict = field(default_factory=dict)
    status: dict = field(default_factory=dict)
    revealed: set = field(default_factory=set)
    predictions: dict = field(default_factory=dict)

    def of_lab(self) -> list:
        """The exercises of the current lab, in order; all that are known before `setup` named one."""
        return self.of(self.lab)

    def of(self, lab: str | None) -> list:
        """The exercises of a lab ('02') in order, of every lab for None."""
        chosen = [e for key, e in self.exercises.items() if lab is None or key.startswith(f"{lab}/")]
        return sorted(chosen, key=lambda e: [int(part) for part in e.id.split("/")])


SCORES = Scoreboard()


def summary() -> None:
    """Prints the lab's exercises with their state and points, and what is still open."""
    exercises = SCORES.of_lab()
    earned = total = 0
    for exercise in exercises:
        state = SCORES.status.get(exercise.id, OPEN)
        points = exercise.points if state == RIGHT else 0
        note = "  (reference revealed before an attempt)" if exercise.id in SCORES.revealed else ""
        print(f"{state} {exercise.id}  {exercise.title:<34} {points:>3} / {exercise.points}{note}")
        earned, total = earned + points, total + exercise.points
    if SCORES.predictions:
        given = sum(p.value is not None for p in SCORES.predictions.values())
        points = PREDICTION_POINTS * given // len(SCORES.predictions)
        print(
            f"{RIGHT if given == len(SCORES.predictions) else OPEN}       "
            f"{'predictions given':<34} {points:>3} / {PREDICTION_POINTS}  ({given} of {len(SCORES.predictions)})"
        )
        earned, total = earned + points, total + PREDICTION_POINTS
    print(f"{'':8}{'':<34} {earned:>3} / {total} points")
    unfinished = [e.id for e in exercises if SCORES.status.get(e.id, OPEN) != RIGHT]
    print("All done." if not unfinished else "Open: " + ", ".join(unfinished))
