"""Whether an answer is made of its exercise's vocabulary alone: then it cannot deceive the check that is beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from labs_helpers.grading.trust.vocabulary import BUILTINS, MODULES, Vocabulary, dotted, general, made

# What a module's class is allowed to be: `isinstance(x, torch.Tensor)`, an annotation. Called, they make values.
_CLASSES = frozenset(("torch.Tensor", "torch.Size", "np.ndarray", "numpy.ndarray"))
_IMPORTED = {"functional": "torch.nn", "language": "triton"}  # `from torch.nn import functional as F`
_KEPT = BUILTINS & {"isinstance", "len", "range", "min", "max", "sum", "abs", "print", "super"}  # keep their meaning
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


def beyond(source: str, vocabulary: Vocabulary) -> list[str]:
    """What is not in the vocabulary, in words, a line each and the first one first; [] of a plain answer."""
    try:
        tree = ast.parse(source)
        found = sorted(_beyond(tree, vocabulary))
        return [f"line {line}: {said}" for line, said in dict.fromkeys(found)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"{type(error).__name__}: {error}"]


def _beyond(tree: ast.Module, vocabulary: Vocabulary) -> Iterator[tuple[int, str]]:
    own = made(tree)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        for said in _of_node(node, own, vocabulary, parents):
            yield getattr(node, "lineno", 0), said
    for node in tree.body:
        if not _defines(node):
            yield node.lineno, "what runs besides definitions"


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
    if node.attr.startswith("_") and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
        yield f".{node.attr}"
        return
    if node.attr.startswith("__"):
        yield f".{node.attr}"
        return
    chain = dotted(node, vocabulary.modules)
    if chain:
        if isinstance(parents.get(node), ast.Attribute):
            if chain in _CLASSES:
                yield f"{chain}.{parents[node].attr}"  # type: ignore[attr-defined]
            return  # a longer chain is looked at as a whole
        if not isinstance(node.ctx, ast.Load):
            yield f"a change of {chain}"
        elif chain not in vocabulary.of_modules:
            whole = any(chain.startswith(f"{word}.") for word in vocabulary.of_modules - _CLASSES)
            if not (whole and node.attr in vocabulary.attributes):
                yield chain
        return
    of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
    if isinstance(node.ctx, ast.Load):
        if node.attr not in vocabulary.attributes and not of_self:
            yield f".{node.attr}"
    elif node.attr not in vocabulary.stored and not of_self:
        yield f"a change of .{node.attr}"
