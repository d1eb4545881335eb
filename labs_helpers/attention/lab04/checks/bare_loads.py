"""Find masked loads without `other`, whose values past the end are undefined."""

import ast

from labs_helpers.compile.source import source_of


def loads_without_other(kernel) -> list[str]:
    """Return the names to which a kernel assigns masked loads without `other`."""
    assignments = (node for node in ast.walk(ast.parse(source_of(kernel))) if isinstance(node, ast.Assign))
    bare = (ast.unparse(node.targets[0]) for node in assignments if any(map(_is_bare, ast.walk(node.value))))
    return list(dict.fromkeys(bare))


def _is_bare(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load"):
        return False
    keywords = {keyword.arg for keyword in node.keywords}
    return "other" not in keywords and len(node.args) + ("mask" in keywords) == 2
