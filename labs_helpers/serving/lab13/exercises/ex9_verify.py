"""Lab 13, exercise 9: accept or replace the tokens that a draft model proposes, exactly."""


def verify(p, q, proposed, uniform, draw):
    """Return the tokens of one speculative step: the accepted proposals, then one drawn token.

    p: (K + 1, V), the target's distributions: p[i] of the token after i accepted proposals. q:
    (K, V), the draft's; proposed[i] was drawn from q[i]. uniform: K random numbers, 0 ≤
    uniform[i] < 1; the small ones accept. draw(weights) draws a token with probabilities
    proportional to `weights`, (V,). Proposal i is accepted with the probability min(1, p / q) of
    its token. The first one that is rejected ends the step, and is replaced by a token drawn with
    the weights max(0, p − q) of its place. If all K are accepted, one more token is drawn, from
    p[K].
    """
    # 1. With which comparison is uniform[i] accepted with the probability min(1, p / q)?
    # 2. After a rejection, later proposals do not count: they continue a text that does not exist.
    ### BEGIN SOLUTION
    tokens = []
    for i, token in enumerate(proposed):
        if uniform[i] * q[i, token] >= p[i, token]:
            return [*tokens, draw((p[i] - q[i]).clamp(min=0))]
        tokens.append(token)
    return [*tokens, draw(p[len(proposed)])]
    ### END SOLUTION
