"""What happened in this notebook so far: exercises, reveals, predictions."""

from __future__ import annotations

from dataclasses import dataclass, field

from labs_helpers.course.wrap import wrap
from labs_helpers.labs import retired

OPEN, RIGHT, WRONG, RETIRED = "○", "✓", "✗", "–"
PREDICTION_POINTS = 5


@dataclass
class Prediction:
    """A number given before a measurement, `value`, and the one that was found, `answer`; None while there is none."""

    question: str
    value: float | None = None
    answer: float | None = None
    unit: str = ""
    on: str = ""

    def found(self, answer: float, unit: str = "", on: str = "") -> None:
        """Keeps what was found for the summary, and prints it beside what was predicted:

            sectors down a column: you said 64; it is 32 (2 times too high)

        answer: in the unit of the question. unit: written behind both numbers, such as '%' or ' kB'. on: the machine,
        where it is not this one: 'on NVIDIA H200 it is 1.9'.
        """
        self.answer, self.unit, self.on = float(answer), unit, on
        print(f"{self.question}: {self}")

    def __str__(self) -> str:
        """'you said 64; it is 32 (2 times too high)', or what there is of it."""
        said = "no prediction" if self.value is None else f"you said {_number(self.value)}{self.unit}"
        if self.answer is None:
            return said
        it_is = f"{f'on {self.on} ' * bool(self.on)}it is {_number(self.answer)}{self.unit}"
        if self.value is None:
            return it_is
        if _number(self.value) == _number(self.answer):
            return f"{said}, and {it_is}"
        return f"{said}; {it_is}{_off(self.value, self.answer)}"


def _number(x: float) -> str:
    """Three digits and more of a number: 2,048, 0.333, 1.5e+09."""
    return f"{x:,.0f}" if x == int(x) and abs(x) < 1e9 else f"{x:,.0f}" if 1000 <= abs(x) < 1e9 else f"{x:.3g}"


def _off(said: float, right: float) -> str:
    """' (2 times too high)', where both are positive and that far apart."""
    if said <= 0 or right <= 0:
        return ""
    ratio = max(said / right, right / said)
    if ratio < 1.1:
        return " (close)"
    times = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return f" ({times} times too {'high' if said > right else 'low'})"


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


SCORES = Scoreboard()


def summary() -> None:
    """Prints the lab's exercises with their state and points, and what is still open."""
    exercises = SCORES.of_lab()
    earned = total = 0
    for exercise in exercises:
        state = SCORES.status.get(exercise.id, OPEN)
        points = exercise.points if state == RIGHT else 0
        note = "  (reference revealed before an attempt)" if exercise.id in SCORES.revealed else ""
        if exercise.id not in SCORES.status:
            note += "  (its check has not run since this kernel started)"
        print(f"{state} {exercise.id}  {exercise.title:<34} {points:>3} / {exercise.points}{note}")
        earned, total = earned + points, total + exercise.points
    for gone in retired(SCORES.lab):
        print(wrap(f"{RETIRED} {gone}"))
    if SCORES.predictions:
        given = sum(p.value is not None for p in SCORES.predictions.values())
        points = PREDICTION_POINTS * given // len(SCORES.predictions)
        print(
            f"{RIGHT if given == len(SCORES.predictions) else OPEN}       "
            f"{'predictions given':<34} {points:>3} / {PREDICTION_POINTS}  ({given} of {len(SCORES.predictions)})"
        )
        for prediction in SCORES.predictions.values():
            if prediction.value is not None and prediction.answer is not None:
                print(f"          {prediction.question}: {prediction}")
        earned, total = earned + points, total + PREDICTION_POINTS
    print(f"{'':8}{'':<34} {earned:>3} / {total} points")
    unfinished = [e.id for e in exercises if SCORES.status.get(e.id, OPEN) != RIGHT]
    print("All done." if not unfinished else "Open: " + ", ".join(unfinished))
    if any(e.id not in SCORES.status for e in exercises):
        print("A restart forgets each ✓ and none of your code: Run All brings them back, as the checks run.")
