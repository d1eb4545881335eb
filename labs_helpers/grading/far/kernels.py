"""An answer's kernels as the judge launches them: their text alone, in Triton's language and nothing else.

What is compiled is what was read: the text is written anew from the syntax tree, without docstrings, since Triton finds
a kernel's beginning by its letters. A kernel may name Triton's language, its own parameters and variables, constants
and other kernels of the answer; where it names anything else, it is not launched.
"""

from __future__ import annotations

import ast
import linecache
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
# Of triton.language what computes, loads and stores. All public names would be too many: `str_to_ty` evaluates text,
# and `math.wraps` sets attributes of what it is given.
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


def kernels(sources: list[str], name: str) -> dict[str, Any]:
    """The kernels that are defined at the top level of some cells, by name. name: of the file that they are read from.

    Refused where one is not made of Triton's language, says which and where.
    """
    trees = [ast.parse(source) for source in sources]
    jitted, constants = dict[str, ast.FunctionDef](), dict[str, Any]()
    aliases = {"tl": "triton.language", "triton": "triton"}
    for node in (node for tree in trees for node in tree.body):
        if isinstance(node, ast.FunctionDef) and any(map(_jit, node.decorator_list)):
            jitted[node.name] = node
        elif isinstance(node, ast.Import):
            aliases |= {one.asname: one.name for one in node.names if one.asname and one.name in _MODULES}
        elif isinstance(node, ast.ImportFrom):
            aliases |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names
                        if f"{node.module}.{one.name}" in _MODULES}  # fmt: skip
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and (value := _constant(node.value)) is not _NONE:
                constexpr = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).endswith("constexpr")
                constants[target.id] = _constexpr(value) if constexpr else value
    if not jitted:
        return {}
    import triton
    import triton.language as tl

    modules = {"triton.language": tl, "triton": triton, "triton.language.math": tl.math}
    spaces = {alias: modules[target] for alias, target in aliases.items()}
    known = {*jitted, *constants}
    text = "\n\n".join(_text(node, spaces, known) for node in jitted.values())
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = len(text), None, lines, name
    found: dict[str, Any] = {**spaces, **constants, "__builtins__": dict(_CALLED), "__name__": name}
    exec(compile(text, name, "exec"), found)
    for one in jitted:
        found[one] = triton.jit(found[one])
    return {one: found[one] for one in jitted}


_MODULES = frozenset(("triton", "triton.language", "triton.language.math"))
_NONE = object()


def _jit(node: ast.expr) -> bool:
    """`@triton.jit`, `@jit`, `@triton.jit(…)`."""
    node = node.func if isinstance(node, ast.Call) else node
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "jit"


def _constant(node: ast.expr) -> Any:
    """The value of a constant of an answer's; _NONE of anything else."""
    inner = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else node
    try:
        value = _number(inner)
    except (ValueError, TypeError, SyntaxError, ZeroDivisionError, OverflowError, MemoryError, RecursionError):
        return _NONE
    if inner is node:
        return value
    called = node.func  # type: ignore[attr-defined]
    word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if word == "float":
        return float(value)
    if word != "constexpr":
        return _NONE
    return _constexpr(value)


def _constexpr(value: Any) -> Any:
    import triton.language as tl

    return tl.constexpr(value)


def _number(node: ast.expr) -> Any:
    """Of a literal, of float("-inf"), of sums and products of such."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv):
        left, right = _number(node.left), _number(node.right)
        if not all(type(one) in (int, float) for one in (left, right)):
            raise ValueError("no numbers")
        return {ast.Add: left.__add__, ast.Sub: left.__sub__, ast.Mult: left.__mul__, ast.Div: left.__truediv__,
                ast.FloorDiv: left.__floordiv__}[type(node.op)](right)  # fmt: skip
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float" and node.args:
        return float(ast.literal_eval(node.args[0]))
    value = ast.literal_eval(node)
    if type(value) not in (int, float, bool, str, tuple, type(None)):
        raise ValueError("no constant")
    return value


def _text(node: ast.FunctionDef, spaces: dict[str, Any], known: set[str]) -> str:
    """A kernel's text, written anew. Refused where it is not in Triton's language."""
    node.decorator_list, node.returns, node.args = [], None, _arguments(node.args, spaces)
    own = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    own |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    beyond = own & (spaces.keys() | _CALLED.keys() | known)
    if beyond - known:
        raise Refused(f"{node.name} gives {min(beyond - known)} another meaning")
    names = own | known | spaces.keys() | _CALLED.keys()
    parents = {child: one for one in ast.walk(node) for child in ast.iter_child_nodes(one)}
    for one in ast.walk(node):
        place = f"line {getattr(one, 'lineno', node.lineno)} of {node.name}"
        if not isinstance(one, _NODES):
            raise Refused(f"{place}: {type(one).__name__} is not in Triton's language")
        if isinstance(one, ast.FunctionDef) and one is not node:
            raise Refused(f"{place}: a function inside a kernel")
        if isinstance(one, ast.Name):
            if one.id.startswith("__") or one.id not in names:
                raise Refused(f"{place}: {one.id} is none of the kernel's, of Triton's or of the answer's constants")
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
    """Without text that stands by itself, in which a line could begin with `def`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return None
    for field in ("body", "orelse"):
        inner = [one for one in map(_statement, getattr(node, field, [])) if one]
        if hasattr(node, field) and isinstance(getattr(node, field), list):
            setattr(node, field, inner or ([ast.Pass()] if field == "body" else []))
    return node


def _arguments(node: ast.arguments, spaces: dict[str, Any]) -> ast.arguments:
    for default in [*node.defaults, *filter(None, node.kw_defaults)]:
        _number(default)
    for one in (*node.posonlyargs, *node.args, *node.kwonlyargs):
        text = ast.unparse(one.annotation) if one.annotation else ""
        constexpr = ast.Attribute(ast.Name(_language(spaces), ast.Load()), "constexpr", ast.Load())
        one.annotation = constexpr if text.endswith("constexpr") else None
    if node.vararg or node.kwarg:
        raise Refused("a kernel with *args")
    return node


def _language(spaces: dict[str, Any]) -> str:
    return next(alias for alias, module in spaces.items() if module.__name__ == "triton.language")


def _look(node: ast.Attribute, spaces: dict[str, Any], place: str, kernel: ast.FunctionDef) -> None:
    """Refused unless a chain of attributes is Triton's or what a value is asked for."""
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
