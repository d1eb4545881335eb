"""Leave references out of a hand-out: their placeholders raise `StillOpen`, which a notebook shows as one line."""

from __future__ import annotations

import ast
import inspect
import re
import zlib
from base64 import b85encode
from pathlib import Path

from labs_helpers.compile.source import plain
from labs_helpers.grading.handout.recorded_calls import recorded_calls
from labs_helpers.labs import LABS, ROOT, Lab
from labs_helpers.measure.machine import prepare_triton

MODULE = '''"""The reference of exercise {id} is not in this hand-out."""

from math import inf, nan  # noqa: F401

from labs_helpers.course.withheld import Withheld

RECORDED = {{{recorded}}}  # what it returned where a check asks it
PACKED = {packed!r}  # its text, if its check runs it, or makes mistakes of it
{names} = Withheld("{id}", "{name}", RECORDED, PACKED)
'''


def withhold(folder: Path, labs: list[Lab]) -> None:
    """Replace every reference in a hand-out. labs: those whose notebooks it contains; of other labs it only contains
    imported modules.

    ValueError names the labs whose checks need the code of a reference.
    """
    prepare_triton()
    cannot, recorded = [], dict[str, dict[str, dict[str, str]]]()
    for lab in labs:
        try:
            recorded[lab.number] = recorded_calls(lab)
        except ValueError as error:
            cannot.append(str(error))
    if cannot:
        raise ValueError(f"REFERENCES=no: {'; '.join(cannot)}")
    for lab in LABS:
        if (folder / ROOT.joinpath(*lab.package.split(".")).relative_to(ROOT) / "exercises").is_dir():
            _withhold(folder, lab, recorded.get(lab.number, {}))


def _withhold(folder: Path, lab: Lab, recorded: dict[str, dict[str, str]]) -> None:
    for exercise in lab.exercises():
        if exercise.reference is None:
            continue
        own, name = Path(inspect.getfile(plain(exercise.reference))), exercise.trial.__name__
        target = folder / own.relative_to(ROOT)
        if target.exists():
            defined = [node.name for node in ast.parse(own.read_text()).body if isinstance(node, ast.FunctionDef)]
            values = "".join(f"\n    {asked!r}: {value}," for asked, value in recorded.get(name, {}).items())
            text = MODULE.format(
                id=exercise.id,
                name=name,
                names=" = ".join(defined),
                recorded=f"{values}\n" * bool(values),
                packed=_packed(own, name),
            )
            target.write_text(text)


def _packed(reference: Path, name: str) -> str:
    """Return the packed text of a reference that a check of its lab gives to `variant` or `variants`, otherwise ''."""
    checks = "".join(path.read_text() for path in (reference.parents[1] / "checks").rglob("*.py"))
    if not re.search(rf"\bvariants?\(exercises\.{name}\b", checks):
        return ""
    return b85encode(zlib.compress(reference.read_bytes())).decode()
