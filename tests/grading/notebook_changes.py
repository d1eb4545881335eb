"""Changes that students and programs make to a notebook, with the points that remain."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.grading.written import mark_of

if TYPE_CHECKING:
    from tests.grading.made_class import Submission


def own(source: str, **metadata: Any) -> dict[str, Any]:
    """A code cell of the student's."""
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": [], "source": source}


def cell_of(one: Submission, mark: str) -> dict[str, Any]:
    return next(cell for cell in one.notebook["cells"] if mark_of(cell) == mark)


def any_of(one: Submission, draw: random.Random, most: int = 3) -> list[str]:
    return draw.sample(list(one.points), draw.randint(1, most))


def syntax_error(one: Submission, draw: random.Random) -> None:
    for id in any_of(one, draw):
        cell = cell_of(one, id)
        cell["source"] = "".join(cell["source"]) + draw.choice(["\nreturn (", "\n   x = 1", "\ndef f(:", "\nif x"])
        one.points[id] = 0.0


def renamed(one: Submission, draw: random.Random) -> None:
    """The mark of the exercise is gone, or another: its function is still found by its name."""
    for id in any_of(one, draw):
        metadata = cell_of(one, id)["metadata"]
        draw.choice([lambda m=metadata: m.pop("nbgrader"), lambda m=metadata: m["nbgrader"].update(grade_id="mine")])()


def deleted(one: Submission, draw: random.Random) -> None:
    """An exercise's cell, or a check, or a cell of the lab's own."""
    cells = one.notebook["cells"]
    for id in any_of(one, draw, 2):
        cells.remove(cell_of(one, id))
        one.points[id] = 0.0
    for id in any_of(one, draw):
        cells.remove(cell_of(one, f"{id}-check"))
    cells.remove(draw.choice([cell for cell in cells if not mark_of(cell)]))


def doubled(one: Submission, draw: random.Random) -> None:
    """With its stub before or behind it, which does not count, or with a try before it, which does not either."""
    from tests.grading.made_class import STUBS

    for id in any_of(one, draw):
        cell, place = cell_of(one, id), one.notebook["cells"].index(cell_of(one, id))
        other = cell | {"source": STUBS[id]}
        if one.points[id] and draw.random() < 0.5:
            other = cell | {"source": "def first_try(:"}
            one.notebook["cells"].insert(place, other)
        else:
            one.notebook["cells"].insert(place + draw.randint(0, 1), other)


def reordered(one: Submission, draw: random.Random) -> None:
    draw.shuffle(one.notebook["cells"])


def edited_metadata(one: Submission, draw: random.Random) -> None:
    """More points, checks that may fail, checks of one's own, and the outputs of a lab that is solved."""
    one.notebook["metadata"] = {"kernelspec": {"name": "julia", "display_name": "x", "language": "julia"}}
    for cell in one.notebook["cells"]:
        if mark_of(cell).endswith("-check"):
            cell["metadata"]["nbgrader"] |= {"points": 1000, "grade": draw.random() < 0.5}
            cell["metadata"]["tags"] = ["raises-exception"]
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["✓ passed: 1000 of 1000 points\n"]}]
    cell_of(one, f"{draw.choice(list(one.points))}-check")["source"] = "print('✓')"
    cell_of(one, draw.choice(list(one.points)))["metadata"]["collapsed"] = True


def older_version(one: Submission, draw: random.Random) -> None:
    """Another docstring, as an exercise had it earlier, and a task that was not there yet."""
    for id in any_of(one, draw):
        cell = cell_of(one, id)
        cell["source"] = "".join(cell["source"]).replace('"""', '"""As it was. ', 1)
    one.notebook["cells"] = [cell for cell in one.notebook["cells"] if mark_of(cell) not in ("02/7", "02/7-check")]
    one.points["02/7"] = 0.0


def magics(one: Submission, draw: random.Random) -> None:
    """Lines for IPython, in answers and in cells of one's own."""
    for id in any_of(one, draw):
        cell = cell_of(one, id)
        text = "".join(cell["source"])
        cell["source"] = draw.choice(["%%time\n", "%load_ext autoreload\n", "!pip list\n"]) + text + "\n%timeit 1 + 1"
    for text in ("%%bash\nls", "%matplotlib inline\nx = 3", "traffic?", "!nvidia-smi", "%%html\n<b>x</b>"):
        one.notebook["cells"].insert(draw.randint(2, 40), own(text))


HELPERS = (
    "TWO = 2\n\ndef twice(x):\n    return TWO * x\n\nprint(twice(3))",
    "@triton.jit\ndef positive(x):\n    return tl.maximum(x, 0.0)\n",
)


def own_helpers(one: Submission, draw: random.Random) -> None:
    """Answers that use the student's own cells above them; and cells that fail, plot and try things out."""
    from tests.grading.made_class import EXERCISES, SOLVED

    using = {
        "02/1": ("2 * M * N * K", "twice(M * N * K)"),
        "02/5": ("tl.maximum(acc + c, 0.0)", "positive(acc + c)"),
    }
    for id, (old, new) in using.items():
        assert old in SOLVED[id]
        cell_of(one, id)["source"] = SOLVED[id].replace(old, new)
        one.points[id] = float(EXERCISES[id].points)
    tries = ["1 / 0", "import matplotlib.pyplot as plt\nplt.plot([1, 2])", "copy_tiles(torch.zeros(4, 4))", "for"]
    one.notebook["cells"][3:3] = [own(text) for text in (*HELPERS, *draw.sample(tries, 2))]
