"""Test that answers that differ only by renaming are found, and, more important, that others are not."""

import ast
import importlib
import inspect
import random
import re
from pathlib import Path

import pytest

from labs_helpers.compile.source import plain
from labs_helpers.grading.cases import own_answers
from labs_helpers.grading.reading.notebook_file import read_cells
from labs_helpers.grading.results.answer_form import MOST_NODES, form_of
from labs_helpers.grading.results.twins import Alike, is_long, same_as_reference, shared, stub, twins
from labs_helpers.labs import LABS, ROOT, lab
from tests.collectives.lab06.right_answers import DIFFERENT

EXERCISES = ROOT / "labs_helpers/collectives/lab06/exercises"
REFERENCES = {path.stem.partition("_")[2]: path.read_text() for path in sorted(EXERCISES.glob("ex*.py"))}
ODD = '''
def fit_cost(nbytes, seconds, ranks):
    """Normal equations of the weighted problem, solved by Cramer's rule."""
    weights = [1.0 / (s * s) for s in seconds]
    total = moment = square = first = second = 0.0
    for n, s, w in zip(nbytes, seconds, weights):
        total += w
        moment += w * n
        square += w * n * n
        first += w * s
        second += w * n * s
    determinant = total * square - moment**2
    alpha = (first * square - second * moment) / determinant
    beta = (total * second - moment * first) / determinant
    steps, doublings = 2 * (ranks - 1), ranks.bit_length() - 1
    gain = beta * (doublings - steps / ranks)
    if gain <= 0:
        return alpha, beta, float("inf")
    return alpha, beta, alpha * (steps - doublings) / gain
'''


def changed(source, changes):
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


def renamed(source, word):
    """With other names for the local variables, a comment and no docstring."""
    tree = ast.parse(source)
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - arguments
    for number, name in enumerate(sorted(stored)):
        source = re.sub(rf"(?<![.\w]){name}(?!\w|=[^=])", f"{word}{number}", source)
    return re.sub(r'    """.*?"""\n', f"    # {word}\n", source, flags=re.DOTALL)


def right_answers(references=REFERENCES, different=DIFFERENT):
    """exercise → student → answer: the reference and all that are written differently."""
    found = {name: {"reference": text} for name, text in references.items()}
    for number, (name, changes) in enumerate(different):
        if name in references:
            found[name][f"{number}"] = changed(references[name], changes)
    return found


def groups(answers):
    return [(one.students, one.same, one.telling) for one in twins({"fit_cost": answers}, REFERENCES)]


def test_the_reference_is_known_under_other_names():
    reference = REFERENCES["fit_cost"]
    other = renamed(reference, "v").replace(
        "def fit_cost(nbytes, seconds, ranks)", "def fit_cost(nbytes: int, seconds, ranks) -> 'x'"
    )
    assert other != reference and same_as_reference(other, reference)
    assert not same_as_reference(other.replace("2 * (ranks - 1) -", "2 * (ranks + 1) -"), reference)
    assert not same_as_reference(reference.replace("fewer_vectors > 0", "alpha > 0"), reference)  # a name's place
    assert not same_as_reference("(", "(") and not same_as_reference("(", reference)


def test_it_is_telling_only_where_it_is_long_and_the_lab_does_not_show_it():
    """The answers of 02/2 and 02/4 stand all but whole in other cells of the lab: students wrote them just so."""
    assert is_long(REFERENCES["fit_cost"]) and not is_long(REFERENCES["naive_allreduce"]) and not is_long("")
    assert not is_long(REFERENCES["fit_cost"], [REFERENCES["fit_cost"]])
    references, shown = own_answers(lab("02")), [cell.source for cell in read_cells(lab("02").path) if cell.code]
    assert not any(is_long(references[f"02/{number}"], shown) for number in (2, 3, 4))


def test_right_answers_written_differently_are_like_nothing():
    answers = right_answers()
    assert twins(answers, REFERENCES) == []
    assert len(DIFFERENT) > 15 and all(len(one) > 2 for one in answers.values())
    assert not any(
        same_as_reference(text, REFERENCES[name])
        for name, by in answers.items()
        for key, text in by.items()
        if key != "reference"
    )


def test_a_copy_is_found_under_other_names_and_with_a_line_changed():
    answers = {
        "ada": ODD,
        "bob": renamed(ODD, "q"),
        "cy": renamed(ODD.replace("if gain <= 0:", "if 0.0 >= gain:"), "r"),
    }
    answers |= {f"s{i}": text for i, text in enumerate(right_answers()["fit_cost"].values())}
    found = twins({"fit_cost": answers}, REFERENCES)[:2]
    assert [(one.students, one.same, one.telling) for one in found] == [
        (("ada", "bob"), True, True), (("ada", "bob", "cy"), False, True)]  # fmt: skip
    assert found[0].share == 1 and 0.8 <= found[1].share < 1
    assert "the same but for names" in found[0].words and found[1].words.startswith(f"{found[1].share:.0%} of what")
    assert not any(re.search("cheat|copied|plagiar", one.words) for one in found)


