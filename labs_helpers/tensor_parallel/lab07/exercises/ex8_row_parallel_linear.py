"""Lab 07, exercise 8: Megatron's row-parallel layer, forward and backward."""


def row_parallel_linear(x, weight, bias, group):
    """Return (out, backward) of a linear layer whose weight is split by rows.

    x: (batch, length, in / p), this rank's slice of the features, as a column-parallel layer
    computes it. weight: (in / p, out), this rank's rows. bias: (out,), the same on all ranks.
    out: (batch, length, out), the whole x @ W + b, the same on all ranks. backward(grad_out)
    takes a (batch, length, out) tensor, the same on all ranks, and returns (grad_x, grad_weight,
    grad_bias). grad_x: (batch, length, in / p) and grad_weight: (in / p, out) are the gradients
    of this rank's parts; grad_bias: (out,) is the whole gradient.

    All are PyTorch tensors; group as in exercise 7. Call exactly one collective in forward and
    none in backward.
    """
    # 1. Forward: a rank's product is one term of a sum. When do you add the bias?
    ### BEGIN SOLUTION
    out = group.all_reduce(x @ weight) + bias
    ### END SOLUTION

    def backward(grad_out):
        # 2. grad_out is whole on every rank. Is anything missing?
        ### BEGIN SOLUTION
        grad_x = grad_out @ weight.T
        grad_weight = x.flatten(0, 1).T @ grad_out.flatten(0, 1)
        grad_bias = grad_out.sum((0, 1))
        return grad_x, grad_weight, grad_bias
        ### END SOLUTION

    return out, backward
