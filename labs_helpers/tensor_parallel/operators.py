"""Communication that autograd can pass through: each operator's backward pass is its conjugate.

    forward           backward          where                                                           function
    identity          all-reduce        into column-parallel layers (Megatron's f)                      copy_to
    all-reduce        identity          out of a row-parallel layer (Megatron's g)                      reduce_from
    all-gather        reduce-scatter    into column-parallel layers under sequence parallelism (g in    gather_to
                                        that paper): all go on with the whole for a part of the result
    reduce-scatter    all-gather        out of a row-parallel layer under sequence parallelism (g̅       scatter_from
                                        there)
    all-gather        my slice          every rank goes on with the whole for the whole result          gather_whole
    my slice          all-gather        its conjugate                                                   slice_whole

The first two: Shoeybi et al., Megatron-LM, 2019. The next two: Korthikanti et al., Reducing Activation Recomputation in
Large Transformer Models, 2022. The last two: the naive scheme. Which backward pass is right follows from what each
rank's gradient is: a *part of a sum* (it has used the tensor for its slice of the result alone) is reduced, the *whole*
gradient (every rank has computed the same) is not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labs_helpers.communication import Communication


class _CopyTo(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Communication) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.group.all_reduce(gradient), None


class _ReduceFrom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Communication, in_place: bool) -> Tensor:
        if not in_place or torch.compiler.is_compiling():  # which finds out for itself what may be written to
            return group.all_reduce(x)
        group.all_reduce(x, in_place=True)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient, None, None


class _GatherTo(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Communication, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return group.all_gather(x, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.group.reduce_scatter(gradient, ctx.dim), None, None


class _ScatterFrom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Communication, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return group.reduce_scatter(x, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.group.all_gather(gradient, ctx.dim), None, None


class _GatherWhole(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Communication, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return group.all_gather(x, dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.group.part(gradient, ctx.dim).contiguous(), None, None


class _SliceWhole(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Communication, dim: int) -> Tensor:
        ctx.group, ctx.dim = group, dim
        return group.part(x, dim).clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return ctx.group.all_gather(gradient, ctx.dim), None, None


def copy_to(x: Tensor, group: Communication) -> Tensor:
    """x itself; backward the sum of all ranks' gradients. x: the same on all ranks."""
    return _CopyTo.apply(x, group)


def reduce_from(x: Tensor, group: Communication, in_place: bool = False) -> Tensor:
    """The sum of all ranks' x; backward the gradient itself. in_place: in x's memory, which nothing else may need: what
    a matrix product has just written, for one."""
    return _ReduceFrom.apply(x, group, in_place)


def gather_to(x: Tensor, group: Communication, dim: int) -> Tensor:
    """All ranks' x along `dim`; backward this rank's part of the sum of all gradients."""
    return _GatherTo.apply(x, group, dim)


def scatter_from(x: Tensor, group: Communication, dim: int) -> Tensor:
    """This rank's part along `dim` of the sum of all ranks' x; backward all ranks' gradients along `dim`."""
    return _ScatterFrom.apply(x, group, dim)


def gather_whole(x: Tensor, group: Communication, dim: int) -> Tensor:
    """All ranks' x along `dim`; backward this rank's part of the gradient, which is the same on all ranks."""
    return _GatherWhole.apply(x, group, dim)


def slice_whole(x: Tensor, group: Communication, dim: int) -> Tensor:
    """This rank's part of x, which is the same on all ranks, along `dim`; backward all ranks' gradients."""
    return _SliceWhole.apply(x, group, dim)
