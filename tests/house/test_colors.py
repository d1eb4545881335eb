"""Test that only draw/roles.py names colors; figures use the roles of what they draw."""

import ast
import re
from pathlib import Path

import pytest
from matplotlib.colors import is_color_like

import labs_helpers

LIBRARY = Path(labs_helpers.__file__).parent
DRAWING = sorted(
    path
    for path in LIBRARY.rglob("*.py")
    if "labs_helpers.draw" in path.read_text() and path.parent != LIBRARY / "draw"
)
TAKES_COLORS = re.compile(r"^(c|ec|fc|colors?|(face|edge|markerface|markeredge)color)$")


def named(source: str) -> list[str]:
    """'line: color' of every color in a source: hex numbers, names where a color is expected, and the palette."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and TAKES_COLORS.match(node.arg or ""):
            found += [(value.lineno, value.value) for value in strings(node.value) if is_color(value.value)]
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else "" for key in node.keys]
            for key, value in zip(keys, node.values, strict=True):
                if TAKES_COLORS.match(str(key)):
                    found += [(text.lineno, text.value) for text in strings(value) if is_color(text.value)]
        elif isinstance(node, ast.Constant) and re.fullmatch(r"#[0-9A-Fa-f]{6}", str(node.value)):
            found.append((node.lineno, node.value))
        elif isinstance(node, ast.Attribute) and node.attr == "COLORS" and ast.unparse(node.value) == "figures":
            found.append((node.lineno, "figures.COLORS"))
    return [f"{line}: {color}" for line, color in sorted(set(found))]


def strings(node: ast.AST) -> list[ast.Constant]:
    """The strings in an expression that are not an argument of a call, such as the role in color('ours')."""
    if isinstance(node, ast.Call):
        return []
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node]
    return [text for child in ast.iter_child_nodes(node) for text in strings(child)]


def is_color(text: str) -> bool:
    return text != "none" and is_color_like(text)


@pytest.mark.parametrize("source, colors", [
    ('ax.plot(x, y, color="blue")', ["1: blue"]),
    ('ax.barh(0, 1, color="C0", edgecolor="white", facecolor="none")', ["1: C0", "1: white"]),
    ('ax.plot(x, y, color=color("ours"), marker="s")', []),
    ('look = {"color": "gray" if faint else "tab:red"}', ["1: gray", "1: tab:red"]),
    ('SHADE = "#B9B6AC"', ["1: #B9B6AC"]),
    ('shade = figures.COLORS["sky"]', ["1: figures.COLORS"]),
    ('draw_bars(ax, bars, {"ours": "ours"}, texts={"b": "b"})', []),
])  # fmt: skip
def test_what_counts_as_a_colour(source, colors):
    assert named(source) == colors


def test_no_figure_names_a_colour():
    assert len(DRAWING) > 40
    found = [f"{path.relative_to(LIBRARY)}:{line}" for path in DRAWING for line in named(path.read_text())]
    assert not found, f"give these a role of draw/roles.py: {', '.join(found)}"
