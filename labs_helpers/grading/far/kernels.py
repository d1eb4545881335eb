"""Compile an answer's kernels in the judge, from their text alone.

The text that is compiled is unparsed from the syntax tree that was checked. Docstrings are left out, since Triton
searches a kernel's text for the line that begins it. A kernel may use Triton's language, its own parameters and
variables, numbers of the answer and the answer's other kernels. A kernel that uses anything else is not launched.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from labs_helpers.grading.far.memory import Refused

_CALLED = {"range": range, "min": min, "max": max, "abs": abs, "float": float, "int": int, "bool": bool, "len": len,
           "isinstance": isinstance, "tuple": tuple, "list": list, "print": print}  # fmt: skip
_OF_VALUES = frozenset(
    "to dtype element_ty shape type T value trans permute reshape view broadcast_to expand_dims split sum max min "
    "argmax argmin abs exp exp2 log log2 sqrt rsqrt sigmoid cast is_floating is_fp32 is_fp16 is_bf16 "
    "primitive_bitwidth numel logical_and logical_or advance append".split()
)
_OF_TRITON = frozenset(("cdiv", "next_power_of_2"))
# The functions of triton.language that compute, load and store. Its other public names are left out: `str_to_ty`
# evaluates text, and `math.wraps` sets attributes of its argument.
_MATH = frozenset("abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi".split())
_LANGUAGE = _MATH | frozenset(
    "add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_max atomic_min "
    "atomic_or atomic_xchg atomic_xor bfloat16 bitonic_merge broadcast broadcast_to cast cat cdiv clamp const "
    "constexpr cumprod cumsum debug_barrier device_assert device_print dot dot_scaled expand_dims flip float16 float32 "
    "float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 full gather histogram int1 int16 int32 int64 int8 "
    "interleave join load load_tensor_descriptor make_block_ptr make_tensor_descriptor max max_constancy "
    "max_contiguous maximum min minimum mul multiple_of num_programs pair_uniform_to_normal permute philox "
    "pointer_type program_id rand rand4x randint randint4x randn randn4x range ravel reduce reduce_or reshape sigmoid "
    "softmax sort split squeeze static_assert static_print static_range store store_tensor_descriptor sub sum "
    "swizzle2d topk trans uint16 uint32 uint64 uint8 uint_to_uniform_float unsqueeze view void where xor_sum "
    "zeros zeros_like".split()
)
_NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For,
    ast.While, ast.If, ast.Assert, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.BoolOp, ast.BinOp, ast.UnaryOp,
    ast.IfExp, ast.Compare, ast.Call, ast.keyword, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name,
    ast.List, ast.Tuple, ast.Slice, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


@dataclass
class Kernels:
    """The text of an answer's kernels. names: of the kernels. numbers: names of the answer's own numbers that they
    read. space: the modules that they name."""

    names: Collection[str] = ()
    text: str = ""
    numbers: set[str] = field(default_factory=set)
    space: dict[str, Any] = field(default_factory=dict)

    def compiled(self, file: str, value_of: Callable[[str], Any]) -> dict[str, Any]:
        """Compile the kernels under a file name. value_of: returns the value of one of `numbers`."""
        import triton
        import triton.language as tl

        linecache.cache[file] = len(self.text), None, self.text.splitlines(keepends=True), file
        numbers = {name: tl.constexpr(_number(name, value_of(name), tl.dtype)) for name in sorted(self.numbers)}
        found = {**self.space, **numbers, "__builtins__": dict(_CALLED), "__name__": file}
        exec(compile(self.text, file, "exec"), found)
        found |= {name: triton.jit(found[name]) for name in self.names}
        return {name: found[name] for name in self.names}


def _number(name: str, value: Any, dtype: type) -> Any:
    """Return the value if it is a number, text, dtype or tuple of these; otherwise raise Refused."""
    if value is None:
        raise NameError(f"name {name!r} is not defined")
    if not all(type(one) in (int, float, bool, str, dtype) for one in (value if type(value) is tuple else (value,))):
        raise Refused(f"a kernel reads {name}, a {type(value).__name__}")
    return value


def kernels(sources: list[str]) -> Kernels:
    """Read the kernels that are defined at the top level of some cells.

    Raise Refused, with the kernel and the line, if one uses anything but Triton's language.
    """
    trees = [ast.parse(source) for source in sources]
    jitted, imported = dict[str, ast.FunctionDef](), dict[str, str]()
    aliases = {"tl": "triton.language", "triton": "triton"}
    for node in (node for tree in trees for node in tree.body):
        if isinstance(node, ast.FunctionDef) and any(map(_jit, node.decorator_list)):
            jitted[node.name] = node
        elif isinstance(node, ast.Import):
            aliases |= {one.asname: one.name for one in node.names if one.asname and one.name in _MODULES}
        elif isinstance(node, ast.ImportFrom):
            names = {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
            aliases |= {alias: full for alias, full in names.items() if full in _MODULES}
            imported |= names if node.module in _MODULES else {}
    if not jitted:
        return Kernels()
    import triton
    import triton.language as tl

    modules = {"triton.language": tl, "triton": triton, "triton.language.math": tl.math}
    spaces = {alias: modules[target] for alias, target in aliases.items()}
    spelled = _Spelled({alias: full for alias, full in imported.items() if alias not in {*aliases, *jitted}})
    numbers = set[str]()
    texts = [_text(spelled.out(node), spaces, {*jitted}, numbers) for node in jitted.values()]
    return Kernels(jitted.keys(), "\n\n".join(texts), numbers, spaces)


_MODULES = frozenset(("triton", "triton.language", "triton.language.math"))


def _jit(node: ast.expr) -> bool:
    """Return True for `@triton.jit`, `@jit` and `@triton.jit(…)`."""
    node = node.func if isinstance(node, ast.Call) else node
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "jit"


class _Spelled(ast.NodeTransformer):
    """Spells out names that were imported from Triton: `load` becomes `triton.language.load`."""

    def __init__(self, imported: dict[str, str]) -> None:
        self.imported, self.own = imported, set[str]()

    def out(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.own = _own(node)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.own or node.id not in self.imported:
            return node
        return ast.copy_location(ast.parse(self.imported[node.id], mode="eval").body, node)


def _own(node: ast.FunctionDef) -> set[str]:
    """Return the names of a kernel's parameters and variables."""
    own = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    return own | {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}


