"""Split n elements into chunks, one per rank."""


def chunk_bounds(n: int, parts: int) -> list[tuple[int, int]]:
    """Return `parts` adjacent (start, stop) that cover range(n); the first n % parts are one element longer.

    n: elements ≥ 0. parts ≥ 1; if there are more parts than elements, the last ones are empty. Raises ValueError.
    """
    if n < 0:
        raise ValueError(f"n must not be negative, but is {n}")
    if parts < 1:
        raise ValueError(f"parts must be at least 1, but is {parts}")
    least, longer = divmod(n, parts)
    starts = [part * least + min(part, longer) for part in range(parts + 1)]
    return list(zip(starts[:-1], starts[1:], strict=True))
