"""Lab 01, exercise 4: what limits an operation of a trace."""

import math


def bound_by(operation, us, peak, bandwidth):
    """(bound, share): "bytes", "FLOPs" or "neither", and the share of that roof it reached.

    operation: an event of category "cpu_op"; us: its GPU time in µs; peak: FLOP/s; bandwidth:
    bytes/s. operation["args"] has "Input Dims", each input's shape, and "Input type", in the same
    order. Inputs are those with a shape that is not [] and a type that ITEMSIZE has (bytes per
    element); what else stands there (numbers, "Scalar", "TensorList", "") counts nothing.
    Each input is read once. "aten::mm" and "aten::bmm" multiply the first two, (…, M, K) and
    (…, K, N), to (…, M, N) of the first one's type. Every other operation writes one result like
    its largest input (most elements, of equal ones the one with more bytes per element) and does a
    FLOP per element of it. With no input left there are 0 bytes and 0 FLOPs.
    bound: what takes longer at its roof. share: that time / us. It may exceed 1 (caches); where
    it is below 0.3, bound is "neither": launching or waiting takes the time.
    """
    ITEMSIZE = {"double": 8, "long int": 8, "float": 4, "int": 4, "c10::BFloat16": 2,
                "c10::Half": 2, "bool": 1}
    # 1. Elements and bytes of each input.
    # 2. FLOPs, and bytes with the result's: for a product, and for all others.
    # 3. The time of each at its roof, the longer one as a share of `us`.
    ### BEGIN SOLUTION
    shapes, types = operation["args"]["Input Dims"], operation["args"]["Input type"]
    inputs = [
        (math.prod(shape), ITEMSIZE[kind])
        for shape, kind in zip(shapes, types, strict=True)
        if shape and kind in ITEMSIZE
    ]
    if operation["name"] in ("aten::mm", "aten::bmm"):
        (*batch, M, K), N = shapes[0], shapes[1][-1]
        flops = 2 * math.prod(batch) * M * K * N
        written = math.prod(batch) * M * N * inputs[0][1]
    else:
        flops, itemsize = max(inputs, default=(0, 0))
        written = flops * itemsize
    moved = sum(elements * itemsize for elements, itemsize in inputs) + written
    at_bytes, at_flops = 1e6 * moved / bandwidth, 1e6 * flops / peak
    share = max(at_bytes, at_flops) / us
    if share < 0.3:
        return "neither", share
    return "bytes" if at_bytes > at_flops else "FLOPs", share
    ### END SOLUTION