def _text(node: ast.FunctionDef, spaces: dict[str, Any], known: set[str], numbers: set[str]) -> str:
    """Unparse a kernel, and add the names of the numbers that it reads to `numbers`. Raise Refused if it is not in
    Triton's language."""
    node.decorator_list, node.returns, node.args = [], None, _arguments(node.args, spaces)
    own = _own(node)
    if beyond := own & (spaces.keys() | _CALLED.keys()) - known:
        raise Refused(f"{node.name} gives {min(beyond)} another meaning")
    names = own | known | spaces.keys() | _CALLED.keys()
    parents = {child: one for one in ast.walk(node) for child in ast.iter_child_nodes(one)}
    for one in ast.walk(node):
        place = f"line {getattr(one, 'lineno', node.lineno)} of {node.name}"
        if not isinstance(one, _NODES):
            raise Refused(f"{place}: {type(one).__name__} is not in Triton's language")
        if isinstance(one, ast.FunctionDef) and one is not node:
            raise Refused(f"{place}: a function inside a kernel")
        if isinstance(one, ast.Name):
            used = isinstance(parents[one], ast.Attribute) or getattr(parents[one], "func", None) is one
            if one.id.startswith("__") or (one.id not in names and used):
                raise Refused(f"{place}: {one.id} is neither the kernel's nor Triton's, nor a number of the answer")
            numbers |= {one.id} - names
            if one.id in spaces and not isinstance(parents[one], ast.Attribute):
                raise Refused(f"{place}: {one.id} as a value")
        if isinstance(one, ast.Attribute) and not isinstance(parents.get(one), ast.Attribute):
            _look(one, spaces, place, node)
        if isinstance(one, ast.keyword) and (one.arg or "_").startswith("_"):
            raise Refused(f"{place}: the argument {one.arg or '**'}")
        if isinstance(one, ast.Constant) and not isinstance(one.value, int | float | str | bool | type(None)):
            raise Refused(f"{place}: a constant of {type(one.value).__name__}")
    bare = ast.FunctionDef(
        node.name, node.args, [one for one in map(_statement, node.body) if one] or [ast.Pass()],
        [], None, None, **({"type_params": []} if hasattr(node, "type_params") else {}),
    )  # fmt: skip
    return ast.unparse(ast.fix_missing_locations(bare))


