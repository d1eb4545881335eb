"""Answers to lab 05."""

from tests.unseen.answers import TRITON, Answer

SOFTCAP = TRITON + '''
def softcap_in_pytorch(q, k, v, o, lse, do, scale, cap):
    t = torch.tanh(scale * q @ k.mT / cap)
    p = torch.exp(cap * t - lse[..., None])
    dv = p.mT @ do
    dp = do @ v.mT
    delta = (o * do).sum(-1, keepdim=True)
    ds = p * (dp - delta) * (1 - t * t)
    return scale * ds @ k, scale * ds.mT @ q, dv


@triton.jit
def softcap_query_gradient_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
                                  Lq, Lk, scale, cap, D: tl.constexpr,
                                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    head, first = tl.program_id(1), tl.program_id(0) * BLOCK_M
    rows, d = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    real = rows < Lq
    tile = (head * Lq + rows)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + tile, mask=real[:, None], other=0.0)
    do = tl.load(do_ptr + tile, mask=real[:, None], other=0.0)
    lse = tl.load(lse_ptr + head * Lq + rows, mask=real, other=0.0)
    delta = tl.load(delta_ptr + head * Lq + rows, mask=real, other=0.0)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, Lk, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        keys = (head * Lk + columns)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + keys, mask=columns[:, None] < Lk, other=0.0)
        v = tl.load(v_ptr + keys, mask=columns[:, None] < Lk, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        t = 2 * tl.sigmoid(2 * s / cap) - 1
        p = tl.exp(cap * t - lse[:, None])
        p = tl.where(columns[None, :] < Lk, p, 0.0)
        dp = tl.dot(do, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None]) * (1 - t * t)
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    tl.store(dq_ptr + tile, (scale * dq).to(dq_ptr.dtype.element_ty), mask=real[:, None])


def softcap_gradients(q, k, v, o, lse, do, scale, cap, BLOCK_M=64, BLOCK_N=64):
    wide = [x.double() for x in (q, k, v, o, lse, do)]
    dq, dk, dv = (x.to(q.dtype) for x in softcap_in_pytorch(*wide, scale, cap))
    if q.dtype != torch.float64:
        (B, H, Lq, D), Lk = q.shape, k.shape[2]
        delta = (o.float() * do.float()).sum(-1)
        dq = torch.empty_like(q)
        grid = (triton.cdiv(Lq, BLOCK_M), B * H)
        softcap_query_gradient_kernel[grid](q, k, v, do, lse, delta, dq, Lq, Lk, scale, cap, D=D,
                                            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return dq, dk, dv
'''

KEPT = "ctx.save_for_backward(q, k, v, o, lse)"
SAVED = "q, k, v, o, lse = ctx.saved_tensors"
P = "torch.exp(scores(q, k, scale, causal) - lse[..., None])"
DQ_STORE = "(scale * dq).to(dq_ptr.dtype.element_ty)"
CAUSAL_SEEN = "seen & (columns[None, :] <= rows[:, None] + Lk - Lq)"
BEGIN = "tl.maximum(first - (Lk - Lq), 0) // BLOCK_M * BLOCK_M"
COUNT = "max(key // BLOCK_N + 1, 0)"

