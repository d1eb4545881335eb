"""Start a lab: python -m labs_helpers.authoring.new_lab 07 tensor_parallel "Two dimensions"

This creates every part of a lab from the templates in skeleton/: its entry in the table of labs, its package with an
exercise (double each element) and a transfer exercise, their planted bugs and correct answers, and its notebook, synced
and executed. The new lab passes the tests as it is. Replace the example with your own.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from labs_helpers.authoring.cells import VARIES
from labs_helpers.course import own_copies
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import run

SKELETON = Path(__file__).parent / "skeleton"
TABLE, NOTEBOOK = "table_entry.jinja", "notebooks/NOTEBOOK.jinja"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_TEMPLATES = Environment(
    loader=FileSystemLoader(SKELETON), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
)


def values(number: str, topic: str, title: str) -> dict[str, str]:
    """Return the values that fill the templates. ValueError for a lab that cannot be created."""
    if not re.fullmatch(r"\d\d", number):
        raise ValueError(f"NUMBER has two digits, as in 07, not {number!r}")
    if number in [lab.number for lab in LABS]:
        raise ValueError(f"there is a lab {number} already")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", topic):
        raise ValueError(f"TOPIC is the name of a package, as in tensor_parallel, not {topic!r}")
    if not title or re.search(r'["\\|\n]', title):
        raise ValueError(f'TITLE is a line without ", \\ and |, not {title!r}')
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") or topic
    return {
        "number": number,
        "topic": topic,
        "title": title,
        "lab": f"lab{number}",
        "notebook": f"{number}_{name}.ipynb",
    }


def files(given: dict[str, str]) -> dict[Path, str]:
    """Return path → text of each Python file of the lab, except an __init__.py that the topic already has."""
    found = {}
    for name in _TEMPLATES.list_templates():
        if name.endswith(".py.jinja"):
            place = name.removesuffix(".jinja").replace("TOPIC", given["topic"]).replace("LAB", given["lab"])
            found[ROOT / place] = _TEMPLATES.get_template(name).render(given)
    topic = ROOT / "labs_helpers" / given["topic"] / "__init__.py"
    if topic.exists():
        del found[topic]
    return found


def notebook(given: dict[str, str]) -> NotebookNode:
    """Return the lab's notebook, with empty exercise and check cells.

    Each cell of the template begins with a line '%% kind': markdown, code, code varies (its output is not compared),
    exercise 1, check 1.
    """
    cells = []
    for part in re.split(r"^%% ", _TEMPLATES.get_template(NOTEBOOK).render(given), flags=re.MULTILINE)[1:]:
        kind, source = (text.strip("\n") for text in part.split("\n", 1))
        word, _, which = kind.partition(" ")
        if word == "markdown":
            cells.append(new_markdown_cell(source))
        elif word == "code":
            cells.append(new_code_cell(source, metadata={"tags": [VARIES]} if which == "varies" else {}))
        else:
            id = f"{given['number']}-{which}{'-check' if word == 'check' else ''}"
            cells.append(new_code_cell(metadata={"nbgrader": {"grade_id": id}}))
    return new_notebook(cells=cells, metadata=METADATA)


def with_entry(table: str, given: dict[str, str]) -> str:
    """Return the source of labs.py with the lab inserted into LABS by its number."""
    (labs,) = [n for n in ast.parse(table).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "LABS"]
    later = [entry.lineno for entry in labs.value.elts if ast.literal_eval(entry.args[0]) > given["number"]]
    lines = table.splitlines(keepends=True)
    at = (later or [labs.end_lineno])[0] - 1
    return "".join([*lines[:at], _TEMPLATES.get_template(TABLE).render(given), *lines[at:]])


def make(given: dict[str, str]) -> list[Path]:
    """Write the lab and execute it; return its files. Raises FileExistsError, before writing any, if one of them
    exists."""
    new, shipped, table = files(given), ROOT / "notebooks" / given["notebook"], ROOT / "labs_helpers" / "labs.py"
    if there := [str(path.relative_to(ROOT)) for path in [*new, shipped] if path.exists()]:
        raise FileExistsError(f"not written over: {', '.join(there)}")
    for path, text in new.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    table.write_text(with_entry(table.read_text(), given))
    own_copies.write(notebook(given), shipped)
    _python(
        "ruff", "check", "--quiet", "--select", "I", "--fix", *new, shipped
    )  # imports are sorted by the topic's name
    _python("ruff", "format", "--quiet", "--force-exclude", *new, table)
    _python("labs_helpers.authoring.sync", given["number"])
    _python("labs_helpers.authoring.refresh", given["number"])
    return [*new, shipped]


def _python(module: str, *arguments) -> None:
    run([sys.executable, "-m", module, *map(str, arguments)], timeout=600, cwd=ROOT)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="new_lab", description="Begin a lab that passes the tests.")
    parser.add_argument("number", help="two digits, as in 07")
    parser.add_argument("topic", help="its package in labs_helpers/: tensor_parallel")
    parser.add_argument("title")
    options = parser.parse_args(arguments)
    try:
        given = values(options.number, options.topic, options.title)
        made = make(given)
    except (ValueError, FileExistsError) as error:
        print(f'{error}\nmake new-lab NUMBER=07 TOPIC=tensor_parallel TITLE="Two dimensions"', file=sys.stderr)
        return 1
    print("\n".join(str(path.relative_to(ROOT)) for path in made))
    print(f"Lab {options.number} is in labs_helpers/labs.py and README.md. Replace its example, and then each time:")
    print(f"make sync, make refresh LABS={options.number}, make test. A line in CHANGELOG.md says what it is.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
