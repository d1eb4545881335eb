"""Which loads of a kernel leave what is past the end undefined: there 0 times it is NaN."""

from __future__ import annotations

import ast

from labs_helpers.compile.source import source_of


def loads_without_other(kernel) -> list[str]:
    """The names that a kernel's masked loads without `other` are assigned to."""
    names = []
    for node in ast.walk(ast.parse(source_of(kernel))):
        if isinstance(node, ast.Assign) and any(map(_is_bare, ast.walk(node.value))):
            names += [ast.unparse(target) for target in node.targets]
    return list(dict.fromkeys(names))


def _is_bare(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load"):
        return False
    keywords = {keyword.arg for keyword in node.keywords}
    return "other" not in keywords and len(node.args) < 3 and ("mask" in keywords or len(node.args) == 2)
