"""Lab 07, exercise 8: Megatron's row-parallel layer, forward and backward."""


def row_parallel_linear(x, weight, bias, group):
    """(out, backward) of a linear layer whose rows are split; it takes a column-parallel's output.

    x: (batch, length, in / p), this rank's slice of the features. weight: (in / p, out), this
    rank's rows. bias: (out,), the same on all ranks. out: (batch, length, out), the whole of x @
    W + b, the same on all ranks. backward(grad_out), grad_out: (batch, length, out), the same on
    all ranks, returns (grad_x, grad_weight, grad_bias): grad_x: (batch, length, in / p) and
    grad_weight: (in / p, out), of this rank's part; grad_bias: (out,), the whole.

    PyTorch tensors; group as in exercise 7. Exactly one collective in forward, none in backward.
    """
    # 1. Forward: a rank's product is a part of a sum. When does the bias join it?
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
