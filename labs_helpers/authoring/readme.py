"""The README's table of labs, between two marks."""

from __future__ import annotations

import re

from labs_helpers.labs import Lab

BEGIN, END = "<!-- labs: written by `make sync` -->", "<!-- /labs -->"


def table(labs: tuple[Lab, ...]) -> str:
    """Return the labs as a Markdown table: number, title, what you build, what it runs on, minutes."""
    rows = [("", "lab", "you build", "runs on", "minutes"), ("---", "---", "---", "---", "---:")]
    rows += [(lab.number, lab.title, lab.sentence, lab.hardware, str(lab.minutes)) for lab in labs]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def with_table(text: str, labs: tuple[Lab, ...]) -> str:
    """`text` with the table between the marks. ValueError where they are not there once each."""
    if (text.count(BEGIN), text.count(END)) != (1, 1):
        raise ValueError(f"the table of labs stands between the lines {BEGIN} and {END}, once each")
    return re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n{table(labs)}\n{END}", text, flags=re.S)
