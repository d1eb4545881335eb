"""Lab 07, exercise 12: how long tensor parallelism communicates, as a share of the time in which it computes."""


def communication_share(width, tp, flops_per_s, busbw):
    """Time in a block's all-reduces over time in its matrix products, forward and backward.

    A block has 12 · width² parameters: attention 4 · width², the MLP 8 · width². Per token and
    parameter a forward pass takes 2 FLOPs and a backward pass 4, shared by the tp ranks, each of
    which does flops_per_s FLOPs per second (MFU · peak). Forward and backward each have 2
    all-reduces of tokens · width numbers of 2 bytes. An all-reduce of n bytes takes
    2 · (tp − 1) / tp · n / busbw seconds; busbw is in bytes per second.
    """
    # Work both out for one token: why does the number of tokens not matter?
    ### BEGIN SOLUTION
    compute = 6 * 12 * width**2 / tp / flops_per_s
    communication = 4 * 2 * (tp - 1) / tp * 2 * width / busbw
    return communication / compute
    ### END SOLUTION
