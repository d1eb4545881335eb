"""An answer's own classes: what `self` may be asked for, and that it is nothing but an object of such a class; and the
same of `ctx`, of autograd's functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from labs_helpers.grading.trust.vocabulary import Vocabulary

# What a module's class is allowed to be: `isinstance(x, torch.Tensor)`, an annotation. Called, they make values.
CLASSES = frozenset(("torch.Tensor", "torch.Size", "np.ndarray", "numpy.ndarray"))
# Classes of others: what changed one of them would change the tensors of the check.
_OTHERS = frozenset(("Tensor", "Size", "ndarray", "Parameter", "Function", "Module"))
_INHERITED = frozenset(("Function", "Module"))
# Attributes that lead from a value to the program around it.
INTROSPECTION = frozenset(
    "gi_frame gi_code gi_yieldfrom cr_frame cr_code ag_frame ag_code f_back f_locals f_globals f_builtins f_code "
    "tb_frame tb_next mro fn tried verify exec eval".split()
)


def own_attributes(node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> frozenset[str]:
    """Of `self` in a method: what the method's class stores in it, and the names of the class's methods. Of `ctx` in a
    static method of an autograd.Function the same."""
    method: ast.AST | None = node
    while method is not None and not isinstance(method, ast.FunctionDef | ast.Lambda):
        method = parents.get(method)
    owner = parents.get(method) if method is not None else None
    if not (
        isinstance(node.value, ast.Name) and isinstance(method, ast.FunctionDef) and isinstance(owner, ast.ClassDef)
    ):
        return frozenset()
    if not method.args.args or method.args.args[0].arg != node.value.id:
        return frozenset()
    decorated = [_word(one) for one in method.decorator_list]  # of a static method self is what it is given
    if node.value.id == "ctx":
        known = decorated == ["staticmethod"] and [_word(base) for base in owner.bases] == ["Function"]
    else:
        known = node.value.id == "self" and not decorated
    return made_by(owner) if known else frozenset()


@lru_cache(maxsize=8)  # a class may have thousands of attributes, and each asks
def made_by(owner: ast.ClassDef) -> frozenset[str]:
    stored = {
        part.attr
        for part in ast.walk(owner)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id in ("self", "ctx")
    }
    return frozenset(stored | {part.name for part in owner.body if isinstance(part, ast.FunctionDef)}) - INTROSPECTION


def in_classes(tree: ast.Module, vocabulary: Vocabulary, parents: dict[ast.AST, ast.AST]) -> Iterator[tuple[int, str]]:
    """(line, what) that could make `self`, or an object of a class, something else."""
    yield from _self(tree, parents)
    yield from _bases(tree, vocabulary)
    yield from _others(tree, parents)


def _self(tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> Iterator[tuple[int, str]]:
    """Where `self` is anything but the first argument of a method, and where a method is called with another."""
    made = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    classes = {node.name for node in made}
    methods = {part.name for node in made for part in node.body if isinstance(part, ast.FunctionDef)}
    for node in ast.walk(tree):
        if another := _binds(node) & ({"self", "ctx"} if made else {"self"}):
            yield getattr(node, "lineno", 0), f"another {another.pop()}"
        elif isinstance(node, ast.arg) and node.arg == "self":
            arguments = parents[node]
            method = parents[arguments]
            first = isinstance(arguments, ast.arguments) and arguments.args and arguments.args[0] is node
            if not (first and isinstance(method, ast.FunctionDef) and isinstance(parents[method], ast.ClassDef)):
                yield node.lineno, "self outside of a method"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in classes:
            if node.attr not in methods:
                continue
            yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name) and node.id in classes and not _is_called(node, parents):
            yield node.lineno, f"the class {node.id} as a value"
    for owner in made:  # from such a value a method is called with another self
        for part in owner.body:
            beside = [*part.decorator_list, part.args] if isinstance(part, ast.FunctionDef) else [part]
            for node in (inner for one in beside for inner in ast.walk(one)):
                if isinstance(node, ast.Name) and node.id in methods and isinstance(node.ctx, ast.Load):
                    yield node.lineno, f"the method {node.id} as a value"


def _binds(node: ast.AST) -> set[str | None]:
    """The names that a node alone binds, but for arguments."""
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
        return {node.name}
    return {node.asname or node.name} if isinstance(node, ast.alias) else set()


def _bases(tree: ast.Module, vocabulary: Vocabulary) -> Iterator[tuple[int, str]]:
    """Classes of what is not the answer's own: a tensor whose methods a check asks could have others."""
    made = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    known = vocabulary.names | {node.name for node in made}
    for node in made:
        for base in node.bases:
            known_here = base.id in known if isinstance(base, ast.Name) else _word(base) in _INHERITED
            if not known_here:
                yield node.lineno, f"a class of {ast.unparse(base)}"


def _word(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _others(tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> Iterator[tuple[int, str]]:
    """Others' classes that are more than called, inherited, and asked for: whose attributes may be set."""
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and node.name in _OTHERS and node.asname not in (None, node.name):
            yield node.lineno, f"another {node.name}"
        if not isinstance(node, ast.Attribute | ast.Name) or _word(node) not in _OTHERS:
            continue
        child: ast.AST = node
        while isinstance(parents[child], ast.Tuple | ast.BinOp | ast.Subscript):  # (Tensor, int), Tensor | None
            child = parents[child]
        above = parents[child]
        called = isinstance(above, ast.Call) and (above.func is child or _word(above.func) == "isinstance")
        noted = child in (getattr(above, "annotation", None), getattr(above, "returns", None))
        if not called and not noted and not isinstance(above, ast.ClassDef):
            yield node.lineno, f"the class {_word(node)} as a value"


def _is_called(node: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    above = parents.get(node)
    if isinstance(above, ast.Call) and above.func is not node:  # isinstance(x, Own), super(Own, self)
        return isinstance(above.func, ast.Name) and above.func.id in ("isinstance", "super")
    return isinstance(above, ast.Call | ast.ExceptHandler | ast.ClassDef | ast.Raise | ast.arg | ast.Attribute)
