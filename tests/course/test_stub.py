"""The stub is the reference without its solution, and is recognized until something is written."""

import re
import textwrap

import pytest

from labs_helpers.course.stub import BEGIN, END, attempted, cell_of, is_attempted, still_open, stub_of
from labs_helpers.gemm.lab02 import exercises
from labs_helpers.grading.reading.submission import shipped_exercises
from labs_helpers.labs import LABS
from tests.planted import planted


def written(tmp_path, text: str, name: str = "f"):
    """The function `name` of a module with this text."""
    import importlib.util

    path = tmp_path / f"cell_{abs(hash(text))}.py"
    path.write_text(textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def stub_function(reference, tmp_path):
    from pathlib import Path

    path = tmp_path / "stub.py"
    path.write_text(stub_of(Path(reference.__code__.co_filename).read_text()))
    import importlib.util

    spec = importlib.util.spec_from_file_location("stub", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, reference.__name__)


@pytest.mark.parametrize(
    "reference", [exercises.traffic, exercises.copy_tiles, exercises.masked_matmul, exercises.tile_order]
)
def test_a_stub_is_not_attempted_and_its_reference_is(reference, tmp_path):
    assert attempted(reference) and not still_open(reference)
    stub = stub_function(reference, tmp_path)
    assert not attempted(stub) and still_open(stub)


def test_a_stub_keeps_signature_docstring_and_steps_and_nothing_of_the_solution():
    cell = cell_of(exercises.masked_matmul)
    stub = stub_of(cell)
    assert "import" not in cell.split("def ")[0]
    assert stub.count("...") >= 2 and "mask=(rows" not in stub and "# 1. Load a and b" in stub
    assert '"""Return A·B, (M, N). a: (M, K), b: (K, N)' in stub


def test_one_of_two_places_is_an_attempt(tmp_path):
    half = planted(
        exercises.masked_matmul,
        tmp_path,
        (
            "    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))",
            "    ...",
        ),
    )
    assert attempted(half) and still_open(half) == ["masked_matmul_kernel"]


EMPTY = "pass", "return", "return None", "raise NotImplementedError", "raise NotImplementedError('later')"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{BEGIN}\n    ...\n    {END}", False),
        (f"{BEGIN}\n    # thinking\n    ...\n    {END}", False),
        (f"{BEGIN}\n    raise NotImplementedError()\n    {END}", False),
        (f"{BEGIN}\n    y = x\n    ...\n    {END}", True),
        (f"{BEGIN}\n    return x\n    {END}", True),
        ("...", False),
        ("return x", True),
        ('"""Says what."""\n    ...', False),
        *[(text, False) for text in EMPTY],
        *[(f"{BEGIN}\n    {text}\n    {END}", False) for text in EMPTY],
        ("y = 2 * x\n    raise NotImplementedError", False),
        ("if x:\n        return 1\n    raise NotImplementedError('no zero')", True),
        ("def ignore(error):\n        pass\n    return x", True),
        (f"{BEGIN}\n    def other(y):\n        raise NotImplementedError\n    return x\n    {END}", True),
        ("if not x:\n        raise NotImplementedError\n    return x", True),
    ],
)
def test_what_counts_as_an_attempt(body, expected, tmp_path):
    text = f"def f(x):\n    {body}\n"
    assert attempted(written(tmp_path, text)) is is_attempted(text, "f") is expected


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.number)
def test_not_implemented_is_not_attempted_in_any_exercise(lab):
    for one in shipped_exercises(lab):
        without_marks = re.sub(r"\n *### .*", "", one.stub)
        for text in one.stub, without_marks:
            assert not is_attempted(re.sub(r"^( +)\.\.\.$", r"\1raise NotImplementedError", text, flags=re.M), one.name)


def test_an_empty_helper_does_not_make_an_answer_open():
    assert is_attempted("def ignore(error):\n    pass\n\n\ndef f(x):\n    return x\n", "f")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = ...\n    return x + y", True),
        ("return ...", True),
        ('return {"a": x, "b": ...}', True),
        ("return g(x, key=...)", True),
        ("if x:\n        ...\n    return x", True),
        ("return [...][0]", True),
        ("return x[..., 0]", False),
        ("x[...] = 0\n    return x[..., None, :][0]", False),
        ('return x, "..."', False),
    ],
)
def test_what_is_still_open_in_a_begun_answer(body, expected, tmp_path):
    function = written(tmp_path, f"def f(x):\n    {body}\n")
    assert attempted(function) and still_open(function) == ["f"] * expected


def test_a_cell_without_marks_has_no_stub():
    with pytest.raises(ValueError, match="BEGIN SOLUTION"):
        stub_of("def f(x):\n    return x\n")
