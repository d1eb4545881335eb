"""Mistakes in the kernels of lab 12 that their checks have to name, and right answers written differently."""

DOT = 'acc = tl.dot(x, q.to(x.dtype), acc, input_precision="ieee")'
SCALE = "scale = tl.load(scale_ptr + columns, mask=columns < N, other=0.0)"
W8A16 = [
    ("int8_linear", "no scale", [("acc * scale[None, :]", "acc")], "the scale is missing"),
    ("int8_linear", "along the rows", [(SCALE, "scale = tl.load(scale_ptr + rows, mask=rows < N, other=0.0)"), ("scale[None, :]", "scale[:, None]")], "runs along the rows"),
    ("int8_linear", "first tile's scales", [("scale_ptr + columns, mask=columns < N", "scale_ptr + tl.arange(0, BLOCK_N), mask=tl.arange(0, BLOCK_N) < N")], "scales of the first one"),
    ("int8_linear", "column 0's scale", [(SCALE, "scale = tl.load(scale_ptr)"), ("scale[None, :]", "scale")], "scale of column 0"),
    ("int8_linear", "weight rounded", [(DOT, "acc = tl.dot(x, (q * tl.load(scale_ptr + columns, mask=columns < N, other=0.0)[None, :]).to(x.dtype), acc, input_precision=\"ieee\")"), ("acc * scale[None, :]", "acc")], "rounded to float16 after scaling"),
    ("int8_linear", "overflow", [("y = acc * scale[None, :]", "y = acc.to(y_ptr.dtype.element_ty) * scale[None, :]")], "before the scale"),
    ("int8_linear", "k does not advance", [("k = start + tl.arange(0, BLOCK_K)", "k = tl.arange(0, BLOCK_K)")], "same tiles"),
    ("int8_linear", "in every step", [(DOT, DOT + "\n        acc = acc * tl.load(scale_ptr + columns, mask=columns < N, other=0.0)[None, :]"), ("acc * scale[None, :]", "acc")], "in every step"),
    ("int8_linear", "overwritten", [(DOT, 'acc = tl.dot(x, q.to(x.dtype), input_precision="ieee")')], "only the last step counts"),
    ("int8_linear", "absolute", [("q.to(x.dtype)", "tl.abs(q).to(x.dtype)")], "sign of the weights is lost"),
    ("int8_linear", "q not transposed", [("columns[None, :] * K + k[:, None]", "columns[None, :] + k[:, None] * N")], r"y\b|outside"),
    ("int8_linear", "no K mask", [("(columns[None, :] < N) & (k[:, None] < K)", "columns[None, :] < N"), ("(rows[:, None] < M) & (k[None, :] < K)", "rows[:, None] < M")], "outside"),
    ("int8_linear", "no store mask", [(", mask=inside", "")], "outside"),
]  # fmt: skip
UPPER = "((bytes >> 4).to(tl.float32) - zero)"
W4A16 = [
    ("int4_linear", "swapped", [("bytes & 15", "bytes >>> 4"), ("bytes >> 4)", "bytes & 15)"), ("bytes >>> 4", "bytes >> 4")], "halves of a byte are swapped|odd columns"),
    ("int4_linear", "no zero point", [(" - zero", "")], "zero point is missing"),
    ("int4_linear", "lower only", [(UPPER, "(bytes >> 4).to(tl.float32)")], "only the even columns' zero point"),
    ("int4_linear", "sign lost", [("bytes >> 4", "bytes.to(tl.int8) >> 4")], "shifted as a signed number"),
    ("int4_linear", "uint8", [("(bytes & 15).to(tl.float32) - zero", "((bytes & 15) - zero).to(tl.float32)"), ("(bytes >> 4).to(tl.float32) - zero", "((bytes >> 4) - zero).to(tl.float32)"), ("other=0).to(tl.float32)[None, :]", "other=0)[None, :]")], "wraps around in uint8"),
    ("int4_linear", "a group late", [("start // group", "tl.minimum(start // group + 1, K // group - 1)")], "one group too late"),
    ("int4_linear", "a group early", [("start // group", "tl.maximum(start // group - 1, 0)")], "one group too early"),
    ("int4_linear", "in steps", [("+ start // group", "+ start // BLOCK_K")], "counted in steps|outside"),
    ("int4_linear", "transposed", [("columns * (K // group) + start // group", "start // group * N + columns")], "they are .N, K/group."),
    ("int4_linear", "no scale", [("product * scale[None, :]", "product")], "the scale is missing"),
    ("int4_linear", "weight rounded", [("- zero).to(even.dtype)", "- zero) * scale[None, :]"), ("product * scale[None, :]", "product"), ("(even, lower,", "(even, lower.to(even.dtype),"), ("(odd, upper,", "(odd, upper.to(even.dtype),")], "rounded to float16 after scaling"),
    ("int4_linear", "acc scaled", [("acc += product * scale[None, :]", "acc = (acc + product) * scale[None, :]")], "multiply the step's product"),
    ("int4_linear", "even twice", [("tl.load(even_ptr + 1,", "tl.load(even_ptr,")], "both products use x's even columns"),
    ("int4_linear", "halves of x", [("start + 2 * half[None, :]", "start + half[None, :]"), ("even_ptr + 1,", "even_ptr + BLOCK_K // 2,")], "holds two neighbors"),
    ("int4_linear", "bytes per value", [("start // 2 + half", "start + half")], "outside|loaded"),
]  # fmt: skip
CACHE = [
    ("int8_cache_attention", "keys not scaled", [("axis=1) * k_scale", "axis=1)")], "keys are not scaled"),
    ("int8_cache_attention", "values not scaled", [("(weights * v_scale)", "weights")], "values are not scaled"),
    ("int8_cache_attention", "no root", [(" / tl.sqrt(D * 1.0)", "")], "not divided by √D"),
    ("int8_cache_attention", "not rescaled", [("o = o * shrink +", "o = o +")], "output is not rescaled"),
    ("int8_cache_attention", "positions beyond L", [("tl.where(inside, tl.sum(k * q[None, :], axis=1) * k_scale, -float(\"inf\"))", "tl.sum(k * q[None, :], axis=1) * k_scale")], "beyond L have the score 0"),
    ("int8_cache_attention", "whole step", [("k_step / 2", "k_step")], "half a scale, not a whole one"),
    ("int8_cache_attention", "no values' error", [("v_step / 2 + ", "")], "values' own error is missing"),
    ("int8_cache_attention", "no keys' error", [(" + (tl.exp(2 * of_score) - 1) * v_largest", "")], "keys' error is missing"),
    ("int8_cache_attention", "signed q", [("tl.sum(tl.abs(q))", "tl.abs(tl.sum(q))")], "not with q"),
    ("int8_cache_attention", "single factor", [("tl.exp(2 * of_score)", "tl.exp(of_score)")], "numerator and denominator"),
    ("int8_cache_attention", "linear", [("(tl.exp(2 * of_score) - 1)", "2 * of_score")], "too small"),
    ("int8_cache_attention", "swapped scales", [("tl.load(k_scale_ptr", "tl.load(temporary"), ("tl.load(v_scale_ptr", "tl.load(k_scale_ptr"), ("tl.load(temporary", "tl.load(v_scale_ptr")], "are exchanged"),
]  # fmt: skip
BUGS = [*W8A16, *W4A16, *CACHE]
DIFFERENT = [
    ("int8_linear", [(DOT, 'acc += tl.dot(x, q.to(x.dtype), input_precision="ieee")'), ("acc * scale[None, :]", "scale[None, :] * acc")]),
    ("int8_linear", [("columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)", "columns = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)) % N"),
      ("(columns[None, :] < N) & (k[:, None] < K)", "k[:, None] < K"),
      ("    inside = (rows[:, None] < M) & (columns[None, :] < N)\n", "    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)\n    inside = (rows[:, None] < M) & (columns[None, :] < N)\n")]),
    ("int4_linear", [("bytes & 15", "bytes % 16"), ("bytes >> 4", "bytes // 16")]),
    ("int4_linear", [("        product = tl.dot(odd, upper, product, input_precision=\"ieee\")\n        acc += product * scale[None, :]\n",
      "        acc += product * scale[None, :]\n        acc += tl.dot(odd, upper, input_precision=\"ieee\") * scale[None, :]\n")]),
    ("int8_cache_attention", [("(o / total)", "(o * (1 / total))"), ("v_step / 2", "0.5 * v_step")]),
    ("int8_cache_attention", [("(tl.exp(2 * of_score) - 1)", "(tl.exp2(2.8853900817779268 * of_score) - 1)"), ("k_step / 2", "0.5 * k_step")]),
]  # fmt: skip
