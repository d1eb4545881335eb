"""Answers to lab 04."""

from tests.unseen.answers import TRITON, Answer

WINDOW = TRITON + '''
@triton.jit
def window_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, H, Lq, Lk, window, scale,
                            stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
                            stride_vb, stride_vh, stride_vn,
                            D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    LOG2E: tl.constexpr = 1.4426950408889634
    first, d, head = tl.program_id(0) * BLOCK_M, tl.arange(0, D), tl.program_id(1)
    rows, b, h = first + tl.arange(0, BLOCK_M), head // H, head % H
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :],
                mask=rows[:, None] < Lq, other=0.0)
    k_head = k_ptr + b * stride_kb + h * stride_kh
    v_head = v_ptr + b * stride_vb + h * stride_vh
    m_i, l_i = tl.full((BLOCK_M,), -float("inf"), tl.float32), tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    last = tl.minimum(first + BLOCK_M, Lq) - 1
    begin = tl.maximum(first + Lk - Lq - window + 1, 0) // BLOCK_N * BLOCK_N
    end = tl.minimum(last + Lk - Lq + 1, Lk)
    for start in range(begin, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_head + columns[:, None] * stride_kn + d[None, :], mask=columns[:, None] < Lk, other=0.0)
        v = tl.load(v_head + columns[:, None] * stride_vn + d[None, :], mask=columns[:, None] < Lk, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2E)
        newest = rows[:, None] + Lk - Lq
        seen = (columns[None, :] <= newest) & (columns[None, :] > newest - window)
        s = tl.where(seen, s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        p = tl.exp2(s - shift[:, None])
        factor = tl.exp2(m_i - shift)
        l_i = l_i * factor + tl.sum(p, axis=1)
        acc = acc * factor[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m_i = m_new
    o_tile = o_ptr + (head * Lq + rows[:, None]) * D + d[None, :]
    l_i = tl.where(l_i == 0.0, 1.0, l_i)
    o = acc / l_i[:, None]
    tl.store(o_tile, o.to(o_ptr.dtype.element_ty), mask=rows[:, None] < Lq)
    tl.store(lse_ptr + head * Lq + rows, (m_i + tl.log2(l_i)) / LOG2E, mask=rows < Lq)


def window_attention(q, k, v, window, scale, BLOCK_M=64, BLOCK_N=64):
    B, H, Lq, D = q.shape
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(Lq, BLOCK_M), B * H)
    window_attention_kernel[grid](q, k, v, o, lse, H, Lq, k.shape[2], window, scale,
                                  *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
                                  D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return o, lse
'''

PLAIN = "(2 * tensor + scores) + 2 * scores + (scores + 2 * tensor)"
TILED = "itemsize * (2 * tensor + L // BLOCK_M * 2 * tensor) + lse"
LOAD_X = 'tl.load(x_row + columns * stride_xn, mask=columns < N, other=-float("inf")).to(tl.float32)'
FIRST_X = "        x = " + LOAD_X + "\n        m_new"
RESCALE = "l_i * tl.exp(m_i - shift) + tl.sum(tl.exp(x - shift))"
SEEN = "columns[None, :] <= rows[:, None] + Lk - Lq"
LSE = "(m_i + tl.log2(l_i)) / LOG2E"
EMPTY = 'shift = torch.where(m == float("-inf"), 0.0, m)'

