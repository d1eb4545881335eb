"""Lab 09, exercise 12: the tokens per rank that hide ZeRO-3's messages."""


def tokens_to_hide(achieved, busbw, ranks, parameter_bytes=2, gradient_bytes=2):
    """Return (forward, backward), the tokens per rank at which messages take as long as compute.

    achieved: FLOP/s of one rank. A block of P parameters computes 2 P FLOPs per token forward and
    4 P backward; ignore the FLOPs of attention itself. busbw: bytes/s that a rank sends over the
    ring. During the forward pass of one block, another is gathered. During the backward pass of
    one block, another is gathered, and the gradients of a third are reduce-scattered.
    parameter_bytes, gradient_bytes: bytes per parameter in the messages. Ignore latency; P then
    cancels.
    """
    # 1. How many bytes does a rank send per parameter, and how long does it take? (exercise 5)
    # 2. How long does it compute per parameter with T tokens? Which T makes the times equal?
    ### BEGIN SOLUTION
    share = (ranks - 1) / ranks
    forward = share * parameter_bytes / busbw / (2 / achieved)
    backward = share * (parameter_bytes + gradient_bytes) / busbw / (4 / achieved)
    return forward, backward
    ### END SOLUTION