ANSWERS = [
    Answer("attention_function", "P kept", [(KEPT, "ctx.save_for_backward(q, k, v, o, torch.exp(s - lse[..., None]))"), (SAVED, "q, k, v, o, p = ctx.saved_tensors"), ("            p = " + P + "\n", "")], r"P or the scores are saved; lse is enough to"),
    Answer("attention_function", "the scores kept", [(KEPT, "ctx.save_for_backward(q, k, v, o, lse, s)"), (SAVED, "q, k, v, o, lse, s = ctx.saved_tensors"), (P, "torch.exp(s - lse[..., None])")], r"P or the scores are saved; lse is enough to"),
    Answer("attention_function", "o and lse swapped", [(SAVED, "q, k, v, lse, o = ctx.saved_tensors")], r"the shapes do not match, here \(1, 2, 5, 7\) and"),
    Answer("attention_function", "dV without the transposition", [("p.mT @ do", "p @ do")], r"the inner sizes of a product differ, here \(2,"),
    Answer("attention_function", "delta along the queries", [("(o * do).sum(-1, keepdim=True)", "(o * do).sum(-2, keepdim=True)")], r"the shapes do not match, here \(1, 2, 5, 7\) and"),
    Answer("attention_function", "delta without keepdim", [("sum(-1, keepdim=True)", "sum(-1)")], r"one number per row is combined with a matrix, here \(1, 2,"),
    Answer("attention_function", "plus delta", [("dp - delta", "dp + delta")], "delta is added; subtract it"),
    Answer("attention_function", "delta forgotten", [("p * (dp - delta)", "p * dp")], r"delta is left out: dS = P ∘ \(dP − delta\)"),
    Answer("attention_function", "dQ unscaled", [("dq = scale * ds @ k", "dq = ds @ k")], "the scale is missing: the scores are scale ·"),
    Answer("attention_function", "dK unscaled", [("dk = scale * ds.mT @ q", "dk = ds.mT @ q")], "the scale is missing: the scores are scale ·"),
    Answer("attention_function", "scale twice", [("ds = p *", "ds = scale * p *")], "the scale is applied twice to dQ"),
    Answer("attention_function", "dQ and dK swapped in the return's place", [("return dq, dk, dv", "return dk, dq, dv")], "backward returns one gradient for each"),
    Answer("attention_function", "P without causality", [(P, "torch.exp(scores(q, k, scale, False) - lse[..., None])")], "the causal mask is missing where you"),
    Answer("attention_function", "softmax again in place of lse", [(P, "torch.softmax(scores(q, k, scale, causal), -1)")], None),
    Answer("attention_function", "kept on ctx by attributes", [(KEPT, "ctx.kept = (q, k, v, o, lse)"), (SAVED, "q, k, v, o, lse = ctx.kept")], r"ctx\.save_for_backward\(…\) keeps inputs and"),
    Answer("attention_function", "delta from P and dP", [("(o * do).sum(-1, keepdim=True)", "(p * dp).sum(-1, keepdim=True)")], None),
    Answer("attention_function", "matmul and transpose", [("p.mT @ do", "torch.matmul(p.transpose(-1, -2), do)")], None),
    Answer("query_gradient", "scale forgotten at the end", [(DQ_STORE, "dq.to(dq_ptr.dtype.element_ty)")], "the scale is missing: the scores are scale ·"),
    Answer("query_gradient", "scale forgotten in the scores", [('input_precision="ieee") * scale', 'input_precision="ieee")')], "the scale is missing in the scores"),
    Answer("query_gradient", "scale in ds and in the store", [("ds = p * (dp", "ds = scale * p * (dp")], "the scale is applied twice to dQ"),
    Answer("query_gradient", "lse converted only", [("tl.exp2((s - lse[:, None]) * LOG2E)", "tl.exp2(s - lse[:, None] * LOG2E)")], r"the scores are not multiplied by log2\(e\): exp2\(\(s −"),
    Answer("query_gradient", "exp2 without LOG2E", [("tl.exp2((s - lse[:, None]) * LOG2E)", "tl.exp2(s - lse[:, None])")], r"exp2 is used without log2\(e\): exp\(x\) = exp2\(x ·"),
    Answer("query_gradient", "keys past the end not masked", [("seen = columns[None, :] < Lk", "seen = columns[None, :] >= 0")], "keys past the end are not masked: k is 0"),
    Answer("query_gradient", "causal mask without Lk − Lq", [(CAUSAL_SEEN, "seen & (columns[None, :] <= rows[:, None])")], "the diagonal starts from the top left corner:"),
    Answer("query_gradient", "causal <", [(CAUSAL_SEEN, "seen & (columns[None, :] < rows[:, None] + Lk - Lq)")], "the diagonal is off by one: query i does see"),
    Answer("query_gradient", "delta as a row", [("delta[:, None]", "delta[None, :]")], "a tile has one delta per query, so delta is a"),
    Answer("query_gradient", "delta forgotten", [("p * (dp - delta[:, None])", "p * dp")], r"delta is left out: dS = P ∘ \(dP − delta\)"),
    Answer("query_gradient", "K for V", [("tl.dot(do, tl.trans(v)", "tl.dot(do, tl.trans(k)")], "dP is computed as dO·Kᵀ; it is dO·Vᵀ"),
    Answer("query_gradient", "V for K at the end", [("tl.dot(ds.to(k.dtype), k, dq", "tl.dot(ds.to(k.dtype), v, dq")], "dS is multiplied by V; dQ is scale · dS·K"),
    Answer("query_gradient", "dq overwritten", [(", k, dq, input", ", k, input")], "only the last tile of keys contributes; add"),
    Answer("query_gradient", "causal, visits all tiles", [("end = tl.minimum(Lk, first + BLOCK_M + Lk - Lq)", "end = Lk")], "key tiles after the diagonal are computed"),
    Answer("query_gradient", "end one tile short", [("first + BLOCK_M + Lk - Lq)", "first + Lk - Lq)")], "the loop ends before the diagonal: the tile's"),
    Answer("query_gradient", "store unmasked", [(DQ_STORE + ", mask=real[:, None])", DQ_STORE + ")")], r"the tl\.store on that line has no mask, or an"),
    Answer("query_gradient", "exp", [("tl.exp2((s - lse[:, None]) * LOG2E)", "tl.exp(s - lse[:, None])")], None),
    Answer("query_gradient", "scale in ds only", [("ds = p * (dp", "ds = scale * p * (dp"), (DQ_STORE, "dq.to(dq_ptr.dtype.element_ty)")], None),
    Answer("key_value_gradients", "both scaled", [("dv.to(dv_ptr", "(scale * dv).to(dv_ptr")], "dV takes no scale: V is multiplied by P, not by the scores"),
    Answer("key_value_gradients", "neither scaled", [("(scale * dk)", "dk")], "the scale is missing: the scores are scale ·"),
    Answer("key_value_gradients", "dv from ds", [('        dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="ieee")\n', ""), ("        dk = tl.dot(", '        dv = tl.dot(tl.trans(ds.to(do.dtype)), do, dv, input_precision="ieee")\n        dk = tl.dot(')], "dV is computed from dS; it is Pᵀ·dO"),
    Answer("key_value_gradients", "dk with do", [("tl.dot(tl.trans(ds.to(q.dtype)), q, dk", "tl.dot(tl.trans(ds.to(q.dtype)), do, dk")], "dS is multiplied by dO; dK is scale · dSᵀ·Q"),
    Answer("key_value_gradients", "dk from p", [("tl.dot(tl.trans(ds.to(q.dtype))", "tl.dot(tl.trans(p.to(q.dtype))")], "dK is computed from P; compute it from dS"),
    Answer("key_value_gradients", "queries past the end counted", [("(rows[:, None] < Lq) & real[None, :]", "real[None, :] & (rows[:, None] >= 0)"), ("tl.load(do_ptr + queries, mask=rows[:, None] < Lq, other=0.0)", "tl.load(do_ptr + queries, mask=rows[:, None] < Lq, other=1.0)")]),
    Answer("key_value_gradients", "causal: begins at 0", [(BEGIN, "0")], "query tiles before the diagonal are computed"),
    Answer("key_value_gradients", "causal: begins at its own first key", [(BEGIN, "first // BLOCK_M * BLOCK_M")], "the loop's start omits Lk − Lq: the first"),
    Answer("key_value_gradients", "begin + (Lk − Lq)", [(BEGIN, "tl.maximum(first + (Lk - Lq), 0) // BLOCK_M * BLOCK_M")], "Lk − Lq has the wrong sign: query i sees"),
    Answer("key_value_gradients", "begin a tile late", [(BEGIN, "(tl.maximum(first - (Lk - Lq), 0) + BLOCK_M - 1) // BLOCK_M * BLOCK_M")], "the start is rounded up; start at the tile"),
    Answer("key_value_gradients", "begin not on a tile's edge", [(BEGIN, "tl.maximum(first - (Lk - Lq), 0)")], None),
    Answer("key_value_gradients", "mask turned round", [("columns[None, :] <= rows[:, None] + Lk - Lq", "columns[None, :] >= rows[:, None] + Lk - Lq")], "the causal mask is reversed: query i sees"),
    Answer("key_value_gradients", "lse of another head", [("lse_ptr + head * Lq + rows", "lse_ptr + head * Lk + rows")], r"a head's rows of lse start at head \* Lq, not"),
    Answer("key_value_gradients", "dv overwritten", [(", do, dv, input", ", do, input")], "only the last tile of queries contributes; add"),
    Answer("key_value_gradients", "dk stored where dv belongs", [("tl.store(dk_ptr + tile", "tl.store(dv_ptr + tile"), ("tl.store(dv_ptr + tile, dv.to", "tl.store(dk_ptr + tile, dv.to")], "dK and dV are swapped, in the stores or in"),
    Answer("key_value_gradients", "delta forgotten", [("p * (dp - delta[:, None])", "p * dp")], r"delta is left out: dS = P ∘ \(dP − delta\)"),
    Answer("dq_conflicts", "floors the tiles", [("-(-Lq // BLOCK_M), -(-Lk // BLOCK_N)", "Lq // BLOCK_M, Lk // BLOCK_N")], "the last, partly filled query tile needs a"),
    Answer("dq_conflicts", "BLOCK_M and BLOCK_N swapped", [("-(-Lq // BLOCK_M), -(-Lk // BLOCK_N)", "-(-Lq // BLOCK_N), -(-Lk // BLOCK_M)")], "BLOCK_M and BLOCK_N are mixed up: query tiles"),
    Answer("dq_conflicts", "one list entry per key tile", [("[key_tiles] * query_tiles", "[query_tiles] * key_tiles")], "the list has one number per key tile; return"),
    Answer("dq_conflicts", "the first row of the tile", [("min((i + 1) * BLOCK_M, Lq) - 1", "i * BLOCK_M")], "the tile's last query sees more keys than its"),
    Answer("dq_conflicts", "last tile not cut", [("min((i + 1) * BLOCK_M, Lq) - 1", "(i + 1) * BLOCK_M - 1")], "the last query of a partly filled tile is Lq − 1"),
    Answer("dq_conflicts", "Lk − Lq forgotten", [("row + Lk - Lq", "row")], "Lk − Lq is missing: the diagonal ends in the"),
    Answer("dq_conflicts", "Lq − Lk", [("row + Lk - Lq", "row + Lq - Lk")], "Lk − Lq has the wrong sign: query i sees"),
    Answer("dq_conflicts", "full tiles only", [(COUNT, "max((key + 1) // BLOCK_N, 0)")], "a key tile adds even if the last query sees"),
    Answer("dq_conflicts", "no max", [(COUNT, "key // BLOCK_N + 1")], "no program adds to a query tile that sees"),
    Answer("dq_conflicts", "at least one", [(COUNT, "max(key // BLOCK_N + 1, 1)")], "no program adds to a query tile that sees"),
    Answer("dq_conflicts", "last row off by one", [("min((i + 1) * BLOCK_M, Lq) - 1", "min((i + 1) * BLOCK_M, Lq)")], r"query i sees no key after i \+ Lk − Lq"),
    Answer("dq_conflicts", "the total only", [("return [" + COUNT, "return [sum(" + COUNT.replace("key //", "k //") + " for k in last_keys)"), ]),
    Answer("dq_conflicts", "counted one by one", [("[" + COUNT + " for key in last_keys]", "[sum(start <= key for start in range(0, Lk, BLOCK_N)) for key in last_keys]")], None),
    Answer("softcap_gradients", "tanh's derivative forgotten in both", [(" * (1 - t * t)", "")], "the derivative of the tanh is missing: ds'/ds", SOFTCAP),
    Answer("softcap_gradients", "tanh's derivative forgotten in the kernel", [("delta[:, None]) * (1 - t * t)", "delta[:, None])")], "the derivative of the tanh is missing: ds'/ds", SOFTCAP),
    Answer("softcap_gradients", "1 − t", [("(dp - delta) * (1 - t * t)", "(dp - delta) * (1 - t)"), ("delta[:, None]) * (1 - t * t)", "delta[:, None]) * (1 - t)")], r"the square is missing: ds'/ds = 1 − tanh²\(s /", SOFTCAP),
    Answer("softcap_gradients", "divided by cap", [("(dp - delta) * (1 - t * t)", "(dp - delta) * (1 - t * t) / cap"), ("delta[:, None]) * (1 - t * t)", "delta[:, None]) * (1 - t * t) / cap")], r"ds'/ds = 1 − tanh²\(s / cap\) has no factor 1/cap:", SOFTCAP),
    Answer("softcap_gradients", "sigmoid's 2 forgotten", [("2 * tl.sigmoid(2 * s / cap) - 1", "2 * tl.sigmoid(s / cap) - 1")], r"tanh\(x\) = 2 · sigmoid\(2x\) − 1: the 2 in the", SOFTCAP),
    Answer("softcap_gradients", "cap's derivative by s", [("(1 - t * t)\n    return", "(1 - (scale * q @ k.mT) ** 2)\n    return")], source=SOFTCAP),
]
