"""Make the stub that a student gets from a reference, and tell whether a function is still that stub.

A reference has marks around the part that the student writes:

    ### BEGIN SOLUTION
    …
    ### END SOLUTION

The stub has `...` there. A `raise` would be more explicit, but it does not compile inside a kernel.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path

from labs_helpers.compile.source import plain, reachable, source_of

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
_REGION = re.compile(rf"^([ \t]*){BEGIN}\n(.*?)^[ \t]*{END}$", re.MULTILINE | re.DOTALL)
_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def cell_of(reference) -> str:
    """Return the exercise cell of a reference, solved: its file without the docstring and the imports."""
    text = Path(inspect.getsourcefile(plain(reference))).read_text()
    tree = ast.parse(text)
    header = [
        node
        for i, node in enumerate(tree.body)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        or (i == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    body = "\n".join(text.splitlines()[header[-1].end_lineno :]) if header else text
    return body.strip("\n")


def stub_of(solved: str) -> str:
    """Return the same cell with `...` between each pair of marks. Raises ValueError if there is no pair."""
    stub, count = _REGION.subn(lambda m: f"{m[1]}{BEGIN}\n{m[1]}...\n{m[1]}{END}", solved)
    if not count:
        raise ValueError(f"no {BEGIN} … {END} in this cell")
    return stub


def attempted(function) -> bool:
    """Tell whether the student wrote something where the stub of `function`, or of a function it calls, has `...`.

    A body that always reaches `raise NotImplementedError` does not count as written, whatever given code precedes it.
    Neither does a body of only `...`, `pass` or `return None`.
    """
    return _written([source_of(part) for part in reachable(function).values()], plain(function).__name__)


def is_attempted(cell: str, name: str = "") -> bool:
    """Tell the same of an exercise cell's source, which must be valid Python. Also true if the function `name` is
    written without any of the cell's marked places."""
    return _written([cell], name) or _written(_needed(cell, name), name)


def _needed(cell: str, name: str) -> list[str]:
    """Return the sources of the cell's function `name` and of the functions it refers to; [cell] if there is no such
    function. A source extends to the next statement, because the mark after the last line is a comment."""
    body, lines = ast.parse(cell).body, cell.split("\n")
    ends = [*(min([node.lineno, *_decorated(node)]) - 1 for node in body[1:]), len(lines)]
    functions = {
        node.name: (node, end) for node, end in zip(body, ends, strict=False) if isinstance(node, ast.FunctionDef)
    }
    found, waiting = dict[str, str](), {name} & set(functions)
    while waiting:
        node, end = functions[one := waiting.pop()]
        found[one] = "\n".join(lines[node.lineno - 1 : end])
        waiting |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & set(functions) - set(found)
    return list(found.values()) or [cell]


def _decorated(node: ast.stmt) -> list[int]:
    return [part.lineno for part in getattr(node, "decorator_list", ())]


def _written(sources: list[str], name: str) -> bool:
    regions = [textwrap.dedent(match[2]) for text in sources if END in text for match in _REGION.finditer(text)]
    if regions:
        return not all(map(_is_stub, regions))
    functions = [node for text in sources for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    # Without marks, a helper may be empty: `def ignore(error): pass`. A kernel, or the checked function, may not.
    return not any(_untouched(node.body, empty=node.name == name or bool(_decorated(node))) for node in functions)


def _is_stub(region: str) -> bool:
    try:
        return _untouched(ast.parse(region).body, empty=True, marked=True)
    except SyntaxError:  # the marks were moved: the text between them is not a whole statement
        return False


def still_open(function) -> list[str]:
    """Return the names of the functions in which `...` is still in a marked place, or is used as a value."""
    return [name for name, part in reachable(function).items() if _has_open(ast.parse(source_of(part)))]


def _has_open(node: ast.AST) -> bool:
    """Tell whether the statements contain a placeholder, or `...` outside a subscript, where it means all other
    axes."""
    if _is_placeholder(node) or (isinstance(node, ast.Constant) and node.value is Ellipsis):
        return True
    inside = [node.value] if isinstance(node, ast.Subscript) else ast.iter_child_nodes(node)
    return any(map(_has_open, inside))


def _untouched(statements: list[ast.stmt], empty: bool, marked: bool = False) -> bool:
    """Tell whether the statements are only placeholders (and a docstring), or always reach `raise
    NotImplementedError`. empty: `pass` and `return None` are placeholders too. marked: these are the statements
    between two marks."""
    if _always_raises(statements, marked):
        return True
    return all(_is_placeholder(node) or _is_text(node) or (empty and _is_empty(node)) for node in statements)


def _always_raises(statements: list[ast.stmt], marked: bool) -> bool:
    """Tell whether the statements always raise, also inside a loop or a `with`, unless something returns before.
    Without marks, an inner function may be the open place; between marks, it belongs to the answer."""
    inner = () if marked else _DEFINITIONS
    for node in statements:
        if _raises(node) or (
            isinstance(node, (ast.For, ast.While, ast.With, *inner)) and _always_raises(node.body, marked)
        ):
            return True
        if not isinstance(node, _DEFINITIONS) and any(isinstance(part, ast.Return) for part in ast.walk(node)):
            return False
    return False


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_empty(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return):
        return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    return isinstance(node, ast.Pass)


def _raises(node: ast.AST) -> bool:
    """Tell whether the statement is `raise NotImplementedError()`, with or without a message; nbgrader uses it too."""
    return isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)


def _is_placeholder(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
    return _raises(node)