ANSWERS = [
    Answer("attention_costs", "softmax reads S only", [("+ 2 * scores + (", "+ scores + (")], r"3 × S's size \(B·H·L·L\), not 4: S"),
    Answer("attention_costs", "S alone alive", [("itemsize * 2 * scores", "itemsize * scores")], r"1 × S's size \(B·H·L·L\), not 2: S"),
    Answer("attention_costs", "lse in the dtype of Q", [("lse = 4 * rows", "lse = itemsize * rows")], "some bytes are counted with the wrong itemsize"),
    Answer("attention_costs", "lse not among the bytes moved", [(" + lse\n", "\n")], r"0 × the log-sum-exp \(B·H·L float32\), not 1"),
    Answer("attention_costs", "K and V read once per head", [("L // BLOCK_M * 2 * tensor", "2 * tensor")], r"4 × Q's size \(B·H·L·D\), not 8: Q"),
    Answer("attention_costs", "K only", [("L // BLOCK_M * 2 * tensor", "L // BLOCK_M * tensor")], r"5 × Q's size \(B·H·L·D\), not 8: Q"),
    Answer("attention_costs", "programs L·BLOCK_M", [("L // BLOCK_M", "BLOCK_M")], r"34 × Q's size \(B·H·L·D\), not 8:"),
    Answer("attention_costs", "forgets the heads", [("rows = B * H * L", "rows = B * L")], "count all heads of all batches, B·H·L; H"),
    Answer("attention_costs", "tiled extra is a tile of scores", [("tiled_bytes, lse\n", "tiled_bytes, 4 * BLOCK_M * BLOCK_M\n")]),
    Answer("attention_costs", "elements, not bytes, in plain", [("plain_bytes = itemsize * (", "plain_bytes = (")], "bytes are elements times itemsize"),
    Answer("attention_costs", "D² for L²", [("rows * D, rows * L", "rows * D, rows * D")], r"8 × Q's size \(B·H·L·D\), not 4:"),
    Answer("attention_costs", "summed up", [(PLAIN, "4 * tensor + 4 * scores")], None),
    Answer("merge", "factors swapped", [("torch.exp(m1 - shift), torch.exp(m2 - shift)", "torch.exp(m2 - shift), torch.exp(m1 - shift)")], "the two factors are swapped"),
    Answer("merge", "sign of the exponent", [("torch.exp(m1 - shift), torch.exp(m2 - shift)", "torch.exp(shift - m1), torch.exp(shift - m2)")], "the factors of l are inverted: multiply l1"),
    Answer("merge", "no care for empty parts", [(EMPTY, "shift = m")], r"where both parts are empty, −inf − \(−inf\) is"),
    Answer("merge", "l added without factors", [("factor1 * l1 + factor2 * l2", "l1 + l2")], "l is not rescaled to the common maximum"),
    Answer("merge", "o added without factors", [("factor1[:, None] * o1 + factor2[:, None] * o2", "o1 + o2")], "o is not rescaled to the common maximum"),
    Answer("merge", "o divided by l", [("factor2[:, None] * o2\n", "factor2[:, None] * o2) / (factor1 * l1 + factor2 * l2)[:, None]\n"), ("factor1[:, None] * o1", "(factor1[:, None] * o1")], "o is divided by l; leave it undivided"),
    Answer("merge", "scales o1 in place", [("    return m,", "    o1 *= factor1[:, None]\n    return m,"), ("factor1[:, None] * o1 +", "o1 +")], "an in-place operation, out=o1, or a store"),
    Answer("merge", "a row's factor along columns", [("factor1[:, None] * o1 + factor2[:, None] * o2", "factor1[None, :] * o1 + factor2[None, :] * o2")], r"the shapes do not match, here \(1, 8\) and \(8,"),
    Answer("merge", "the maximum over all rows", [("torch.maximum(m1, m2)\n", "torch.maximum(m1, m2).max().expand_as(m1)\n")], "m is the maximum over all rows; each row has"),
    Answer("merge", "minimum", [("torch.maximum(m1", "torch.minimum(m1")], "m is the smaller maximum, not the larger one"),
    Answer("merge", "returns the shift for m", [("return m,", "return shift,")], "m contains the 0 that you subtract"),
    Answer("merge", "base 2", [("torch.exp(m1 - shift), torch.exp(m2 - shift)", "torch.exp2(m1 - shift), torch.exp2(m2 - shift)")], "the factors are in base 2; use exp, not exp2"),
    Answer("merge", "NaN to zero afterwards", [(EMPTY, "shift = m"), ("torch.exp(m1 - shift), torch.exp(m2 - shift)", "torch.exp(m1 - shift).nan_to_num(0.0), torch.exp(m2 - shift).nan_to_num(0.0)")], None),
    Answer("merge", "softplus-free with stack", [("torch.maximum(m1, m2)\n", "torch.stack([m1, m2]).amax(0)\n")], None),
    Answer("row_softmax", "l not rescaled", [("l_i * tl.exp(m_i - shift)", "l_i")], "l_i is not rescaled when the maximum grows"),
    Answer("row_softmax", "rescaled by the wrong sign", [("tl.exp(m_i - shift)", "tl.exp(shift - m_i)")], "the factor is inverted: its exponent is"),
    Answer("row_softmax", "the block's maximum only", [("tl.maximum(m_i, tl.max(x))", "tl.max(x)")], "the maximum covers only this step; use"),
    Answer("row_softmax", "other=0 in the first reading", [(FIRST_X, FIRST_X.replace('-float("inf")', "0.0"))], "elements past the row's end are loaded as 0, and"),
    Answer("row_softmax", "maximum kept too early", [("        l_i = l_i", "        m_i = m_new\n        l_i = l_i")], "l_i is not rescaled when the maximum grows"),
    Answer("row_softmax", "never keeps the maximum", [("        m_i = m_new\n", "")], "the new maximum is not kept; set m_i = m_new"),
    Answer("row_softmax", "no shift: −inf − (−inf)", [('tl.where(m_new == -float("inf"), 0.0, m_new)', "m_new")], r"−inf − \(−inf\) is NaN in a row that has only"),
    Answer("row_softmax", "no division", [("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)")], "the result is not divided by l_i"),
    Answer("row_softmax", "log-softmax", [("tl.exp(x - m_i) / l_i", "x - m_i - tl.log(l_i)")], "the result is the logarithm of the softmax"),
    Answer("row_softmax", "y at x's stride", [("y_row + columns * stride_yn", "y_row + columns * stride_xn")], "the mask on that line is too wide, or an"),
    Answer("row_softmax", "float16 in the sum", [(FIRST_X, FIRST_X.replace(".to(tl.float32)", ""))], None),
    Answer("row_softmax", "stores unmasked", [("element_ty), mask=columns < N)", "element_ty))")], r"the tl\.store on that line has no mask, or an"),
    Answer("row_softmax", "min for max", [("tl.max(x)", "tl.min(x)")]),
    Answer("row_softmax", "factor by name", [("        l_i = " + RESCALE, "        factor = tl.exp(m_i - shift)\n        p = tl.exp(x - shift)\n        l_i = factor * l_i + tl.sum(p, axis=0)")], None),
    Answer("tile_attention", "scale forgotten", [("(scale * LOG2E)", "LOG2E")], "scale is missing"),
    Answer("tile_attention", "LOG2E forgotten", [("(scale * LOG2E)", "scale")], "exp2 needs scores in base 2: multiply them by"),
    Answer("tile_attention", "exp for exp2", [("p = tl.exp2(", "p = tl.exp("), ("factor = tl.exp2(", "factor = tl.exp(")], "LOG2E is for exp2; with exp, do not multiply"),
    Answer("tile_attention", "maximum along the queries", [("tl.max(s, axis=1)", "tl.max(s, axis=0)")], r"two blocks of different shapes are combined; \[:,"),
    Answer("tile_attention", "sum along the queries", [("tl.sum(p, axis=1)", "tl.sum(p, axis=0)")], r"two blocks of different shapes are combined; \[:,"),
    Answer("tile_attention", "acc not rescaled", [("        acc = acc * factor[:, None]\n", "")], "the accumulator is not rescaled when the"),
    Answer("tile_attention", "l not rescaled", [("l_i * factor + ", "l_i + ")], "l_i is not rescaled when the maximum grows"),
    Answer("tile_attention", "lse in base 2", [(LSE, "m_i + tl.log2(l_i)")], "the log-sum-exp is in base 2: divide it by"),
    Answer("tile_attention", "lse without the maximum", [(LSE, "tl.log(l_i)")], r"m_i is missing: the log-sum-exp is m_i \+ log"),
    Answer("tile_attention", "lse: only the logarithm is converted", [(LSE, "m_i + tl.log(l_i)")], "m_i is in base 2: divide it by LOG2E too"),
    Answer("tile_attention", "O not divided", [("acc / l_i[:, None]", "acc")], "O is not divided by l_i"),
    Answer("tile_attention", "K's tile for V", [("tl.load(v_head + columns[:, None] * stride_vn", "tl.load(k_head + columns[:, None] * stride_kn")], "V is never loaded; its tile is read through"),
    Answer("tile_attention", "V through K's stride", [("v_head + columns[:, None] * stride_vn", "v_head + columns[:, None] * stride_kn")], r"the tl\.load on that line has no mask, or an"),
    Answer("tile_attention", "divides in each step", [("        m_i = m_new\n", "        m_i = m_new\n        acc = acc / l_i[:, None]\n"), ("acc / l_i[:, None]\n    tl", "acc\n    tl")], "acc is divided by l_i in each step; divide"),
    Answer("tile_attention", "adds acc twice", [("acc = tl.dot(p.to", "acc += tl.dot(p.to")], r"acc is added twice: tl\.dot\(p, v, acc\) already"),
    Answer("tile_attention", "natural logarithm", [(LSE, "m_i / LOG2E + tl.log(l_i)")], None),
    Answer("tile_attention", "natural base throughout", [("(scale * LOG2E)", "scale"), ("p = tl.exp2(", "p = tl.exp("), ("factor = tl.exp2(", "factor = tl.exp("), (LSE, "m_i + tl.log(l_i)")], None),
    Answer("causal_attention", "< for <=", [(SEEN, "columns[None, :] < rows[:, None] + Lk - Lq")], "the diagonal is one too far left: a query"),
    Answer("causal_attention", "Lk − Lq forgotten in the mask", [(SEEN, "columns[None, :] <= rows[:, None]")], "the diagonal starts from the top left; start"),
    Answer("causal_attention", "Lq − Lk", [(SEEN, "columns[None, :] <= rows[:, None] + Lq - Lk")], "the mask has Lk − Lq with the wrong sign:"),
    Answer("causal_attention", "the mask turned round", [(SEEN, "columns[None, :] >= rows[:, None] + Lk - Lq")], "the mask is reversed: a query sees the"),
    Answer("causal_attention", "visits every tile", [("tl.minimum(first + BLOCK_M + Lk - Lq, Lk)", "Lk")], "the loop continues to Lk; every tile after"),
    Answer("causal_attention", "ends a tile early", [("tl.minimum(first + BLOCK_M + Lk - Lq, Lk)", "tl.minimum(first + Lk - Lq, Lk)")], r"its end omits BLOCK_M: `end` is first \+"),
    Answer("causal_attention", "end not kept to Lk", [("tl.minimum(first + BLOCK_M + Lk - Lq, Lk)", "first + BLOCK_M + Lk - Lq")], None),
    Answer("causal_attention", "0 for −inf", [('rows[:, None] + Lk - Lq, s, -float("inf"))', "rows[:, None] + Lk - Lq, s, 0.0)")], "the scores of unseen keys are set to 0; set"),
    Answer("causal_attention", "no care for an empty row", [('shift = tl.where(m_new == -float("inf"), 0.0, m_new)', "shift = m_new")], r"−inf − \(−inf\) is NaN; subtract 0 from the"),
    Answer("causal_attention", "0 / 0 of a row without keys", [("    l_i = tl.where(l_i == 0.0, 1.0, l_i)\n", "")], "rows that see no key compute 0/0; divide by 1"),
    Answer("causal_attention", "lse 0 where no key is seen", [("tl.store(lse_ptr + head * Lq + rows, " + LSE, 'tl.store(lse_ptr + head * Lq + rows, tl.where(m_i == -float("inf"), 0.0, ' + LSE + ")")], "a row that sees no key has log-sum-exp −inf:"),
    Answer("causal_attention", "stores O unmasked", [("element_ty), mask=rows[:, None] < Lq)", "element_ty))")], r"the tl\.store on that line has no mask, or an"),
    Answer("causal_attention", "full a tile too late", [("full = first + 1 + Lk - Lq", "full = first + BLOCK_M + Lk - Lq")], "nothing is masked"),
    Answer("causal_attention", "masks every tile", [("if start + BLOCK_N > full:", "if start >= 0:")], None),
    Answer("window_attention", "window + 1 keys", [("> newest - window", ">= newest - window")], "the window is one too long: a query sees", WINDOW),
    Answer("window_attention", "window − 1 keys", [("> newest - window", "> newest - window + 1")], "the window is one too short: a query sees", WINDOW),
    Answer("window_attention", "begins at 0", [("tl.maximum(first + Lk - Lq - window + 1, 0) // BLOCK_N * BLOCK_N", "0")], "the loop starts at key 0; every tile before", WINDOW),
    Answer("window_attention", "begin not on a tile", [("tl.maximum(first + Lk - Lq - window + 1, 0) // BLOCK_N * BLOCK_N", "tl.maximum(first + Lk - Lq - window + 1, 0)")], None, WINDOW),
    Answer("window_attention", "begin negative", [("tl.maximum(first + Lk - Lq - window + 1, 0) // BLOCK_N * BLOCK_N", "(first + Lk - Lq - window + 1) // BLOCK_N * BLOCK_N")], "the mask on that line is too wide, or an", WINDOW),
    Answer("window_attention", "begin of the last row", [("tl.maximum(first + Lk - Lq - window + 1, 0)", "tl.maximum(last + Lk - Lq - window + 1, 0)")], "the loop starts too late; it also needs tiles", WINDOW),
    Answer("window_attention", "no second edge", [(" & (columns[None, :] > newest - window)", "")], "the window is not applied", WINDOW),
]