def _statement(node: ast.stmt) -> ast.stmt | None:
    """Return a statement without docstrings, in which a line could begin with `def`; None if nothing is left."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return None
    for part in ("body", "orelse"):
        inner = [one for one in map(_statement, getattr(node, part, [])) if one]
        if hasattr(node, part) and isinstance(getattr(node, part), list):
            setattr(node, part, inner or ([ast.Pass()] if part == "body" else []))
    return node


def _arguments(node: ast.arguments, spaces: dict[str, Any]) -> ast.arguments:
    for default in [*node.defaults, *filter(None, node.kw_defaults)]:
        if not isinstance(default, ast.Name | ast.Attribute):
            _literal(default)
    for one in (*node.posonlyargs, *node.args, *node.kwonlyargs):
        text = ast.unparse(one.annotation).strip("'\"") if one.annotation else ""
        constexpr = ast.Attribute(ast.Name(_language(spaces), ast.Load()), "constexpr", ast.Load())
        one.annotation = constexpr if text.endswith("constexpr") else None
    if node.vararg or node.kwarg:
        raise Refused("a kernel with *args")
    return node


def _literal(node: ast.expr) -> None:
    """Raise Refused unless it is a literal or float("inf")."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "float" and len(node.args) == 1:
        node = node.args[0]
    if not isinstance(node, ast.Constant):
        raise Refused(f"the default {ast.unparse(node):.40}")


def _language(spaces: dict[str, Any]) -> str:
    return next(alias for alias, module in spaces.items() if module.__name__ == "triton.language")


def _look(node: ast.Attribute, spaces: dict[str, Any], place: str, kernel: ast.FunctionDef) -> None:
    """Raise Refused unless a chain of attributes names part of Triton, or an attribute that values provide."""
    words: list[str] = []
    inner: ast.AST = node
    while isinstance(inner, ast.Attribute):
        words.insert(0, inner.attr)
        if not isinstance(inner.ctx, ast.Load):
            raise Refused(f"{place}: a change of .{inner.attr}")
        inner = inner.value
    if isinstance(inner, ast.Name) and inner.id in spaces and inner.id not in _parameters(kernel):
        module = spaces[inner.id].__name__
        while words and (module, words[0]) in (("triton.language", "math"), ("triton", "language")):
            module = f"{module}.{words.pop(0)}"
        if not words or words[0] not in _language_of(module):
            raise Refused(f"{place}: {ast.unparse(node)}")
        words = words[1:]
    if odd := [word for word in words if word not in _OF_VALUES]:
        raise Refused(f"{place}: .{odd[0]}")


def _parameters(kernel: ast.FunctionDef) -> set[str]:
    return {one.arg for one in ast.walk(kernel) if isinstance(one, ast.arg)}


def _language_of(module: str) -> frozenset[str]:
    return {"triton": _OF_TRITON, "triton.language.math": _MATH}.get(module, _LANGUAGE)
