"""Planted bugs of exercise 4, and right answers written differently."""

from pathlib import Path

from labs_helpers.transformer.lab01.exercises import ex4_bound_by

BODY = Path(ex4_bound_by.__file__).read_text().partition("### BEGIN SOLUTION\n")[2].partition("    ### END")[0]
MOVED = "sum(elements * itemsize for elements, itemsize in inputs) + written"
LARGEST = "flops, itemsize = max(inputs, default=(0, 0))"
ONLY = "if shape and kind in ITEMSIZE"
SHARE = "max(at_bytes, at_flops) / us"
LAST = 'return "bytes" if at_bytes > at_flops else "FLOPs", share'
PRODUCT = 'operation["name"] in ("aten::mm", "aten::bmm")'
ADDMM = PRODUCT.replace('"aten::bmm"', '"aten::bmm", "aten::addmm"')
SHAPES, LAST_TWO = "N = shapes[0], shapes[1][-1]", "N = shapes[-2], shapes[-1][-1]"

_BUGS = [
    # bytes
    (
        "one input",
        [(MOVED, "inputs[0][0] * inputs[0][1] + written if inputs else 0")],
        "every input is read",
    ),
    (
        "the largest input",
        [(MOVED, "math.prod(max(inputs, default=(0, 0))) + written")],
        "every input is read",
    ),
    ("all but the first", [(MOVED, MOVED.replace("in inputs)", "in inputs[1:])"))], "every input is read"),
    ("no result", [(f"{MOVED}", MOVED.removesuffix(" + written"))], "the result is written too"),
    ("the result alone", [(MOVED, "written")], "the inputs are read too"),
    ("elements", [("ITEMSIZE[kind])", "1)")], "bytes are elements times itemsize"),
    ("two bytes everywhere", [("ITEMSIZE[kind])", "2)")], "2 bytes per element are used for every input"),
    ("four bytes everywhere", [("ITEMSIZE[kind])", "4)")], "4 bytes per element are used for every input"),
    (
        "numbers are inputs",
        [(ONLY, "if kind in ITEMSIZE and not isinstance((shape or [0])[0], list)")],
        r"an entry with shape \[\] is not an input and",
    ),
    ("a scalar is in no table", [(ONLY, "if True")], '"Scalar" is not in ITEMSIZE'),
    ("nothing is left", [(", default=(0, 0)", "")], "without inputs, bytes and FLOPs are 0: use"),
    ("like the first", [(LARGEST, "flops, itemsize = inputs[0] if inputs else (0, 0)")], "like the largest input"),
    (
        "of equal ones the first",
        [("max(inputs, ", "max(inputs, key=lambda each: each[0], ")],
        "the result is like the largest input: the",
    ),
    ("the type of the first", [("flops * itemsize", "flops * (inputs or [(0, 0)])[0][1]")], "like the largest input"),
    ("most bytes", [("max(inputs, ", "max(inputs, key=math.prod, ")], "the most elements"),
    (
        "of equal ones the one with more columns",
        [
            ("(math.prod(shape), ITEMSIZE[kind])", "(math.prod(shape), ITEMSIZE[kind], shape[-1])"),
            (LARGEST, "flops, itemsize, _ = max(inputs, key=lambda i: (i[0], i[2], i[1]), default=(0, 0, 0))"),
            (MOVED, "sum(elements * itemsize for elements, itemsize, _ in inputs) + written"),
        ],
        "the result is like the largest input: the",
    ),
    (
        "as all of them",
        [("flops * itemsize", "sum(count for count, _ in inputs) * itemsize")],
        "one result is written: it is as large as the",
    ),
    # FLOPs
    ("multiplications alone", [("flops = 2 *", "flops =")], "a product multiplies and adds"),
    ("a multiplication too few", [("M * K * N", "M * (K - 1) * N")], r"are missing\n|are missing$"),
    ("no batch", [("2 * math.prod(batch)", "2")], "every matrix of the batch counts"),
    ("the result has no batch", [("written = math.prod(batch) *", "written =")], "every matrix of the batch counts"),
    ("no K", [("M * K * N", "M * N")], "takes K multiplications"),
    (
        "a product is like others",
        [(PRODUCT, 'operation["name"] == "aten::matmul"')],
        "for a product, count 2 · M · N · K FLOPs and",
    ),
    (
        "bmm is like others",
        [('("aten::mm", "aten::bmm")', '("aten::mm",)')],
        "for a product, count 2 · M · N · K FLOPs and",
    ),
    (
        "a product's result",
        [("math.prod(batch) * M * N * inputs[0][1]", "math.prod(max(inputs))")],
        "for a product, count 2 · M · N · K FLOPs and",
    ),
    (
        "two FLOPs an element",
        [("flops / peak", "flops * (1 if 'mm' in operation['name'] else 2) / peak")],
        "one FLOP per element, not two",
    ),
    (
        "no FLOPs",
        [("flops / peak", "flops * ('mm' in operation['name']) / peak")],
        "every other operation does one FLOP per",
    ),
    ("addmm", [(PRODUCT, ADDMM)], "only aten::mm and aten::bmm multiply"),
    ("addmm's matrices", [(PRODUCT, ADDMM), (SHAPES, LAST_TWO)], "only aten::mm and aten::bmm multiply"),
    # times and share
    ("µs for seconds", [("1e6 *", "")], "us is in µs, peak and bandwidth are per second"),
    ("ms", [("1e6 *", "1e3 *")], "us is in µs, not in ms"),
    ("upside down", [(SHARE, "us / max(at_bytes, at_flops, 1e-99)")], "and not us / the roof's time"),
    ("the shorter", [("max(at_bytes", "min(at_bytes")], "the shorter time was taken"),
    ("bytes alone", [(SHARE, "at_bytes / us")], "the result never depends on FLOPs: use the"),
    ("FLOPs alone", [(SHARE, "at_flops / us")], "the result never depends on bytes: use the"),
    ("added", [(SHARE, "(at_bytes + at_flops) / us")], "the two times were added"),
    (
        "roofs swapped",
        [("moved / bandwidth", "moved / peak"), ("flops / peak", "flops / bandwidth")],
        "divide FLOPs by the peak, and bytes by the",
    ),
    ("cut off", [(SHARE, f"min(1.0, {SHARE})")], "do not limit it"),
    ("percent", [(SHARE, f"100 * {SHARE}"), ("share < 0.3", "share < 30")], "return a share, not a percentage"),
    ("no share", [('"neither", share', '"neither", 0.0')], 'even if bound is "neither"'),
    ("rounded", [(SHARE, f"round({SHARE}, 2)")], "do not round the share"),
    (
        "whole bytes",
        [("1e6 * moved / bandwidth", "1e6 * (moved // bandwidth)")],
        "the result never depends on bytes: use the",
    ),
    # bound
    ("swapped", [("at_bytes > at_flops", "at_bytes < at_flops")], "the bound is whichever takes longer at its"),
    ("never neither", [("share < 0.3", "share < 0")], 'a share below 0.3 is "neither"'),
    ("neither from a half", [("share < 0.3", "share < 0.5")], 'a share of 0.3 or more is not "neither"'),
    ("other words", [('"bytes" if', '"memory" if')], 'return "bytes", "FLOPs" or "neither"'),
    # what was given
    (
        "shapes taken out",
        [("    inputs = [", '    operation["args"].pop("Input type")\n    inputs = [')],
        "which it got: its 'args' was",
    ),
]
BUGS = [("bound_by", *bug) for bug in _BUGS]

