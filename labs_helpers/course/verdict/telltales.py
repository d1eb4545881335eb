"""Find Python and PyTorch constructs in a kernel's source that do not work there as intended.

The source is searched only after a wrong answer, and these causes come before those inferred from the values. Scalars
are ignored: `and` between two numbers is right in a kernel, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labs_helpers.compile.source import is_kernel, plain, reachable, source_of

MAKES_BLOCKS = {"arange", "zeros", "full", "zeros_like", "load"}
REDUCES = {"sum", "max", "min", "argmax", "argmin", "program_id", "num_programs", "cdiv", "reduce"}
KNOWS_NO_BLOCKS = "inside a kernel does not work on blocks"
BUILTINS = {
    "max": "tl.maximum(a, b) returns the larger of each pair, tl.max(a, axis=…) the largest along an axis",
    "min": "tl.minimum(a, b) returns the smaller of each pair, tl.min(a, axis=…) the smallest along an axis",
    "sum": "tl.sum(a, axis=…) adds up a block",
    "len": "the length of a block is the constant that you created it with",
}


def telltales(student) -> tuple[str, ...]:
    """Return at most two sentences about such constructs in the kernels that `student` launches; () if there are
    none."""
    found: dict[str, None] = {}
    for part in reachable(student).values():
        kernel = plain(part)
        if part is not kernel and (is_kernel(part) or hasattr(part, "fn")):
            found.update(dict.fromkeys(_in_kernel(ast.parse(source_of(part)))))
    return tuple(found)[:2]


def blind(student) -> tuple[str, ...]:
    """Return those that are never right: Python's max, min, sum and len of blocks."""
    return tuple(sentence for sentence in telltales(student) if KNOWS_NO_BLOCKS in sentence)


def _in_kernel(tree: ast.Module) -> Iterator[str]:
    blocks = _blocks(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) > 1 and _is_block(node, blocks):
            yield _chain(node)
        elif isinstance(node, ast.BoolOp) and any(_is_block(value, blocks) for value in node.values):
            word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
            yield (
                f"Python's `{word}` between two blocks returns one of them as a whole. `{sign}` works element by "
                f"element and needs parentheses: (rows < M) {sign} (columns < N)"
            )
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and _is_block(node.operand, blocks):
            yield "Python's `not` makes one truth value of a block; `~` works element by element"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            yield from _two_bounds(node, blocks)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_block(node.left, blocks):
            yield "Triton has no **: write a square as x * x, a root as tl.sqrt(x)"
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id.endswith("_ptr"):
            name = node.value.id
            yield (
                f"{name} is an address, not an array: tl.load({name} + offsets, mask=…) reads, and "
                f"tl.store({name} + offsets, values, mask=…) writes"
            )
        elif isinstance(node, ast.Call):
            yield from _call(node, blocks)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Name):
            yield f"a loop needs range(…): for … in range({node.iter.id})"


def _call(node: ast.Call, blocks: set[str]) -> Iterator[str]:
    module, name = _called(node)
    if module in ("torch", "np", "numpy", "math"):
        yield (
            f"{module}.{name}: the kernel calls a function of {module}. Inside a kernel, use tl: tl.zeros, "
            "tl.sum, tl.sqrt"
        )
    elif not module and name in BUILTINS and any(_is_block(argument, blocks) for argument in node.args):
        yield f"Python's {name}() {KNOWS_NO_BLOCKS}: {BUILTINS[name]}"
    elif module == "tl" and name in ("program_id", "num_programs") and not node.args and not node.keywords:
        yield f"tl.{name} takes an axis of the grid: tl.{name}(0) for the first axis"
    elif module == "tl" and name in ("max", "min") and len(node.args) > 1 and not _is_integer(node.args[1]):
        yield f"the second argument of tl.{name} is an axis; tl.{name}imum(a, b) compares two"


def _two_bounds(node: ast.BinOp, blocks: set[str]) -> Iterator[str]:
    """Yield what is wrong with a mask such as (rows < M) & (columns < N), in which the sides bound different names."""
    sides = [side for side in (node.left, node.right) if isinstance(side, ast.Compare)]
    if len(sides) < 2 or not all(isinstance(side.ops[0], (ast.Lt, ast.LtE)) for side in sides):
        return
    if isinstance(node.op, ast.BitOr):
        yield "`|` lets an element through if it is inside one of the bounds; it must be inside both: &"
    names = [side.left.id for side in sides if isinstance(side.left, ast.Name) and side.left.id in blocks]
    if len(set(names)) == 2:
        yield (
            f"the mask compares {names[0]} and {names[1]} element by element. {names[0]}[:, None] is a column and "
            f"{names[1]}[None, :] is a row; & of the two is a tile"
        )


def _chain(node: ast.Compare) -> str:
    sides = [node.left, *node.comparators]
    if any(isinstance(side, ast.BinOp) and isinstance(side.op, (ast.BitAnd, ast.BitOr)) for side in sides):
        return (
            "& binds tighter than <, so Python reads `rows < M & columns < N` as `rows < (M & columns) < N`. Put "
            "each comparison in parentheses: (rows < M) & (columns < N)"
        )
    return (
        "a chain such as `0 <= rows < M` is Python's `and`, which returns one block as a whole: write (0 <= "
        "rows) & (rows < M)"
    )


def _blocks(tree: ast.Module) -> set[str]:
    """Return the names that refer to blocks somewhere in the kernel, as far as its source shows."""
    names: set[str] = set()
    while True:
        found = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign))
            for target, value in _assigned(node)
            if isinstance(target, ast.Name) and _is_block(value, names)
        }
        if found <= names:
            return names
        names |= found


def _assigned(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (target, value) of an assignment; for `rows, b = first + tl.arange(0, 16), 0`, each pair."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        elif node.value is not None:
            yield target, node.value


def _is_block(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Call):
        module, name = _called(node)
        if module == "tl" and name in REDUCES and len(node.args) < 2 and not node.keywords:
            return False  # a number
        if module == "tl" and name in MAKES_BLOCKS - {"load"}:
            return True
    return any(_is_block(child, names) for child in ast.iter_child_nodes(node))


def _called(node: ast.Call) -> tuple[str, str]:
    """Return ('tl', 'sum') for tl.sum(…), ('', 'max') for max(…), and ('', '') for any other call."""
    if isinstance(node.func, ast.Name):
        return "", node.func.id
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return node.func.value.id, node.func.attr
    return "", ""


def _is_integer(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) or (isinstance(node, ast.Constant) and isinstance(node.value, int))
