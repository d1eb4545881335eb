"""Lab 00, exercise 4: FLOPs and bytes of five operations, and the roof that limits each."""


def five_operations(n, itemsize, peak_flops, bandwidth):
    """Return FLOPs, DRAM bytes and bound of five operations. X, Y: n×n, v: n, V: n×32.

    An element takes `itemsize` bytes. Each operation reads its inputs once and writes its result
    once. One addition is one FLOP, a multiply-add is two; a sum of n numbers is n additions.
    peak_flops: FLOP/s. bandwidth: bytes/s.
    The result is a dict from each of the names below to (flops, bytes, bound). The bound is
    'memory' if moving the bytes takes longer than computing, else 'compute'.
    """
    names = "X + Y", "row sums of X", "X · v", "X · V", "X · Y"
    # 1. For each operation: its FLOPs, and the elements it reads and writes.
    # 2. Bytes are elements times itemsize.
    # 3. Seconds to compute: flops / peak_flops; to move: bytes / bandwidth. The longer decides.
    ### BEGIN SOLUTION
    counts = (
        (n * n, 3 * n * n),
        (n * n, n * n + n),
        (2 * n * n, n * n + 2 * n),
        (2 * n * n * 32, n * n + 2 * n * 32),
        (2 * n**3, 3 * n * n),
    )
    answer = {}
    for name, (flops, elements) in zip(names, counts, strict=True):
        moved = elements * itemsize
        bound = "compute" if flops / peak_flops >= moved / bandwidth else "memory"
        answer[name] = (flops, moved, bound)
    return answer
    ### END SOLUTION
