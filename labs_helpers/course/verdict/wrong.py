"""The explanation of a wrong answer: a few lines, without a traceback."""

from __future__ import annotations

from collections.abc import Sequence

from labs_helpers.course.scoreboard import WRONG
from labs_helpers.course.verdict.picture import Picture
from labs_helpers.course.wrap import wrap


class Wrong(AssertionError):
    """A case in which an answer is wrong. All parts are texts; in a notebook they are shown as

        ✗ case: where:
          got found, expected expected
          Likely cause: cause

    or, without `expected`, as '✗ case: found'. cause: the one that fits, or the two that do; none when it is not
    known, and then `advice` says one thing to try. picture: of the elements that are wrong (picture.py), drawn below
    the lines in a notebook.
    """

    def __init__(
        self,
        case: str,
        found: str,
        expected: str = "",
        where: str = "",
        cause: str | Sequence[str] = (),
        advice: str = "",
        picture: Picture | None = None,
    ):
        self.picture = picture
        self.case, self.found, self.expected, self.where, self.advice = case, found, expected, where, advice
        self.causes = (cause,) if isinstance(cause, str) and cause else tuple(cause)
        super().__init__(case, found, expected, where, self.causes, advice)

    @property
    def message(self) -> str:
        """Everything but the case."""
        text = f"got {self.found}, expected {self.expected}" if self.expected else self.found
        lines = [f"{self.where}:\n  {text}" if self.where and self.expected else f"{self.where}{text}"]
        if self.causes:
            lines.append("Likely cause: " + "; or: ".join(self.causes))
        elif self.advice:
            lines.append(f"One thing to try: {self.advice}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.case}: {self.message}" if self.case else self.message

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines instead of a traceback."""
        lines = [f"{WRONG} {line}" if i == 0 else "  " + line for i, line in enumerate(str(self).splitlines())]
        return [line for long in lines for line in wrap(long).splitlines() or [""]]
