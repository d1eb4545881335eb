"""Lab 10, exercise 7: a backward pass in two parts, for the input now and for the weights later."""

import torch


def split_backward():
    """Return (linear, add_weight_gradients), two functions that split a backward pass into I and W.

    linear(x, weight) returns y = x·Wᵀ. x: (…, n), weight: (k, n), y: (…, k). Its backward pass is
    I: it returns ∂x = ∂y·W, keeps (weight, x, ∂y) for W, and computes no gradient of weight.
    add_weight_gradients() is W: for each kept entry it adds ∂yᵀ·x, summed over all rows of x, to
    weight.grad. If weight.grad is None, this sum becomes weight.grad; otherwise weight.grad remains
    the same tensor. W records nothing for autograd, and drops the entries.
    Each of y, ∂x and ∂yᵀ·x takes one matrix product.
    """
    kept = []  # (weight, x, ∂y) of each product whose W has not run yet

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            # 1. Save what backward needs, and return y.
            ### BEGIN SOLUTION
            ctx.save_for_backward(x, weight)
            return x @ weight.t()
            ### END SOLUTION

        @staticmethod
        def backward(ctx, dy):
            # 2. Keep what W needs. Return one gradient per argument of forward, or None for it.
            ### BEGIN SOLUTION
            x, weight = ctx.saved_tensors
            kept.append((weight, x, dy))
            return dy @ weight, None
            ### END SOLUTION

    @torch.no_grad()
    def add_weight_gradients():
        # 3. flatten(0, -2) turns (…, n) into (rows, n). Which gradients exist already?
        ### BEGIN SOLUTION
        while kept:
            weight, x, dy = kept.pop()
            gradient = dy.flatten(0, -2).t() @ x.flatten(0, -2)
            if weight.grad is None:
                weight.grad = gradient
            else:
                weight.grad += gradient
        ### END SOLUTION

    return Linear.apply, add_weight_gradients
