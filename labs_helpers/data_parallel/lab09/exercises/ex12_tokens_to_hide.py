"""Lab 09, exercise 12: how many tokens a rank has to compute so that ZeRO-3's messages hide."""


def tokens_to_hide(achieved, busbw, ranks, parameter_bytes=2, gradient_bytes=2):
    """(forward, backward): tokens per rank at which messages take as long as compute.

    achieved: FLOP/s of one rank. A block of P parameters computes 2 P FLOPs per token forward and
    4 P backward; attention's own are left out. busbw: bytes/s at which a rank sends round the ring.
    Beside the forward pass one block is gathered; beside the backward pass one block is gathered
    and another one's gradients are reduce-scattered. parameter_bytes, gradient_bytes: per
    parameter, as they travel. Latencies are left out, so P is not needed.
    """
    # 1. What does a rank send per parameter, and how long does that take? (exercise 5)
    # 2. How long does it compute per parameter, with T tokens? For which T are the two equal?
    ### BEGIN SOLUTION
    share = (ranks - 1) / ranks
    forward = share * parameter_bytes / busbw / (2 / achieved)
    backward = share * (parameter_bytes + gradient_bytes) / busbw / (4 / achieved)
    return forward, backward
    ### END SOLUTION
