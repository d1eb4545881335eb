"""Lab 07, exercise 11: Megatron's f and g for autograd, without and with sequence parallelism."""

import torch


def conjugate_operators(group, sequence_parallel):
    """Return (f, g), two functions of one tensor that autograd can differentiate.

    f precedes column-parallel layers, g follows a row-parallel one. x: (batch, length, width).

    sequence_parallel False: f(x) returns x, which is the same on all ranks; the gradient of x is
    the sum of the gradients that arrive on all ranks. g(x) returns the sum of x over the ranks;
    the gradient of x is the gradient that arrives, unchanged.
    sequence_parallel True: outside the layers each rank holds only its part of the length. f maps
    (batch, length / p, width) to (batch, length, width), the parts of all ranks in order. g maps
    (batch, length, width) to (batch, length / p, width), this rank's part of the sum over the
    ranks. Each gradient has the shape of its x.

    group as in exercise 7; autograd cannot differentiate its collectives. Each pass of f and g
    calls at most one collective, and sends no more bytes than necessary. Do not change inputs.
    """
    # 1. class F(torch.autograd.Function) with static methods forward(ctx, x), backward(ctx, grad)
    # 2. Write G in the same way, with forward and backward exchanged. 3. Return their apply.
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
