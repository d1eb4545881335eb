"""The words of which an answer may be made without a person having to look at it: an exercise's vocabulary.

What computes is in it: arithmetic, tensors' and arrays' own functions, Triton's language, and whatever the reference
itself uses. What could read or change the check that runs beside it is not.
"""

from __future__ import annotations

import ast
import bisect
import collections
import heapq
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

BUILTINS = frozenset(
    "abs all any bool callable dict divmod enumerate filter float frozenset int isinstance len list map max min next "
    "pow print range repr reversed round set slice sorted str sum tuple zip iter complex bytes bytearray property "
    "staticmethod classmethod super "
    "ArithmeticError AssertionError Exception IndexError KeyError NotImplementedError RuntimeError StopIteration "
    "TypeError ValueError ZeroDivisionError KeyboardInterrupt".split()
)
# Modules whose functions compute and do nothing else; of the others some functions are named below.
MODULES = {
    "math": "math", "torch": "torch", "np": "numpy", "numpy": "numpy", "triton": "triton", "tl": "triton.language",
    "F": "torch.nn.functional", "itertools": "itertools", "functools": "functools", "collections": "collections",
    "operator": "operator", "dist": "torch.distributed", "statistics": "statistics", "json": "json", "bisect": "bisect",
    "hashlib": "hashlib", "heapq": "heapq",
}  # fmt: skip
_TORCH = "Tensor Size inf nan pi finfo iinfo no_grad enable_grad inference_mode is_tensor strided"
_TRITON = "jit cdiv next_power_of_2 autotune Config heuristics"
_NUMPY = (
    "arange argmax argmin argsort array array_equal array_split asarray ascontiguousarray atleast_1d bincount "
    "broadcast_to concatenate copyto cumprod cumsum diff divmod dot dtype e einsum empty empty_like expand_dims eye "
    "flatnonzero float16 float32 float64 full full_like hstack inf int32 int64 integer floating intp isclose linspace "
    "logspace lexsort linalg.lstsq linalg.solve linalg.norm mean median meshgrid nan ndarray newaxis nonzero ones "
    "ones_like outer percentile pi polyfit prod quantile ravel repeat reshape result_type roll searchsorted sort split "
    "squeeze stack std sum swapaxes take tensordot tile trace transpose tri tril triu uint8 unique var vdot vsplit "
    "moveaxis rollaxis flip fliplr flipud rot90 append insert delete pad histogram digitize interp average ptp "
    "count_nonzero argwhere indices ix_ unravel_index nan_to_num nansum nanmax nanmin nanmean round "
    "vstack where zeros zeros_like amax amin max min any all clip frombuffer shape ndim size iinfo finfo bool_"
)
_DISTRIBUTED = (
    "all_gather all_gather_into_tensor all_reduce all_to_all_single barrier broadcast gather get_global_rank get_rank "
    "get_process_group_ranks get_world_size irecv isend recv reduce reduce_scatter reduce_scatter_tensor scatter send "
    "ReduceOp.SUM ReduceOp.AVG ReduceOp.MAX"
)
# What a communicator, a request and a module are asked for, of MPI's standard and PyTorch's.
_ASKED = (
    "rank size Get_rank Get_size Send Recv Isend Irecv Sendrecv Sendrecv_replace Wait Waitall Test Testall wait test "
    "Barrier Bcast Reduce Allreduce Allgather Reduce_scatter Reduce_scatter_block Alltoall Split element_ty "
    "all_reduce all_gather reduce_scatter broadcast parameters named_parameters buffers named_buffers modules "
    "named_modules children is_completed hexdigest digest update"
)
_NEVER = frozenset(
    "from_file tofile dump dumps tobytes format format_map set_ share_memory_ register_hook data_ptr const_data_ptr "
    "ctypes untyped_storage storage pointer_type resize new backward".split()
)
_STORED = frozenset(("grad", "data"))  # attributes that an answer may set where its reference looks at them


@dataclass(frozen=True)
class Vocabulary:
    """names: that an answer may read and has not made itself. of_modules: 'torch.zeros'. attributes: of values. stored:
    attributes that it may set. modules: the names that stand for modules, and for nothing else."""

    names: frozenset[str]
    of_modules: frozenset[str]
    attributes: frozenset[str]
    stored: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset(MODULES)


def vocabulary(reference: str, names: Iterable[str] = ()) -> Vocabulary:
    """Of one exercise. reference: its answer, as Python, or '' where it is not known. names: the lab's own that answers
    may call: earlier exercises, for one."""
    known = general()
    tree = ast.parse(reference)
    modules = known.modules - made(tree)  # F is a number in some exercise
    chains = {chain for node in ast.walk(tree) if isinstance(node, ast.Attribute) and (chain := dotted(node, modules))}
    stored = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return Vocabulary(
        known.names | set(names) | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)},
        known.of_modules | chains,
        known.attributes | attributes,
        stored | (attributes & _STORED),
        modules,
    )


def made(tree: ast.Module) -> set[str]:
    """Names that an answer binds, but for modules that it imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found


def dotted(node: ast.AST, modules: frozenset[str]) -> str:
    """'torch.nn.functional.relu' of such a chain from a module's name on; '' of anything else."""
    words = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in modules:
        return ".".join([node.id, *reversed(words)])
    return ""


@cache
def general() -> Vocabulary:
    """Of any exercise."""
    import numpy
    import torch
    import triton.language as tl

    def public(thing: Any) -> set[str]:
        names = {name for name in dir(thing) if not name.startswith("_")} - _NEVER
        return {name for name in names if not isinstance(getattr(thing, name, None), ModuleType)}

    computes: dict[str, set[str]] = {
        "math": public(math),
        "torch": public(torch._C._VariableFunctions) | set(_TORCH.split())
        | {name for name in public(torch) if isinstance(getattr(torch, name), torch.dtype)},
        "numpy": {n for n in public(numpy) if isinstance(getattr(numpy, n), numpy.ufunc)} | set(_NUMPY.split()),
        "triton": set(_TRITON.split()),
        "triton.language": public(tl),
        "torch.nn.functional": {name for name in public(torch.nn.functional) if name[0].islower()},
        "itertools": {"accumulate", "chain", "count", "cycle", "pairwise", "product", "repeat", "islice", "takewhile"},
        "functools": {"partial", "reduce"}, "collections": {"Counter", "defaultdict", "deque", "OrderedDict"},
        "operator": {"add", "mul", "sub", "itemgetter"}, "torch.distributed": set(_DISTRIBUTED.split()),
        "statistics": public(statistics), "json": {"dumps", "loads"}, "bisect": public(bisect), "heapq": public(heapq),
        "hashlib": {"sha256", "sha1", "md5", "blake2b", "blake2s"},
    }  # fmt: skip
    found = {f"{name}.{word}" for name, module in MODULES.items() for word in computes[module]}
    found |= {f"torch.nn.functional.{word}" for word in computes["torch.nn.functional"]}
    found |= {f"torch.distributed.{word}" for word in computes["torch.distributed"]}
    found |= {f"torch.linalg.{word}" for word in public(torch.linalg)} | {"itertools.chain.from_iterable"}
    found |= {f"tl.math.{word}" for word in public(tl.math) & public(tl)}
    values: tuple[Any, ...] = (torch.Tensor, numpy.ndarray, list, dict, str, tuple, set, int, float, range, tl.tensor)
    values += (collections.deque, collections.Counter, collections.OrderedDict)
    attributes = {name for value in values for name in public(value)} | set(_ASKED.split())
    return Vocabulary(BUILTINS, frozenset(found), frozenset(attributes))
