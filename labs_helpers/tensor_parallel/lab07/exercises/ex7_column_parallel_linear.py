"""Lab 07, exercise 7: Megatron's column-parallel layer, forward and backward."""


def column_parallel_linear(x, weight, bias, group):
    """Return (out, backward) of a linear layer whose weight is split by columns.

    x: (batch, length, in), the same on all ranks. weight: (in, out / p), this rank's columns.
    bias: (out / p,), this rank's part. out: (batch, length, out / p), this rank's slice of
    x @ W + b. backward(grad_out) takes a (batch, length, out / p) tensor and returns (grad_x,
    grad_weight, grad_bias). grad_x: (batch, length, in), the whole gradient of x, the same on all
    ranks. grad_weight and grad_bias: the gradients of this rank's weight and bias, in their
    shapes.

    All are PyTorch tensors. group: the p ranks of the model, with rank, size, all_reduce(t),
    all_gather(t, dim) and reduce_scatter(t, dim), which return new tensors. Call exactly one
    collective in backward and none in forward.
    """
    # 1. Forward: does a rank need data from another one to compute its columns?
    ### BEGIN SOLUTION
    out = x @ weight + bias
    ### END SOLUTION

    def backward(grad_out):
        # 2. To which of the three gradients do other ranks contribute?
        ### BEGIN SOLUTION
        grad_x = group.all_reduce(grad_out @ weight.T)
        grad_weight = x.flatten(0, 1).T @ grad_out.flatten(0, 1)
        grad_bias = grad_out.sum((0, 1))
        return grad_x, grad_weight, grad_bias
        ### END SOLUTION

    return out, backward
