"""Lab 07, exercise 11: Megatron's f and g for autograd, without and with sequence parallelism."""

import torch


def conjugate_operators(group, sequence_parallel):
    """(f, g): two functions of a tensor that autograd differentiates.

    f stands before column-parallel layers, g behind a row-parallel one. sequence_parallel False:
    f(x) returns x, the same on all ranks, and its gradient is the sum of the ranks' gradients.
    g(x) returns the sum of the ranks' x, and its gradient is the one that comes back, as it is.
    x: (batch, length, width). sequence_parallel True: outside the layers a rank holds its part of
    the length. f(x): (batch, length / p, width) → (batch, length, width), the ranks' parts in
    order. g(x): (batch, length, width) → (batch, length / p, width), this rank's part of the sum.
    Each gradient has its x's shape.

    group as in exercise 7; autograd knows nothing of its collectives. Each pass of f and g makes
    at most one collective, and sends no more bytes than it has to. What comes in stays as it is.
    """
    # 1. class F(torch.autograd.Function) with static methods forward(ctx, x), backward(ctx, grad)
    # 2. G in the same way; what F does forward, G does backward. 3. Return their apply.
    ### BEGIN SOLUTION
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return group.all_gather(x, 1) if sequence_parallel else x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return group.reduce_scatter(grad, 1) if sequence_parallel else group.all_reduce(grad)

    class G(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return group.reduce_scatter(x, 1) if sequence_parallel else group.all_reduce(x)

        @staticmethod
        def backward(ctx, grad):
            return group.all_gather(grad, 1) if sequence_parallel else grad

    return F.apply, G.apply
    ### END SOLUTION
