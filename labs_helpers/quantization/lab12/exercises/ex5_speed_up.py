"""Lab 12, exercise 5: predict from bytes and FLOPs how much faster a quantized product is."""

import math


def speed_up(M, N, K, bits, group, bandwidth, rate):
    """Return (speed_up, crossover): the predicted time of x · Wᵀ with a bfloat16 weight over the
    time with a quantized one; and the smallest number of rows from which on the two times are
    equal, or None if there is no such number.

    Both products read x (M, K) and write y (M, N) in bfloat16, read their weight W (N, K) once,
    and compute 2·M·N·K FLOPs at `rate` FLOP/s. `bandwidth` is in bytes/s. A product takes the
    longer of its two times: that of its bytes and that of its FLOPs.
    bits: of each quantized value, 8 or 4. group: None for one scale per row of W; otherwise a
    row has a scale and a zero point for each `group` columns, and K is a multiple of group.
    A row's scale takes 4 bytes, a group's scale 2 bytes, and a zero point 1 byte.
    """
    # 1. The bytes of a bfloat16 weight, and those of a quantized one with its scales and zeros.
    # 2. The time of each product: the larger of bytes / bandwidth and FLOPs / rate.
    # 3. Both products take equally long once the bfloat16 one is limited by its FLOPs:
    #    2·M·N·K / rate ≥ (bytes of its weight + bytes per row · M) / bandwidth. Solve it for M.
    ### BEGIN SOLUTION
    full = 2 * N * K
    small = N * K * bits / 8 + (4 * N if group is None else 3 * N * K / group)
    row_bytes, row_flops = 2 * (K + N), 2 * N * K

    def time(weight):
        return max((weight + row_bytes * M) / bandwidth, row_flops * M / rate)

    gained = row_flops / rate - row_bytes / bandwidth  # seconds per row
    crossover = math.ceil(full / bandwidth / gained) if gained > 0 else None
    return time(full) / time(small), crossover
    ### END SOLUTION
