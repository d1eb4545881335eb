"""How lab 08 runs answers on ranks, and what its error messages mean."""

from __future__ import annotations

from functools import partial

from labs_helpers.course.verdict import on_practice_ranks
from labs_helpers.course.verdict.rank_messages import OF_PROCESS_GROUPS
from labs_helpers.practice.process_groups import practice_process_groups

HANDLE = "async_op=True returns a handle; without it the call itself waits, and returns None"
CAUSES = (  # of a rank's error
    (r"NoGroup", "group=group is missing in a collective"),
    (r"is not part of group", "src and dst count among all ranks; group_src and group_dst within the group"),
    (r"must be contiguous", "a tensor with gaps cannot be sent: .contiguous() copies it into memory without"),
    (
        r"leaf Variable that requires grad|leaf variable .*in-place",
        "a parameter is written to while autograd watches: parameter.detach() or torch.no_grad()",
    ),
    (
        r"'NoneType'[\s\S]*line \d+: .*(all_reduce|broadcast|all_gather)\([^\n]*\)\s*(/|\.(?!wait))",
        "a collective changes the tensor that it is given, and returns None",
    ),
    (
        r"size of tensor a[\s\S]*line \d+: .*\.(remove|index|count)\(",
        "remove() and index() compare tensors element by element; clear() empties a list",
    ),
    (r"changed a tensor of .* between", "until wait() returns, the collective still reads and writes that tensor"),
    (r"'NoneType' object has no attribute '(wait|is_completed)'", HANDLE),
    (
        r"'NoneType' object (has no attribute|is not iterable)|unsupported operand .*'NoneType'|NoneType",
        "a .grad is None where this rank has not used a parameter, or where it is frozen",
    ),
    (
        r"cannot access local variable|referenced before assignment",
        "an assignment makes a name the inner function's own; `nonlocal` says that it is the outer one's",
    ),
    (
        r"Boolean value of Tensor",
        "`in`, == and index() compare tensors element by element; `is`, id() or a dict tell which one it is",
    ),
    (
        r"assign a gradient of size|assigned grad has data of a different (size|type)|grad of size|different type",
        "a .grad has its parameter's shape, dtype and device",
    ),
    (
        r"view size is not compatible",
        "what lies transposed in memory cannot be viewed flat; reshape(-1) copies it where it has to",
    ),
    (
        r"shape '.*' is invalid for input|split_with_sizes|split_sizes",
        "the parts add up to the flat tensor: numel() of each parameter, in one order",
    ),
    (r"stack expects each tensor", "torch.stack takes tensors of one shape; torch.cat puts vectors behind one another"),
    (
        r"same number of dimensions|zero-dimensional tensor|must match except in dimension|Sizes of tensors must match",
        "torch.cat puts vectors behind one another: reshape(-1) makes one of each gradient",
    ),
    (r"expected a non-empty list|expected a non-empty TensorList", "there may be nothing to send"),
    (
        r"attempting to assign a gradient with dtype",
        "a .grad has its parameter's dtype; a flat tensor has one, so that gradients of several go into several",
    ),
    (
        r"[Ii]ncompatible data types|same dtype|expected .* dtype",
        "a flat tensor has one dtype: those of several go into several",
    ),
    (
        r"unexpected keyword argument 'async'|unexpected keyword argument",
        "the arguments are all_reduce(tensor, op, group, async_op) and broadcast(tensor, group=, group_src=)",
    ),
    (r"default process group|init_process_group", "without group= a collective is for all ranks: pass the group"),
    (
        r"has no attribute '(all_reduce|broadcast|all_gather)'",
        "the functions are torch.distributed's: dist.all_reduce(tensor, group=group)",
    ),
    (r"has no attribute '(wait|is_completed)'", HANDLE),
    (
        r"name 'world_size' is not defined|name 'size' is not defined",
        "how many ranks a group has: dist.get_world_size(group)",
    ),
    (r"get_future", "keep the handle that async_op=True returns, and call its wait()"),
)


# `call` makes each rank's tensors, and looks itself at what nobody waited for.
on_ranks = partial(
    on_practice_ranks,
    ranks=practice_process_groups,
    messages=(*CAUSES, *OF_PROCESS_GROUPS),
    unwaited="",
    copies=False,
)
