"""Whether an answer is made of its exercise's vocabulary alone: then it cannot deceive the check that is beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from labs_helpers.grading.trust.outside import read_from_outside
from labs_helpers.grading.trust.own_classes import CLASSES, in_classes, own_attributes
from labs_helpers.grading.trust.vocabulary import BUILTINS, MODULES, Vocabulary, dotted, general, made

_IMPORTED = {"functional": "torch.nn", "language": "triton"}  # `from torch.nn import functional as F`
_KEPT = BUILTINS & {"isinstance", "len", "range", "min", "max", "sum", "abs", "print", "super"}  # keep their meaning
# Arguments that let a function of PyTorch or NumPy work on memory that is not its own.
_UNSAFE = frozenset(("refcheck", "cdata", "check_invariants"))
_LINKS = 20  # a.b.c has two; each link is looked at with those before it
_NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Delete, ast.Assign, ast.AugAssign,
    ast.AnnAssign, ast.For, ast.While, ast.If, ast.With, ast.withitem, ast.Raise, ast.Try, ast.ExceptHandler,
    ast.Assert, ast.Import, ast.ImportFrom, ast.alias, ast.Nonlocal, ast.Expr, ast.Pass, ast.Break, ast.Continue,
    ast.BoolOp,
    ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.Yield, ast.YieldFrom, ast.Compare, ast.Call, ast.keyword,
    ast.FormattedValue, ast.JoinedStr, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List,
    ast.Tuple, ast.Slice, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.ClassDef,
)  # fmt: skip


def not_in_vocabulary(source: str, vocabulary: Vocabulary, before: Sequence[str] = ()) -> list[str]:
    """What is not in the vocabulary, in words, a line each and the first one first; [] of a plain answer. before: what
    it needs of its author's other cells; lines are counted in the answer's own."""
    above = sum(text.count("\n") + 1 for text in before)
    try:
        tree = ast.parse("\n".join((*before, source)))
        found = dict.fromkeys(sorted([*_outside(tree, vocabulary), *read_from_outside(tree, vocabulary)]))
        return [f"{f'line {line - above}' if line > above else 'in another cell'}: {said}" for line, said in found]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"{type(error).__name__}: {error}"]


def _outside(tree: ast.Module, vocabulary: Vocabulary) -> Iterator[tuple[int, str]]:
    own = made(tree)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        for said in _of_node(node, own, vocabulary, parents):
            yield getattr(node, "lineno", 0), said
    for node in tree.body:
        if not _defines(node):
            yield node.lineno, "what runs besides definitions"
    yield from in_classes(tree, vocabulary, parents)
    yield from _at_once(tree)


def _of_node(node: ast.AST, own: set[str], vocabulary: Vocabulary, parents: dict[ast.AST, ast.AST]) -> Iterator[str]:
    if not isinstance(node, _NODES):
        yield type(node).__name__
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    elif isinstance(node, ast.Name):
        yield from _name(node, own, vocabulary, parents)
    elif isinstance(node, ast.Attribute):
        yield from _attribute(node, vocabulary, parents)
    elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg):
        name = node.arg if isinstance(node, ast.arg) else node.name
        method = isinstance(parents.get(node), ast.ClassDef) and name in ("__init__", "__len__", "__call__")
        if name.startswith("__") and not method:
            yield name
        if name in vocabulary.modules | _KEPT:
            yield f"another {name}"
        if isinstance(node, ast.ClassDef) and node.keywords:
            yield "keywords of a class"
    elif isinstance(node, ast.keyword) and node.arg in _UNSAFE:
        yield f"{node.arg}="
    elif isinstance(node, ast.ExceptHandler) and (node.type is None or "BaseException" in ast.dump(node.type)):
        yield "an except that catches everything"


def _defines(node: ast.stmt) -> bool:
    """Whether a statement at the top level only makes something of a name: a function, a class, an import, a value."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    plain = (ast.Assign, ast.AnnAssign)
    if isinstance(node, plain):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(isinstance(target, ast.Name) for target in targets)
    return isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Pass)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for alias in node.names:
        given = alias.asname or alias.name
        if (
            given.startswith("__")
            or given in _KEPT
            or (
                isinstance(node, ast.ImportFrom)
                and given in MODULES
                and MODULES[given] != f"{node.module}.{alias.name}"
            )
        ):
            yield f"another {given}"
    if isinstance(node, ast.ImportFrom):
        words = {f"{node.module}.{alias.name}" for alias in node.names}
        if any(alias.name == "*" for alias in node.names):
            yield f"from {node.module} import *"
        elif node.level:
            yield f"from {'.' * node.level}{node.module or ''} import"
        else:
            known = general().of_modules | {f"{whole}.{name}" for name, whole in _IMPORTED.items()}
            yield from (f"import of {word}" for word in sorted(words - known))
        return
    for alias in node.names:
        if MODULES.get(alias.asname or alias.name) != alias.name:
            yield f"import {alias.name}"


