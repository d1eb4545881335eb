"""Lab 13, exercise 7: chunked prefill, which splits prompts over passes with a token budget."""


def chunked_passes(decoding, prompts, budget):
    """Plan forward passes until all prompts are computed. Return one list of chunks per pass.

    decoding: how many requests already decode; each takes one token of every pass. prompts:
    lengths of the waiting prompts, oldest first, 1 or more each. budget: the most tokens per
    pass. A chunk (number, start, stop) computes positions start to stop − 1 of prompt `number`.
    The tokens that decoding leaves go to the oldest prompt, as many as it needs, then to the
    next one. A request whose prompt was finished in an earlier pass decodes in every pass;
    nobody ends. Raises ValueError if decoding leaves no token while a prompt is unfinished.
    """
    # 1. In each pass, first subtract the tokens of those who decode: more of them as prompts end.
    # 2. Give the rest to the prompts in order. A prompt may get its next chunk in a later pass.
    ### BEGIN SOLUTION
    passes, computed = [], [0] * len(prompts)
    while computed != list(prompts):
        finished = [i for i, length in enumerate(prompts) if computed[i] == length]
        left = budget - decoding - len(finished)
        if left < 1:
            raise ValueError("decoding leaves no token for the prompts")
        chunks = []
        for number, length in enumerate(prompts):
            start, stop = computed[number], min(length, computed[number] + left)
            if stop > start:
                chunks.append((number, start, stop))
                computed[number] = stop
                left -= stop - start
        passes.append(chunks)
    return passes
    ### END SOLUTION
