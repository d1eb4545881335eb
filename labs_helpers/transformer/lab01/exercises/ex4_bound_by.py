"""Lab 01, exercise 4: find what limits an operation of a trace."""

import math


def bound_by(operation, us, peak, bandwidth):
    """Return (bound, share): "bytes", "FLOPs" or "neither", and the share of that roof it reached.

    operation: an event of category "cpu_op"; us: its GPU time in µs; peak: FLOP/s; bandwidth:
    bytes/s. operation["args"] lists each entry's shape in "Input Dims" and its type in "Input
    type", in the same order. An entry is an input if its shape is not [] and ITEMSIZE (bytes per
    element) has its type. All others (numbers, "Scalar", "TensorList", "") count nothing.
    Each input is read once. "aten::mm" and "aten::bmm" multiply the first two, (…, M, K) and
    (…, K, N), to (…, M, N) of the first one's type. Every other operation writes one result like
    its largest input (most elements; if equal, more bytes per element) and does one FLOP per
    element of the result. Without inputs, bytes and FLOPs are 0.
    bound: whichever takes longer at its roof. share: that time / us. It may exceed 1 (caches).
    If it is below 0.3, bound is "neither": launching or waiting takes the time.
    """
    ITEMSIZE = {"double": 8, "long int": 8, "float": 4, "int": 4, "c10::BFloat16": 2,
                "c10::Half": 2, "bool": 1}
    # 1. Elements and bytes of each input.
    # 2. FLOPs, and bytes including the result's, for a product and for all other operations.
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