@pytest.mark.parametrize("copies", [2, 3, 4, 5, 40])
def test_any_number_of_copies_is_one_group_and_the_courses_own_answer_is_none(copies):
    others = {f"s{i}": renamed(REFERENCES["fit_cost"], f"w{i}_") for i in range(9)}
    others |= {name: stub(REFERENCES["fit_cost"]) for name in ("y", "z")}
    copied = {f"t{i:02}": renamed(ODD, f"x{i}_") for i in range(copies)}
    assert groups(others | copied) == [(tuple(copied), True, copies <= 10)]


def test_what_many_write_nearly_so_says_nothing():
    nearly = renamed(ODD.replace("if gain <= 0:", "if 0.0 >= gain:"), "r")
    assert len(groups({"ada": nearly, "bob": ODD})) == 1
    assert groups({"ada": nearly} | {f"t{i}": ODD for i in range(10)})[1:] == []


def test_of_two_students_it_is_counted_how_many_answers_they_share():
    short = "def {0}(a):\n    return a.{0}() * 3 - 1\n"
    answers = {f"06/{i}": {name: short.format(f"f{i}") for name in ("ada", "bob")} for i in range(4)}
    answers["06/0"]["cy"] = answers["06/1"]["cy"] = short.format("f0")
    answers["06/3"]["bob"] = "def f3(a):\n    return 7\n"
    found = shared(twins(answers, {}), answers)
    assert [(one.one, one.other, one.exercises, one.alone, one.both) for one in found] == [
        ("ada", "bob", ("06/0", "06/1", "06/2"), 2, 4)]  # fmt: skip


def test_what_is_short_shipped_or_no_python_says_nothing():
    short = "def fit_cost(nbytes, seconds, ranks):\n    q = seconds[0] ** 0.5\n    return q, q / 3, max(q, 7)\n"
    for text in (REFERENCES["fit_cost"], "def f(:", "\0", "(" * 500):
        assert groups({"ada": text, "bob": text}) == []
    for text in (short, "x = " + "not " * 5000 + "1"):
        assert groups({"ada": text, "bob": text}) in ([(("ada", "bob"), True, False)], [])
    added = "\n    alpha = alpha * 1.0\n    return alpha, beta, crossover\n"
    answers = [changed(REFERENCES["fit_cost"], [("\n    return alpha, beta, crossover\n", added)]) for _ in range(2)]
    assert groups(dict(zip(("ada", "bob"), answers, strict=True))) == [(("ada", "bob"), True, False)]
    (one,) = twins({"": {"ada": short, "bob": short}}, {})
    assert one.words.endswith("to be a sign by itself")


def test_of_a_long_answer_the_beginning_is_compared():
    assert len(form_of("x = 1\n" * 2 * MOST_NODES)) <= 2 * MOST_NODES
    long = {"ada": ODD + "x = 1\n" * MOST_NODES, "bob": ODD + "x = 1\n" * 2 * MOST_NODES}
    assert groups(long) == [(("ada", "bob"), True, True)]


def test_in_a_made_class_that_works_alone_nobody_is_like_another():
    draw = random.Random(15)
    answers = {
        name: {f"s{i:03}": renamed(draw.choice(list(texts.values())), f"v{i}_") for i in range(200)}
        for name, texts in list(right_answers().items())[4:6]
    }
    answers["fit_cost"]["s007"], answers["fit_cost"]["s131"] = ODD, renamed(ODD, "mine")
    telling = [one for one in twins(answers, REFERENCES) if one.telling]
    assert telling == [Alike("fit_cost", ("s007", "s131"), True)]


def every_lab():
    for one in LABS:
        folder = ROOT / "tests" / one.package.removeprefix("labs_helpers.").replace(".", "/")
        for path in sorted(folder.glob("test_planted*.py")):
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            for group in vars(module).values():
                if isinstance(group, type) and getattr(group, "DIFFERENT", ()) and hasattr(group, "REFERENCES"):
                    files = {name: inspect.getsourcefile(plain(f)) for name, f in group.REFERENCES.items()}
                    yield {name: Path(file).read_text() for name, file in files.items()}, group.DIFFERENT


@pytest.mark.soak
def test_right_answers_of_all_labs_are_alike_only_where_one_is_made_of_the_other():
    found, compared = set(), 0
    for references, different in every_lab():
        answers = right_answers(references, different)
        compared += sum(map(len, answers.values()))
        found |= {one.exercise for one in twins(answers, references)}
    assert compared > 250 and found == {"exposed"}  # of which two are the same loop over events, cut differently


def test_a_number_of_any_length_is_a_word():
    """Python writes no integer of more than 4,300 digits in decimal."""
    text = "def f(a):\n    return a + 0x" + "f" * 5000
    assert form_of(text) != form_of(text[:-1])
