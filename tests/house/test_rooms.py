"""Test the layers of ARCHITECTURE.md: imports only point downward, hide no module, and have no effects."""

import ast
import os
import sys
from pathlib import Path

from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import run

FOUNDATIONS = ["launch", "measure", "compile", "draw", "practice", "course"]  # each may use those before it
# Each library may use those before it; the training of labs 07 and later is of models that may be cut into parts.
LIBRARIES = [
    "first_kernels",
    "gemm",
    "attention",
    "transformer",
    "quantization",
    "serving",
    "collectives",
    "communication",
    "tensor_parallel",
    "pipeline",
    "training",
    "planner",
    "data_parallel",
    "clinic",
]
OFFICES = ["authoring", "grading"]  # of maintainers and instructors: they see everything, and nobody sees them
HOUSE = ROOT / "labs_helpers"
FILES = sorted(path for path in HOUSE.rglob("*.py") if "skeleton" not in path.parts)
LAB_PACKAGES = [lab.package.removeprefix("labs_helpers.") for lab in LABS]


def module(path: Path) -> str:
    """'gemm.lab02.exercises' of a file of the house."""
    parts = path.relative_to(HOUSE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> set[str]:
    """The modules of the house that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "labs_helpers":
            base = node.module.removeprefix("labs_helpers").lstrip(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".lstrip(".")
                is_module = (HOUSE / inner.replace(".", "/")).is_dir() or (
                    HOUSE / f"{inner.replace('.', '/')}.py"
                ).exists()
                found.add(inner if is_module else base)
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("labs_helpers.") for a in node.names if a.name.startswith("labs_helpers.")}
    return found


def lab_of(name: str) -> str | None:
    return next((lab for lab in LAB_PACKAGES if name == lab or name.startswith(f"{lab}.")), None)


def is_hidden(name: str) -> bool:
    """Whether a module holds a lab's hidden inputs: their imports are a matter of the grader's."""
    lab = lab_of(name)
    return lab is not None and name.removeprefix(f"{lab}.").split(".")[0] == "hidden"


def points_up(importer: str, imported: str) -> bool:
    """Whether the arrow from one module to another points to a room above it."""
    room, other = importer.split(".")[0], imported.split(".")[0]
    # The maintainers' room sees everything; everyone sees the table of labs, which asks the checks for its exercises.
    if room in ("authoring", "labs") or other == "labs":
        return False
    if is_hidden(importer):  # asked by the grader, where no answers are
        return bool({"checks", "exercises"} & set(imported.split("."))) or other == "authoring"
    if is_hidden(imported):
        return True
    if other in ("authoring", "grading"):
        return room != other
    if room == "grading":  # which asks the table of labs for their checks
        return other not in FOUNDATIONS
    if room in FOUNDATIONS:
        return other not in FOUNDATIONS or FOUNDATIONS.index(other) > FOUNDATIONS.index(room)
    if lab_of(importer) is None:  # a library
        above = room in LIBRARIES and other in LIBRARIES and LIBRARIES.index(other) > LIBRARIES.index(room)
        return above or other == "course" or lab_of(imported) is not None
    return lab_of(imported) is not None and other != room  # a lab may use its own topic's labs


def test_no_arrow_points_up():
    assert [
        f"{module(path)} imports {name}"
        for path in FILES
        for name in sorted(imports(path))
        if points_up(module(path), name)
    ] == []


def test_every_library_has_its_place_in_the_order():
    rooms = {module(path).split(".")[0] for path in FILES if path.parent != HOUSE}
    assert rooms == {*FOUNDATIONS, *LIBRARIES, *OFFICES}


def test_an_arrow_that_points_up_is_seen():
    assert points_up("gemm.plan", "gemm.lab02.exercises") and points_up("gemm.study", "course.exercise")
    assert points_up("measure.results", "course") and points_up("measure.machine", "compile.source")
    assert points_up("gemm.lab02.checks", "attention.lab04.exercises")
    assert points_up("communication.buckets", "data_parallel.ddp.base") and points_up("gemm.plan", "transformer.model")
    assert points_up("course.exercise", "grading.verdict") and points_up("grading.verdict", "gemm.lab02.checks")
    assert points_up("gemm.lab02.pictures", "gemm.lab02.hidden") and points_up("gemm.lab02.hidden", "gemm.lab02.checks")
    assert points_up("gemm.lab02.pictures", "grading.hidden.values")
    assert not points_up("gemm.lab02.hidden", "grading.hidden.values")
    assert not points_up("grading.verdict", "grading.marks")
    assert not points_up("grading.reading.submission", "course.stub")
    assert not points_up("gemm.lab02.checks", "attention.flash_attention")
    assert "gemm.plan" in imports(HOUSE / "gemm/fused.py")


def test_no_name_of_a_package_hides_a_module_in_it():
    assert [
        f"{module(path)}: {name}"
        for path in FILES
        if path.name == "__init__.py"
        for name in sorted(hidden_by(path, module(path)))
    ] == []


def hidden_by(path: Path, package: str) -> set[str]:
    """The modules of a package that its __init__.py binds something else to."""
    inside = {p.stem for p in path.parent.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    bound = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            own_module = f"labs_helpers.{package}" == getattr(node, "module", "")
            bound |= {a.asname or a.name for a in node.names} if not own_module else set()
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
    return bound & inside


def test_a_hidden_module_is_seen(tmp_path):
    (tmp_path / "matmul.py").touch()
    (tmp_path / "__init__.py").write_text("from labs_helpers.gemm.matmul import matmul\n")
    assert hidden_by(tmp_path / "__init__.py", "gemm") == {"matmul"}


def test_importing_a_topic_does_not_decide_how_triton_runs():
    names = [module(path) for path in FILES if module(path).split(".")[0] not in (*FOUNDATIONS, *OFFICES, "labs", "")]
    hopper = [name for name in names if "hopper" in name]  # written in Gluon, which not every Triton has
    program = "import importlib, os, sys\nfor name in sys.argv[1:]: importlib.import_module(f'labs_helpers.{name}')\n"
    program += "print(os.environ.get('TRITON_INTERPRET'))"
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    given = [name for name in names if name not in hopper]
    assert run([sys.executable, "-c", program, *given], timeout=100, cwd=ROOT, env=clean).strip() == "None"


def test_a_kernel_imported_before_the_choice_says_what_to_do():
    program = """
import torch
from labs_helpers.gemm import fused_matmul
from labs_helpers.attention import flash_attention
x = torch.ones(16, 16)
for call in (lambda: fused_matmul(x, x, x), lambda: flash_attention(*[x[None, None]] * 3)):
    try:
        call()
    except RuntimeError as error:
        print("prepare_triton() before the first kernel" in str(error))
"""
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"} | {"LABS_DEVICE": "cpu"}
    assert run([sys.executable, "-c", program], timeout=100, cwd=ROOT, env=clean).split() == ["True", "True"]