BY_LOOP = """
    moved, largest, widest = 0, 0, 0
    for shape, kind in zip(operation["args"]["Input Dims"], operation["args"]["Input type"]):
        if not shape or kind not in ITEMSIZE:
            continue
        elements = 1
        for size in shape:
            elements *= size
        moved += elements * ITEMSIZE[kind]
        if elements > largest or elements == largest and ITEMSIZE[kind] > widest:
            largest, widest = elements, ITEMSIZE[kind]
    if operation["name"] in ("aten::mm", "aten::bmm"):
        a, b = operation["args"]["Input Dims"][:2]
        result = b[-1] * a[-2] * (a[0] if len(a) == 3 else 1)
        seconds = 2 * result * a[-1] / peak
        moved += result * ITEMSIZE[operation["args"]["Input type"][0]]
    else:
        seconds = largest / peak
        moved += largest * widest
    share = max(moved / bandwidth, seconds) / (us * 1e-6)
    if share >= 0.3:
        return ("FLOPs", share) if seconds >= moved / bandwidth else ("bytes", share)
    return "neither", share
"""
BY_NUMPY = """
    import numpy as np

    listed = zip(operation["args"]["Input Dims"], operation["args"]["Input type"])
    tensors = [(tuple(shape), ITEMSIZE[kind]) for shape, kind in listed if kind in ITEMSIZE and len(shape) > 0]
    parts = np.array([(np.prod(shape), size) for shape, size in tensors]).reshape(-1, 2)
    if operation["name"] in {"aten::mm", "aten::bmm"}:
        (a, size), (b, _) = tensors[:2]
        written = np.prod(a[:-1]) * b[-1]
        flops = 2 * written * a[-1]
    elif len(parts):
        written, size = parts[np.lexsort((parts[:, 1], parts[:, 0]))[-1]]
        flops = written
    else:
        written = flops = size = 0
    roofs = {"bytes": (parts.prod(axis=1).sum() + written * size) / bandwidth, "FLOPs": flops / peak}
    bound = max(roofs, key=roofs.get)
    share = roofs[bound] / (us / 1e6)
    return (bound if share >= 0.3 else "neither"), share
"""
BY_INTENSITY = """
    dims, kinds = operation["args"]["Input Dims"], operation["args"]["Input type"]
    shapes = [(dims[i], ITEMSIZE[kinds[i]]) for i in range(len(dims)) if dims[i] != [] and kinds[i] in ITEMSIZE]
    if not shapes:
        return "neither", 0
    moved = sum(size * math.prod(shape) for shape, size in shapes)
    largest = sorted((math.prod(shape), size) for shape, size in shapes)[-1]
    flops, moved_too = largest[0], largest[0] * largest[1]
    if operation["name"].removeprefix("aten::") in ("mm", "bmm"):
        out = list(dims[0][:-1]) + [dims[1][-1]]
        flops, moved_too = 2 * math.prod(out) * dims[0][-1], math.prod(out) * shapes[0][1]
    intensity = flops / (moved + moved_too)
    rate = min(peak, bandwidth * intensity)
    share = flops / (us * 1e-6) / rate
    bound = "FLOPs" if intensity > peak / bandwidth else "bytes"
    return ("neither" if share < 0.3 else bound), share
"""
BY_TENSORS = """
    import torch

    dtypes = {8: torch.float64, 4: torch.float32, 2: torch.float16, 1: torch.bool}
    tensors = [
        torch.empty(shape, dtype=dtypes[ITEMSIZE[kind]], device="meta")
        for shape, kind in zip(operation["args"]["Input Dims"], operation["args"]["Input type"])
        if shape and ITEMSIZE.get(kind)
    ]
    if not tensors:
        return "neither", 0.0
    product = operation["name"] in ("aten::mm", "aten::bmm")
    out = tensors[0] @ tensors[1] if product else max(tensors, key=lambda t: (t.numel(), t.element_size()))
    flops = out.numel() * (2 * tensors[0].shape[-1] if product else 1)
    moved = sum(t.numel() * t.element_size() for t in [*tensors, out])
    at = sorted([(moved / bandwidth * 1e6, "bytes"), (flops / peak * 1e6, "FLOPs")])[-1]
    return at[1] if at[0] >= 0.3 * us else "neither", at[0] / us
"""
_DIFFERENT = [
    [(BODY, BY_LOOP)],
    [(BODY, BY_NUMPY)],
    [(BODY, BY_INTENSITY)],
    [(BODY, BY_TENSORS)],
    [("1e6 * moved / bandwidth, 1e6 * flops / peak", "moved / (bandwidth / 1e6), flops / (peak / 1e6)")],
]
DIFFERENT = [("bound_by", changes) for changes in _DIFFERENT]
