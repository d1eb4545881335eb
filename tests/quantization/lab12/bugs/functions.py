"""Mistakes in the functions of lab 12 that their checks have to name, and right answers written differently."""

SCALE = "scale = w.abs().amax(dim=1) / 127"
Q = "(w / scale[:, None]).round().to(torch.int8)"
QUANTIZE_INT8 = [
    ("quantize_int8", "per column", [(SCALE, "scale = w.abs().amax(dim=0) / 127"), ("[:, None]", "")], "one number per column of w"),
    ("quantize_int8", "keepdim", [("amax(dim=1)", "amax(dim=1, keepdim=True)"), ("[:, None]", "")], "keepdim=True leaves"),
    ("quantize_int8", "not int8", [(".round().to(torch.int8)", ".round()")], "still floating point"),
    ("quantize_int8", "truncation", [(".round()", "")], "cut off, not rounded"),
    ("quantize_int8", "one scale", [("w.abs().amax(dim=1)", "w.abs().amax()"), ("scale[:, None]", "scale")], "one number serves the whole weight"),
    ("quantize_int8", "128", [("127", "128")], "int8 ends at 127"),
    ("quantize_int8", "in w's dtype", [("    w = w.float()\n", "")], "w's dtype"),
    ("quantize_int8", "a whole step", [("scale / 2", "scale.clone()")], "at most half a step away"),
    ("quantize_int8", "no row of zeros", [("    scale = torch.where(scale > 0, scale, 1.0)\n", "")], "0 / 0 is not a number"),
    ("quantize_int8", "changes w", [("w = w.float()", "w = w.float()\n    w[w == 0] = 0.5")], "changed its argument w"),
    ("quantize_int8", "no return", [("return q, scale, scale / 2", "q")], "a return is missing"),
]  # fmt: skip
ROUND_TRIP = [
    ("int4_bytes", "swapped", [("codes[:, 0::2] | (codes[:, 1::2] << 4)", "codes[:, 1::2] | (codes[:, 0::2] << 4)")], "halves of a byte are swapped"),
    ("int4_bytes", "halves", [("0::2", ":x.shape[1] // 2"), ("1::2", "x.shape[1] // 2:")], "first half of the row"),
    ("int4_bytes", "no zero point", [("(x + zero)", "(x & 15)")], "zero point is forgotten"),
    ("int4_bytes", "spills", [("(x + zero)", "x")], "its sign spills over"),
    ("int4_bytes", "wraps", [("codes.to(torch.int8) - zero", "codes - zero")], "uint8 has no negative numbers"),
    ("int4_bytes", "signed shift", [("x >> 4", "(x.view(torch.int8) >> 4)")], "shifted as a signed number"),
    ("int4_bytes", "not subtracted", [("codes.to(torch.int8) - zero", "codes.to(torch.int8)")], "not subtracted after unpacking"),
    ("int4_bytes", "concatenated", [("torch.stack([x & 15, x >> 4], dim=2).flatten(1)", "torch.cat([x & 15, x >> 4], dim=1)")], "first half of the row"),
    ("int4_bytes", "odd K", [("x.shape[1] % 2", "False")], "size|odd K"),
    ("int4_bytes", "odd K padded", [("            raise ValueError(f\"K = {x.shape[1]} is odd: two values share a byte\")\n", "            x = torch.nn.functional.pad(x, (0, 1))\n")], "for an odd K"),
    ("int4_bytes", "not flat", [(".flatten(1)", "")], "flatten it"),
]  # fmt: skip
TIME = "max((weight + row_bytes * M) / bandwidth, row_flops * M / rate)"
SPEED_UP = [
    ("speed_up", "no scales", [(" + (2 * N if group is None else 3 * N * K / group)", "")], "scales and zero points are bytes"),
    ("speed_up", "no zero points", [("3 * N * K", "2 * N * K")], "there are zero points"),
    ("speed_up", "the sum", [(TIME, TIME.replace("max(", "(").replace(", row_flops", " + row_flops"))], "not their sum"),
    ("speed_up", "no activations", [("2 * (K + N)", "0")], "x is read and y is written"),
    ("speed_up", "one FLOP", [("2 * N * K\n\n", "N * K\n\n")], "are two FLOPs"),
    ("speed_up", "bits", [("bits / 8", "bits")], "divide by 8"),
    ("speed_up", "rounded down", [("math.ceil", "math.floor")], "round up"),
    ("speed_up", "never None", [("if gained > 0 else None", "")], "never equal: None"),
    ("speed_up", "upside down", [("time(full) / time(small)", "time(small) / time(full)")], "upside down"),
    ("speed_up", "integer division", [("K * bits / 8", "K * (bits // 8)")], "the speed-up"),
]  # fmt: skip
SMOOTH = [
    ("smooth", "reversed", [("x / s, w * s, s", "x * s, w / s, s")], "outliers of the activations then grow"),
    ("smooth", "both divided", [("w * s", "w / s")], "both are divided by s"),
    ("smooth", "rows", [("w.abs().amax(dim=0)", "w.abs().amax(dim=1)[:1]"), ("x.abs().amax(dim=0)", "x.abs().amax(dim=0)")], "w_smooth|s,"),
    ("smooth", "no abs", [("x.abs().amax", "x.amax")], "instead of its largest absolute value"),
    ("smooth", "alpha swapped", [("of_x**alpha / of_w ** (1 - alpha)", "of_x ** (1 - alpha) / of_w**alpha")], "exchanged"),
    ("smooth", "no guard", [("torch.where((of_x > 0) & (of_w > 0), of_x**alpha / of_w ** (1 - alpha), 1.0)", "of_x**alpha / of_w ** (1 - alpha)")], "its s is 1"),
    ("smooth", "in place", [("return x / s, w * s, s", "x /= s\n    return x, w * s, s")], "memory|changed"),
]  # fmt: skip
AWQ = [
    ("awq_search", "divided before", [("quantize(w * s) / s", "quantize(w / s) * s")], "important channels are rounded coarsely"),
    ("awq_search", "not undone", [("quantize(w * s) / s", "quantize(w * s)")], "not divided by s again"),
    ("awq_search", "weight's error", [("(right - x @ rounded.T)", "(w - rounded)")], "compare the layer's outputs"),
    ("awq_search", "largest", [("x.abs().mean(dim=0)", "x.abs().amax(dim=0)")], "AWQ takes the mean"),
    ("awq_search", "tokens", [("x.abs().mean(dim=0)", "x.abs().mean(dim=1)")], "must match|tokens|size"),
    ("awq_search", "no normalisation", [("        s = s / (s.max() * s.min()).sqrt()\n", "")], "not divided by"),
    ("awq_search", "last factors", [("factors[best]", "s")], "last ratio"),
    ("awq_search", "index", [("ratios[best]", "best")], "ratio"),
    ("awq_search", "argmax", [("argmin", "argmax")], "largest error is chosen"),
]  # fmt: skip
W8A8 = [
    ("int8_matmul", "int8 sums", [("torch.int32)\n", "torch.int8)\n"), ("q.to(torch.int32).T", "q.T")], "int8 and wrap around"),
    ("int8_matmul", "per column", [("x.abs().amax(dim=1, keepdim=True)", "x.abs().amax(dim=0, keepdim=True)")], "must match|size"),
    ("int8_matmul", "per tensor", [("x.abs().amax(dim=1, keepdim=True)", "x.abs().amax()")], "one scale serves all tokens"),
    ("int8_matmul", "no token scale", [(" * of_token *", " *")], "token's scale is missing"),
    ("int8_matmul", "no channel scale", [(" * scale[None, :]", "")], "output channel's scale is missing"),
    ("int8_matmul", "sums", [("sums.float() * of_token * scale[None, :]", "sums")], "they need their two scales"),
    ("int8_matmul", "truncated", [(".round()", "")], "cut off, not rounded"),
    ("int8_matmul", "channel scale along rows", [("scale[None, :]", "scale[:, None]")], "belongs to a row|must match"),
]  # fmt: skip
BUGS = [*QUANTIZE_INT8, *ROUND_TRIP, *SPEED_UP, *SMOOTH, *AWQ, *W8A8]
DIFFERENT = [
    ("quantize_int8", [("    w = w.float()\n", "    w = w.to(torch.float32)\n"), (Q, "torch.round(w * (1 / scale)[:, None]).clamp(-127, 127).to(torch.int8)")]),
    ("quantize_int8", [(SCALE, "scale = torch.maximum(w.amax(1), -w.amin(1)) / 127"), ("torch.where(scale > 0, scale, 1.0)", "scale + (scale == 0)")]),
    ("quantize_int8", [("q, scale, scale / 2", "[q, scale, 0.5 * scale]")]),
    ("int4_bytes", [("codes[:, 0::2] | (codes[:, 1::2] << 4)", "codes[:, 0::2] + 16 * codes[:, 1::2]"), ("x & 15, x >> 4", "x % 16, x // 16")]),
    ("int4_bytes", [("    codes = torch.stack([x & 15, x >> 4], dim=2).flatten(1)\n    return codes.to(torch.int8) - zero\n",
      "    values = torch.empty(len(x), 2 * x.shape[1], dtype=torch.int8)\n    values[:, ::2] = (x & 15).to(torch.int8) - zero\n    values[:, 1::2] = (x >> 4).to(torch.int8) - zero\n    return values\n")]),
    ("int4_bytes", [("codes.to(torch.int8) - zero", "(codes - zero).to(torch.int8)")]),
    ("speed_up", [("math.ceil(full / bandwidth / gained) if gained > 0 else None",
      "next((m for m in range(1, 10**4) if m * row_flops / rate >= (full + m * row_bytes) / bandwidth), None)")]),
    ("speed_up", [("2 * N if group is None else 3 * N * K / group", "N * (2 if not group else K // group * 3)"), ("2 * (K + N)", "2 * K + 2 * N")]),
    ("smooth", [("torch.where((of_x > 0) & (of_w > 0), of_x**alpha / of_w ** (1 - alpha), 1.0)",
      "of_x**alpha / of_w ** (1 - alpha)\n    s[(of_x == 0) | (of_w == 0)] = 1")]),
    ("smooth", [("x.abs().amax(dim=0), w.abs().amax(dim=0)", "x.abs().max(0).values, w.abs().max(0)[0]"), ("w * s", "(w.T * s[:, None]).T")]),
    ("awq_search", [("(s.max() * s.min()).sqrt()", "s.max().sqrt() / s.min().sqrt()"), ("errors = torch.stack(errors)", "errors = torch.tensor(errors)")]),
    ("awq_search", [("    errors = torch.stack(errors)\n    best = int(errors.argmin())\n", "    best = errors.index(min(errors))\n")]),
    ("int8_matmul", [("rounded @ q.to(torch.int32).T", "torch.einsum('mk,nk->mn', rounded, q.to(torch.int32))"), ("* of_token * scale[None, :]", "* (of_token * scale)")]),
    ("int8_matmul", [("rounded @ q.to(torch.int32).T", "rounded.double() @ q.double().T")]),
]  # fmt: skip
