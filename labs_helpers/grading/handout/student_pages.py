"""A hand-out's own pages, which replace the course's: a README for students, their Makefile, the table of labs."""

from __future__ import annotations

import ast
import re
from typing import Any

from labs_helpers.labs import Lab

TARGETS = {".PHONY", "$(stamp)", *"help setup lab check progress first-aid t4 clean".split()}  # for students

README = """# Tile to Cluster: {title}

{table}

Everything runs on a laptop without a GPU; with an NVIDIA GPU the same cells run on it.

## Install and open

On Linux with Python 3.11 or newer, make and a C++ compiler (Debian, Ubuntu: `sudo apt install python3-venv make g++`),
in this folder:

```sh
make lab
```

The first time, this installs everything into `.venv`, in some minutes; nothing needs root. Then it copies the labs to
`my_labs/` and opens them in JupyterLab. If no browser opens, follow the address that it prints. Without an NVIDIA GPU
take PyTorch's CPU build, which is gigabytes smaller:

```sh
make lab PIP_ARGS='--extra-index-url https://download.pytorch.org/whl/cpu'
```

- **Windows**: inside WSL 2, as on Ubuntu.
- **macOS**: open this folder in its devcontainer (VS Code: *Reopen in Container*).
- **conda**: `environment.yml` lists the same packages; its first lines say how to use it.
- **Something does not work**: `make first-aid` says what, and how to mend it.

## Work, and check what you wrote

Run the cells from the top with Shift+Enter. Write the body of each exercise where `...` stands. The check in the cell
below it says ○ (not attempted), ✓ (right) or ✗ (wrong: which case, and the likely cause). {open_ones}
`check.summary()`, at the end of a lab, adds up your points.

`make check LAB={first}` reads your saved copy as grading does, runs each check anew, and says the points of every
exercise{parts}. Grading uses these checks, and inputs that they do not show.

What you wrote stays in its cells, and `my_labs/progress.json` keeps each ✓; `make progress` shows all labs. After a
restart of the kernel, run the cells again from the top. To begin an exercise
anew, `make lab RESET={first}/1` puts the stub of exercise 1 of lab {first} back, and keeps your cell below it.

## Submit

Save the notebook (Ctrl+S), look at it once more with `make check`, and submit that one file:

{files}

- It is your code that is graded: neither the outputs nor the checks in your file.
- An exercise is found by a mark in its cell: write in the cell that is there. Do not copy it, move its code to another
  cell, or delete it.
- Cells of your own may stand anywhere. An answer may use what you define in a cell above it.
"""


WITH_REFERENCES = "While an exercise is open, the lab goes on\nwith its reference: exercises can be done in any order."
WITHOUT_REFERENCES = """The references are not in this
folder: while an exercise is open, the cells that need it are skipped, with a line that says so."""


def readme(labs: list[Lab], points: dict[str, int], references: bool = True) -> str:
    """Return the README for students. points: of each lab's exercises, by the lab's number."""
    rows = [("lab", "", "you build", "minutes", "points of its exercises"), ("---", "---", "---", "---:", "---:")]
    rows += [(lab.number, lab.title, lab.sentence, str(lab.minutes), str(points[lab.number])) for lab in labs]
    return README.format(
        title=title(labs),
        table="\n".join(f"| {' | '.join(row)} |" for row in rows),
        first=labs[0].number,
        parts=", also of an answer that is right in some of its cases" if references else "",
        open_ones=WITH_REFERENCES if references else WITHOUT_REFERENCES,
        files="\n".join(f"- lab {lab.number}: `my_labs/{lab.notebook}`" for lab in labs),
    )


def title(labs: list[Lab]) -> str:
    """Return the labs in words: 'lab 02'; 'labs 02 and 04'; 'labs 02, 03 and 04'."""
    *others, last = [lab.number for lab in labs]
    return f"labs {', '.join(others)} and {last}" if others else f"lab {last}"


def makefile(text: str, lessons: str) -> str:
    """Return the course's Makefile reduced to the targets that students use and those that the labs' text names.
    Empty lines separate its blocks."""
    targets = TARGETS | set(re.findall(r"`make ([a-z-]+)", lessons))
    blocks = text.split("\n\n")
    named = [re.match(r"([^\s:=]+):(?!=)", block) for block in blocks]
    kept = [block for block, name in zip(blocks, named, strict=True) if not name or name[1] in targets]
    phony = sorted(targets - {".PHONY", "$(stamp)"})
    text = "\n\n".join(kept).rstrip("\n") + "\n"
    text = re.sub(r"^\.PHONY: .*$", f".PHONY: {' '.join(phony)}", text, flags=re.MULTILINE)
    return text.replace("--editable '.[test]'", "--editable .")  # students run no tests of the course


def table_of(text: str, labs: list[Lab]) -> str:
    """Return labs.py with only these labs in its table."""
    lines = text.splitlines(keepends=True)
    tables: list[Any] = [
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "LABS" for t in node.targets)
    ]
    (table,) = tables
    numbers = {lab.number for lab in labs}
    for entry in reversed(table.elts):
        if entry.args[0].value not in numbers:
            del lines[entry.lineno - 1 : entry.end_lineno]
    return "".join(lines)
