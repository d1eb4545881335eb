"""Lab 07, exercise 12: the ratio of tensor parallelism's communication time to its compute time."""


def communication_share(width, tp, flops_per_s, busbw):
    """Return the time of a block's all-reduces divided by the time of its matrix products.

    Count the forward and the backward pass. A block has 12 · width² parameters, of which
    attention has 4 · width² and the MLP 8 · width². Per token and parameter the forward pass
    takes 2 FLOPs and the backward pass 4. The tp ranks share this work, and each computes
    flops_per_s FLOPs per second (MFU · peak). Each pass has 2 all-reduces of tokens · width
    numbers of 2 bytes. An all-reduce of n bytes takes 2 · (tp − 1) / tp · n / busbw seconds, with
    busbw in bytes per second.
    """
    # Compute both times for one token. Why does the number of tokens not matter?
    ### BEGIN SOLUTION
    compute = 6 * 12 * width**2 / tp / flops_per_s
    communication = 4 * 2 * (tp - 1) / tp * 2 * width / busbw
    return communication / compute
    ### END SOLUTION
