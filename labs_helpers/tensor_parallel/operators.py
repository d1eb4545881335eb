"""Collectives that autograd can differentiate: the backward pass of each operator is its conjugate.

    forward           backward          where                                                           function
    identity          all-reduce        into column-parallel layers (Megatron's f)                      copy_to
    all-reduce        identity          out of a row-parallel layer (Megatron's g)                      reduce_from
    all-gather        reduce-scatter    into column-parallel layers under sequence parallelism (g in    gather_to
                                        that paper): each rank computes a part of the result
    reduce-scatter    all-gather        out of a row-parallel layer under sequence parallelism (g̅       scatter_from
                                        there)
    all-gather        my slice          where every rank then computes the whole result                 gather_whole
    my slice          all-gather        conjugate of the last one                                       slice_whole

The first two: Shoeybi et al., Megatron-LM, 2019. The next two: Korthikanti et al., Reducing Activation Recomputation in
Large Transformer Models, 2022. The last two: the naive scheme. The right backward pass depends on the gradient that
each rank computes. If the rank used the tensor only for its own slice of the result, its gradient is one *term of a
sum* and has to be reduced. If every rank computed the same result, each has the *whole* gradient already.
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
        if (
            not in_place or torch.compiler.is_compiling()
        ):  # the compiler decides by itself which tensors it may overwrite
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
    """Return x, which is the same on all ranks; the backward pass sums the gradients of all ranks."""
    return _CopyTo.apply(x, group)


def reduce_from(x: Tensor, group: Communication, in_place: bool = False) -> Tensor:
    """Return the sum of x over the ranks; the backward pass returns the gradient unchanged.

    in_place: overwrite x, which nothing else may need later, such as the fresh result of a matrix product.
    """
    return _ReduceFrom.apply(x, group, in_place)


def gather_to(x: Tensor, group: Communication, dim: int) -> Tensor:
    """Join all ranks' x along `dim`; the backward pass returns this rank's part of the summed gradients."""
    return _GatherTo.apply(x, group, dim)


def scatter_from(x: Tensor, group: Communication, dim: int) -> Tensor:
    """Return this rank's part along `dim` of the sum of x; the backward pass joins all gradients along `dim`."""
    return _ScatterFrom.apply(x, group, dim)


def gather_whole(x: Tensor, group: Communication, dim: int) -> Tensor:
    """Join all ranks' x along `dim`; the backward pass takes this rank's part of a gradient that all ranks share."""
    return _GatherWhole.apply(x, group, dim)


def slice_whole(x: Tensor, group: Communication, dim: int) -> Tensor:
    """Return this rank's part along `dim` of an x that all ranks share; the backward pass joins all gradients."""
    return _SliceWhole.apply(x, group, dim)
