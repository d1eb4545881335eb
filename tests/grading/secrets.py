"""Test whether a folder reveals the answers of transfer exercises, which are in tests/ and which students do not
get."""

from __future__ import annotations

import json
from pathlib import Path

from labs_helpers.course.stub import BEGIN, END
from labs_helpers.labs import LABS, ROOT


def answers() -> dict[str, set[str]]:
    """Lab number → the telling lines of its transfer answer that no other exercise of it has: most build on one."""
    found = {}
    for lab in LABS:
        answer = ROOT.joinpath(*lab.transfer.split(".")).with_suffix(".py")
        others = [*ROOT.joinpath(*lab.package.split("."), "exercises").glob("ex*.py")]
        known = {line for file in others for line in _lines(file.read_text())}
        found[lab.number] = {line for line in _solution(answer.read_text()) if len(line) > 20} - known
    return found


def given_away(folder: Path) -> dict[str, str]:
    """'07: gemm/plan.py' → how much, for each file with half of an answer's lines or more."""
    texts = {file: set(_lines(_text(file))) for file in folder.rglob("*") if file.suffix in (".py", ".ipynb", ".md")}
    return {
        f"{number}: {file.relative_to(folder)}": f"{len(answer & own)} of {len(answer)} lines"
        for number, answer in answers().items()
        for file, own in texts.items()
        if 2 * len(answer & own) >= len(answer)
    }


def _solution(text: str) -> list[str]:
    regions = [part.partition(END)[0] for part in text.split(BEGIN)[1:]]
    return [line for region in regions for line in _lines(region)]


def _lines(text: str) -> list[str]:
    """The lines of code, without what is left and right of it."""
    bare = (line.partition("  #")[0].strip() for line in text.splitlines())
    return [line for line in bare if line and not line.startswith("#")]


def _text(file: Path) -> str:
    if file.suffix != ".ipynb":
        return file.read_text()
    return "\n".join("".join(cell["source"]) for cell in json.loads(file.read_text())["cells"])
