"""What the text of a kernel gives away: constructs of Python and PyTorch that cannot do there what they are meant to.

They are looked for only when an answer is wrong, and named before what its values suggest. A scalar is left alone:
`and` between two numbers is right in a kernel, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labs_helpers.compile.source import is_kernel, plain, reachable, source_of

MAKES_BLOCKS = {"arange", "zeros", "full", "zeros_like", "load"}
REDUCES = {"sum", "max", "min", "argmax", "argmin", "program_id", "num_programs", "cdiv", "reduce"}
KNOWS_NO_BLOCKS = "inside a kernel knows no blocks"
BUILTINS = {
    "max": "tl.maximum(a, b) takes the larger of each pair, tl.max(a, axis=…) the largest of an axis",
    "min": "tl.minimum(a, b) takes the smaller of each pair, tl.min(a, axis=…) the smallest of an axis",
    "sum": "tl.sum(a, axis=…) adds up a block",
    "len": "the length of a block is the constant that it was made with",
}


def telltales(student) -> tuple[str, ...]:
    """What the kernels that `student` launches have in them, a sentence each, the first two; () where there is none."""
    found: dict[str, None] = {}
    for part in reachable(student).values():
        kernel = plain(part)
        if part is not kernel and (is_kernel(part) or hasattr(part, "fn")):
            found.update(dict.fromkeys(_in_kernel(ast.parse(source_of(part)))))
    return tuple(found)[:2]


def blind(student) -> tuple[str, ...]:
    """Of these what is never right: Python's own max, min, sum and len of blocks."""
    return tuple(sentence for sentence in telltales(student) if KNOWS_NO_BLOCKS in sentence)


def _in_kernel(tree: ast.Module) -> Iterator[str]:
    blocks = _blocks(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) > 1 and _is_block(node, blocks):
            yield _chain(node)
        elif isinstance(node, ast.BoolOp) and any(_is_block(value, blocks) for value in node.values):
            word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
            yield (
                f"Python's `{word}` between two blocks takes one of them whole. `{sign}` goes element by element, with "
                f"brackets: (rows < M) {sign} (columns < N)"
            )
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and _is_block(node.operand, blocks):
            yield "Python's `not` of a block is one truth value; `~` goes element by element"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            yield from _two_bounds(node, blocks)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_block(node.left, blocks):
            yield "Triton has no **: a square is x * x, a root tl.sqrt(x)"
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id.endswith("_ptr"):
            name = node.value.id
            yield (
                f"{name} is an address, not an array: tl.load({name} + offsets, mask=…) reads, and "
                f"tl.store({name} + offsets, values, mask=…) writes"
            )
        elif isinstance(node, ast.Call):
            yield from _call(node, blocks)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Name):
            yield f"a loop goes over range(…): for … in range({node.iter.id})"


def _call(node: ast.Call, blocks: set[str]) -> Iterator[str]:
    module, name = _called(node)
    if module in ("torch", "np", "numpy", "math"):
        yield f"{module}.{name}: a function of {module} inside a kernel. There it is tl: tl.zeros, tl.sum, tl.sqrt"
    elif not module and name in BUILTINS and any(_is_block(argument, blocks) for argument in node.args):
        yield f"Python's {name}() {KNOWS_NO_BLOCKS}: {BUILTINS[name]}"
    elif module == "tl" and name in ("program_id", "num_programs") and not node.args and not node.keywords:
        yield f"tl.{name} takes an axis of the grid: tl.{name}(0) is the first"
    elif module == "tl" and name in ("max", "min") and len(node.args) > 1 and not _is_integer(node.args[1]):
        yield f"the second argument of tl.{name} is an axis; tl.{name}imum(a, b) compares two"


def _two_bounds(node: ast.BinOp, blocks: set[str]) -> Iterator[str]:
    """Of a mask such as (rows < M) & (columns < N), of which each side is a bound of another name."""
    sides = [side for side in (node.left, node.right) if isinstance(side, ast.Compare)]
    if len(sides) < 2 or not all(isinstance(side.ops[0], (ast.Lt, ast.LtE)) for side in sides):
        return
    if isinstance(node.op, ast.BitOr):
        yield "`|` lets through what is inside one of two bounds; an element has to be inside both: &"
    names = [side.left.id for side in sides if isinstance(side.left, ast.Name) and side.left.id in blocks]
    if len(set(names)) == 2:
        yield (
            f"{names[0]} and {names[1]} meet in the mask element by element. {names[0]}[:, None] is a column and "
            f"{names[1]}[None, :] a row, and together they are a tile"
        )


def _chain(node: ast.Compare) -> str:
    sides = [node.left, *node.comparators]
    if any(isinstance(side, ast.BinOp) and isinstance(side.op, (ast.BitAnd, ast.BitOr)) for side in sides):
        return (
            "& binds tighter than <, so `rows < M & columns < N` is `rows < (M & columns) < N`. Each comparison needs "
            "brackets: (rows < M) & (columns < N)"
        )
    return "a chain such as `0 <= rows < M` is Python's `and`, and takes one block whole: (0 <= rows) & (rows < M)"


def _blocks(tree: ast.Module) -> set[str]:
    """The names that stand for blocks somewhere in the kernel, as far as its text tells."""
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
    """(target, value) of an assignment; of `rows, b = first + tl.arange(0, 16), 0` each pair."""
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
    """('tl', 'sum') of tl.sum(…), ('', 'max') of max(…), ('', '') of another."""
    if isinstance(node.func, ast.Name):
        return "", node.func.id
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        return node.func.value.id, node.func.attr
    return "", ""


def _is_integer(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) or (isinstance(node, ast.Constant) and isinstance(node.value, int))
