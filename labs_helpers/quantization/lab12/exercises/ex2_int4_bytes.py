"""Lab 12, exercise 2: pack two int4 values into each byte, and unpack them."""

import torch


def int4_bytes(x, zero=8, unpack=False):
    """Pack int4 values into bytes, two per byte, or unpack bytes into values.

    unpack=False: x is int8 (N, K), each value from −zero to 15 − zero; returns uint8 (N, K/2).
    unpack=True: x is uint8 (N, K/2); returns the values, int8 (N, K).
    A value is stored as the code value + zero, 0 to 15. Byte j of a row holds the code of column
    2j in its lower four bits and that of column 2j + 1 in its upper four bits.
    Raises ValueError if values are to be packed and K is odd.
    """
    # 1. Pack: refuse an odd K. Turn values into codes, and combine even and odd columns.
    # 2. Unpack: take the lower and the upper four bits, and interleave them.
    # 3. Subtract `zero` where a negative difference fits: uint8 has no negative numbers.
    ### BEGIN SOLUTION
    if not unpack:
        if x.shape[1] % 2:
            raise ValueError(f"K = {x.shape[1]} is odd: two values share a byte")
        codes = (x + zero).to(torch.uint8)
        return codes[:, 0::2] | (codes[:, 1::2] << 4)
    codes = torch.stack([x & 15, x >> 4], dim=2).flatten(1)
    return codes.to(torch.int8) - zero
    ### END SOLUTION
