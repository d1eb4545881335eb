"""Lab 13, exercise 10: how many tokens to propose, from the acceptance rate and the draft's cost."""


def best_speculation(alpha, cost, most):
    """Return (k, tokens, speed_up) of the number of proposals k, 0 to `most`, with the best
    speed-up.

    alpha: the probability that a proposal is accepted, if all before it were. cost: the time of a
    draft model's pass over that of the target model's. tokens: the expected tokens per step,
    which makes k draft passes and one target pass over k + 1 positions, as long as one over 1
    position. A step keeps the proposals before the first rejected one, and one token of the
    target. speed_up: time per token without speculation (k = 0) over the time per token with it.
    Of several equally good k, return the smallest.
    """
    # 1. Proposal i counts if all of the first i are accepted. What is the probability of that?
    # 2. The time of a step, in target passes.
    # 3. Try every k.
    ### BEGIN SOLUTION
    best = None
    for k in range(most + 1):
        tokens = sum(alpha**i for i in range(k + 1))
        speed_up = tokens / (k * cost + 1)
        if best is None or speed_up > best[2]:
            best = k, tokens, speed_up
    return best
    ### END SOLUTION