def _name(node: ast.Name, own: set[str], vocabulary: Vocabulary, parents: dict[ast.AST, ast.AST]) -> Iterator[str]:
    if node.id.startswith("__"):
        yield node.id
    elif node.id in vocabulary.modules:
        if not isinstance(node.ctx, ast.Load):
            yield f"another {node.id}"
        elif not isinstance(parents.get(node), ast.Attribute):
            yield f"{node.id} as a value"
    elif isinstance(node.ctx, ast.Load) and node.id not in own | vocabulary.names:
        yield node.id
    elif not isinstance(node.ctx, ast.Load) and node.id in _KEPT:
        yield f"another {node.id}"


def _attribute(node: ast.Attribute, vocabulary: Vocabulary, parents: dict[ast.AST, ast.AST]) -> Iterator[str]:
    own = own_attributes(node, parents)
    if node.attr.startswith("__") or (node.attr.startswith("_") and node.attr not in own):
        yield f".{node.attr}"
        return
    if _longer(node, _LINKS):
        yield f"more than {_LINKS} attributes in a row"
        return
    chain = dotted(node, vocabulary.modules)
    if chain:
        if isinstance(parents.get(node), ast.Attribute):
            if chain in CLASSES:
                yield f"{chain}.{parents[node].attr}"  # type: ignore[attr-defined]
            return  # a longer chain is looked at as a whole
        if not isinstance(node.ctx, ast.Load):
            yield f"a change of {chain}"
        elif chain not in vocabulary.of_modules:
            whole = any(chain.startswith(f"{word}.") for word in vocabulary.of_modules - CLASSES)
            if not (whole and node.attr in vocabulary.attributes):
                yield chain
        return
    if isinstance(node.ctx, ast.Load):
        if node.attr not in vocabulary.attributes | own:
            yield f".{node.attr}"
    elif node.attr not in vocabulary.stored | own:
        yield f"a change of .{node.attr}"


def _longer(node: ast.AST, links: int) -> bool:
    while links and isinstance(node, ast.Attribute):
        node, links = node.value, links - 1
    return isinstance(node, ast.Attribute)


def _at_once(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Calls of the answer's own functions that run with the definitions, or may: no check watches these."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    functions = frozenset(own)
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        inside: list[ast.AST] = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.FunctionDef):
            inside = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            called = node.decorator_list
        elif isinstance(node, ast.Lambda):
            continue
        else:
            called = [node.func] if isinstance(node, ast.Call) else []
        if isinstance(node, ast.Call) and not _only_kept(node):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            parts = [part for value in given for part in ast.walk(value)]
            if any(
                isinstance(part, ast.Lambda) or (isinstance(part, ast.Name) and part.id in functions) for part in parts
            ):
                yield node.lineno, "a function of its own that may run with the definitions"
        for function in called:
            root: ast.AST = function
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not isinstance(root, ast.Name | ast.Constant) or (isinstance(root, ast.Name) and root.id in own):
                yield getattr(function, "lineno", 0), "a call of its own that runs with the definitions"
        waiting += inside


def _only_kept(call: ast.Call) -> bool:
    """Whether what is called keeps a function for later, and does not run it."""
    function = call.func.func if isinstance(call.func, ast.Call) else call.func  # triton.autotune(…)(kernel)
    if isinstance(function, ast.Name):
        return function.id == "partial"  # one of the answer's own would be a call of its own
    return dotted(function, frozenset(MODULES)) in ("functools.partial", "triton.jit", "triton.autotune")
