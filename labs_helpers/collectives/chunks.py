"""How n elements are cut into chunks, one for each rank."""


def chunk_bounds(n: int, parts: int) -> list[tuple[int, int]]:
    """`parts` neighbouring (start, stop) that cover range(n); the first n % parts are one element longer.

    n: elements ≥ 0. parts ≥ 1; with more parts than elements the last ones are empty. Raises ValueError.
    """
    if n < 0:
        raise ValueError(f"n must not be negative, but is {n}")
    if parts < 1:
        raise ValueError(f"parts must be at least 1, but is {parts}")
    least, longer = divmod(n, parts)
    starts = [part * least + min(part, longer) for part in range(parts + 1)]
    return list(zip(starts[:-1], starts[1:], strict=True))
