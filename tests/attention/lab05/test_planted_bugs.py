"""Each check of lab 05 names the mistakes that people make, and accepts right answers written differently."""

from labs_helpers.attention.lab05 import checks as check
from labs_helpers.attention.lab05 import exercises
from tests.attention.lab05.exercises.ex5_softcap_gradients import softcap_gradients
from tests.planted import PlantedBugs

SAVE = "ctx.save_for_backward(q, k, v, o, lse)"
RECOMPUTE = "p = torch.exp(scores(q, k, scale, causal) - lse[..., None])"
EXP2 = "p = tl.exp2((s - lse[:, None]) * LOG2E)"
MASK = "p = tl.where(seen, p, 0.0)"
DS = "ds = p * (dp - delta[:, None])"
DQ = 'dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")'
DK = 'dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk, input_precision="ieee")'
DV = 'dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="ieee")'
STORE_DQ = "(scale * dq).to(dq_ptr.dtype.element_ty)"
STORE_DK = "(scale * dk).to(dk_ptr.dtype.element_ty)"
DIAGONAL = "columns[None, :] <= rows[:, None] + Lk - Lq"
END = "end = tl.minimum(Lk, first + BLOCK_M + Lk - Lq)"
BEGIN = "begin = tl.maximum(first - (Lk - Lq), 0) // BLOCK_M * BLOCK_M"
DIAGONAL_TURNED = DIAGONAL.replace("Lk - Lq", "Lq - Lk")
KEYS = "keys = (head * Lk + columns)[:, None] * D + d[None, :]"
KEYS_AT_LQ, KEYS_AT_0 = (KEYS[7:].replace("head * Lk + ", place) for place in ("head * Lq + ", ""))
QUERIES = "queries = (head * Lq + rows)[:, None] * D + d[None, :]"
QUERIES_AT_LK, QUERIES_AT_0 = (QUERIES[10:].replace("head * Lq + ", place) for place in ("head * Lk + ", ""))
LOAD_K, LOAD_V = (f"{x} = tl.load({x}_ptr + keys, mask=columns[:, None] < Lk, other=0.0)" for x in ("k", "v"))
LOAD_Q, LOAD_DO = (f"{x} = tl.load({x}_ptr + queries, mask=rows[:, None] < Lq, other=0.0)" for x in ("q", "do"))
LOAD_LSE, LOAD_DELTA = (
    f"{x} = tl.load({x}_ptr + head * Lq + rows, mask=rows < Lq, other=0.0)" for x in ("lse", "delta")
)
SLOPE = "* (1.0 - bent * bent)"

BUGS = [
    # attention_function
    ("attention_function", "delta left out", [("(dp - delta)", "dp")], "delta is left out"),
    (
        "attention_function",
        "delta after the product",
        [("p * (dp - delta)", "p * dp - delta")],
        "subtracted after the product",
    ),
    ("attention_function", "dQ unscaled", [("dq = scale * ds @ k", "dq = ds @ k")], "the scale is missing: .* dQ"),
    (
        "attention_function",
        "dK unscaled",
        [("dk = scale * ds.mT @ q", "dk = ds.mT @ q")],
        "the scale is missing: .* dK",
    ),
    (
        "attention_function",
        "scale twice",
        [("dk = scale * ds.mT @ q", "dk = scale**2 * ds.mT @ q")],
        "scale is applied twice to dK",
    ),
    (
        "attention_function",
        "scale twice in the scores",
        [(RECOMPUTE, RECOMPUTE.replace("scores(", "scale * scores("))],
        "scale is applied twice in the scores",
    ),
    (
        "attention_function",
        "P not transposed",
        [("dv = p.mT @ do", "dv = (p if p.shape[-1] == p.shape[-2] else p.mT) @ do")],
        "P is not transposed",
    ),
    (
        "attention_function",
        "dV from dS",
        [("dv = p.mT @ do", ""), ("dq = scale", "dv = ds.mT @ do\n            dq = scale")],
        "dV is made of dS",
    ),
    (
        "attention_function",
        "dS not transposed",
        [("dk = scale * ds.mT", "dk = scale * (ds if ds.shape[-1] == ds.shape[-2] else ds.mT)")],
        "dS is not transposed",
    ),
    (
        "attention_function",
        "mask forgotten in the backward",
        [(RECOMPUTE, RECOMPUTE.replace("causal", "False"))],
        "causal mask is missing",
    ),
    (
        "attention_function",
        "lse forgotten",
        [(RECOMPUTE, RECOMPUTE.replace(" - lse[..., None]", ""))],
        "lse is missing",
    ),
    (
        "attention_function",
        "P saved",
        [
            (SAVE, "ctx.save_for_backward(q, k, v, o, lse, torch.exp(s))"),
            ("q, k, v, o, lse = ctx", "q, k, v, o, lse, _ = ctx"),
        ],
        "P or the scores",
    ),
    (
        "attention_function",
        "P kept on ctx",
        [(SAVE, SAVE + "\n            ctx.p = torch.exp(s - lse[..., None])")],
        "P or the scores",
    ),
    (
        "attention_function",
        "no autograd.Function",
        [("return AttentionFunction.apply(q, k, v)", "return torch.softmax(scores(q, k, scale, causal), -1) @ v")],
        "never called",
    ),
    # query_gradient
    ("query_gradient", "dQ unscaled", [(STORE_DQ, STORE_DQ.replace("scale * ", ""))], "the scale is missing: .* dQ"),
    ("query_gradient", "scale twice", [(DS, DS + " * scale")], "scale is applied twice"),
    ("query_gradient", "delta left out", [("(dp - delta[:, None])", "dp")], "delta is left out"),
    ("query_gradient", "lse as base 2", [(EXP2, "p = tl.exp2(s * LOG2E - lse[:, None])")], "taken as base 2"),
    ("query_gradient", "no log2(e)", [(EXP2, "p = tl.exp2(s - lse[:, None])")], "exp2 without log2"),
    (
        "query_gradient",
        "no scale in the scores",
        [(" * scale\n        p", "\n        p")],
        "scale is missing in the scores",
    ),
    ("query_gradient", "dQ from P", [("ds.to(k.dtype)", "p.to(k.dtype)")], "dQ is made of P"),
    (
        "query_gradient",
        "accumulator overwritten",
        [("k, dq, input_precision", "k, input_precision")],
        "dQ has to be added up",
    ),
    ("query_gradient", "diagonal one short", [(DIAGONAL, DIAGONAL.replace("<=", "<"))], "query i does see key i"),
    ("query_gradient", "diagonal one long", [(DIAGONAL, DIAGONAL + " + 1")], "query i does not see key"),
    (
        "query_gradient",
        "top left corner",
        [(DIAGONAL, "columns[None, :] <= rows[:, None]"), (END, "end = tl.minimum(Lk, first + BLOCK_M)")],
        "top left corner",
    ),
    ("query_gradient", "no causal mask", [("seen = seen & (", "seen = seen | (")], "causal mask|are off"),
    ("query_gradient", "no keys skipped", [(END, "end = Lk")], "behind the diagonal are computed"),
    (
        "query_gradient",
        "the diagonal skipped",
        [(END, "end = tl.minimum(Lk, first + Lk - Lq)")],
        "loop ends before the diagonal|tiles on the diagonal are skipped",
    ),
    (
        "query_gradient",
        "keys past the end",
        [("seen = columns[None, :] < Lk", "seen = columns[None, :] >= 0")],
        "keys past the end are not masked",
    ),
    (
        "query_gradient",
        "−inf instead of 0",
        [(EXP2, ""), (MASK, "p = tl.exp2((tl.where(seen, s, -float('inf')) - lse[:, None]) * LOG2E)")],
        "sees no key has lse",
    ),
    (
        "query_gradient",
        "K not masked",
        [("k = tl.load(k_ptr + keys, mask=columns[:, None] < Lk, other=0.0)", "k = tl.load(k_ptr + keys)")],
        "load outside k_ptr",
    ),
    (
        "query_gradient",
        "Q in the loop",
        [
            (
                "        s = tl.dot(",
                "        q = tl.load(q_ptr + tile, mask=real[:, None], other=0.0)\n        s = tl.dot(",
            )
        ],
        "belongs to one program",
    ),
    ("query_gradient", "K without other", [(LOAD_K, LOAD_K.replace(", other=0.0", ""))], "0 · NaN .* load of k other"),
    ("query_gradient", "V without other", [(LOAD_V, LOAD_V.replace(", other=0.0", ""))], "0 · NaN .* load of v other"),
    (
        "query_gradient",
        "neither with other, nor keys masked",
        [
            (LOAD_K, LOAD_K.replace(", other=0.0", "")),
            (LOAD_V, LOAD_V.replace(", other=0.0", "")),
            ("seen = columns[None, :] < Lk", "seen = columns[None, :] >= 0"),
        ],
        "0 · NaN .* loads of k, v other",
    ),
    ("query_gradient", "P masked by a product", [(MASK, "p *= seen")], r"tl.where, for ∞ · 0"),
    ("query_gradient", "delta as a row", [("delta[:, None]", "delta[None, :]")], r"delta\[:, None\], not"),
    ("query_gradient", "lse as a row", [("lse[:, None]", "lse[None, :]")], r"lse\[:, None\], not"),
    (
        "query_gradient",
        "lse and delta as rows",
        [("lse[:, None]", "lse[None, :]"), ("delta[:, None]", "delta[None, :]")],
        "one lse and one delta",
    ),
    ("query_gradient", "Lk − Lq turned in the mask", [(DIAGONAL, DIAGONAL_TURNED)], "sign of Lk − Lq is turned"),
    (
        "query_gradient",
        "Lk − Lq turned in the end",
        [(END, END.replace("Lk - Lq", "Lq - Lk"))],
        "sign of Lk − Lq is turned",
    ),
    (
        "query_gradient",
        "Lk − Lq turned",
        [(DIAGONAL, DIAGONAL_TURNED), (END, END.replace("Lk - Lq", "Lq - Lk"))],
        "sign of Lk − Lq is turned",
    ),
    (
        "query_gradient",
        "end without Lk − Lq",
        [(END, "end = tl.minimum(Lk, first + BLOCK_M)")],
        "loop's end forgets Lk − Lq",
    ),
    ("query_gradient", "mask turned round", [(DIAGONAL, DIAGONAL.replace("<=", ">="))], "mask is turned round"),
    ("query_gradient", "mask inverted", [(DIAGONAL, DIAGONAL.replace("<=", ">"))], "mask is turned round.* no others"),
    ("query_gradient", "keys at queries' places", [(KEYS, KEYS.replace("Lk", "Lq"))], "load outside k_ptr"),
    (
        "query_gradient",
        "values at queries' places",
        [(LOAD_V, LOAD_V.replace("keys", KEYS_AT_LQ))],
        "load outside v_ptr",
    ),
    (
        "query_gradient",
        "the head forgotten at V",
        [(LOAD_V, LOAD_V.replace("keys", KEYS_AT_0))],
        r"rows of v start at head \* Lk, not at 0",
    ),
    ("query_gradient", "TF32", [(DQ, "dq = tl.dot(ds.to(k.dtype), k, dq)")], "TF32"),
    # key_value_gradients
    (
        "key_value_gradients",
        "dK unscaled",
        [(STORE_DK, STORE_DK.replace("scale * ", ""))],
        "the scale is missing: .* dK",
    ),
    ("key_value_gradients", "dV scaled", [("dv.to(dv_ptr", "(scale * dv).to(dv_ptr")], "dV takes no scale"),
    (
        "key_value_gradients",
        "dV from dS",
        [(DV + "\n", "\n"), (DK, DK + "\n        " + DV.replace("p.to", "ds.to"))],
        "dV is made of dS",
    ),
    (
        "key_value_gradients",
        "P not transposed",
        [(DV, DV.replace("tl.trans(p.to(do.dtype))", "p.to(do.dtype)"))],
        "P is not transposed",
    ),
    (
        "key_value_gradients",
        "dS not transposed",
        [(DK, DK.replace("tl.trans(ds.to(q.dtype))", "ds.to(q.dtype)"))],
        "are off|dS is not transposed",
    ),
    ("key_value_gradients", "delta left out", [("(dp - delta[:, None])", "dp")], "delta is left out"),
    ("key_value_gradients", "delta added", [("(dp - delta", "(dp + delta")], "delta is added"),
    ("key_value_gradients", "lse as base 2", [(EXP2, "p = tl.exp2(s * LOG2E - lse[:, None])")], "taken as base 2"),
    ("key_value_gradients", "starts one tile late", [(BEGIN, BEGIN + " + BLOCK_M")], "tiles on the diagonal are skip"),
    ("key_value_gradients", "starts at the first query", [(BEGIN, "begin = 0")], "before the diagonal are computed"),
    ("key_value_gradients", "diagonal one short", [(DIAGONAL, DIAGONAL.replace("<=", "<"))], "query i does see key i"),
    ("key_value_gradients", "diagonal one long", [(DIAGONAL, DIAGONAL + " + 1")], "query i does not see key"),
    (
        "key_value_gradients",
        "padded queries",
        [
            ("(rows[:, None] < Lq) & real", "real"),
            (
                "lse = tl.load(lse_ptr + head * Lq + rows, mask=rows < Lq, other=0.0)",
                "lse = tl.load(lse_ptr + head * Lq + rows, mask=rows < Lq)",
            ),
        ],
        "queries past the end are not masked",
    ),
    (
        "key_value_gradients",
        "delta not masked",
        [
            (
                "delta = tl.load(delta_ptr + head * Lq + rows, mask=rows < Lq, other=0.0)",
                "delta = tl.load(delta_ptr + head * Lq + rows)",
            )
        ],
        "load outside delta_ptr",
    ),
    (
        "key_value_gradients",
        "−inf instead of 0",
        [(EXP2, ""), (MASK, "p = tl.exp2((tl.where(seen, s, -float('inf')) - lse[:, None]) * LOG2E)")],
        "sees no key has lse",
    ),
    (
        "key_value_gradients",
        "K's place is forgotten",
        [("dk, input_precision", "input_precision")],
        "dK has to be added up|dk",
    ),
    (
        "key_value_gradients",
        "two writers",
        [("grid = (triton.cdiv(Lk, BLOCK_N), B * H)", "grid = (triton.cdiv(Lk, BLOCK_N), B * H, 2)")],
        "by 2 programs",
    ),
    (
        "key_value_gradients",
        "stored in the loop",
        [(DK, DK + "\n        tl.store(dv_ptr + tile, dv.to(dv_ptr.dtype.element_ty), mask=real[:, None])")],
        "goes through memory",
    ),
    (
        "key_value_gradients",
        "float16 accumulator",
        [
            ("dv = tl.zeros((BLOCK_N, D), dtype=tl.float32)", "dv = tl.zeros((BLOCK_N, D), dtype=tl.float16)"),
            (DV, "dv += tl.dot(tl.trans(p.to(do.dtype)), do)"),
        ],
        "changes its dtype|are off",
    ),
    ("key_value_gradients", "Q without other", [(LOAD_Q, LOAD_Q.replace(", other=0.0", ""))], "0 · NaN .* of q other"),
    (
        "key_value_gradients",
        "dO without other",
        [(LOAD_DO, LOAD_DO.replace(", other=0.0", ""))],
        "0 · NaN .* of do other",
    ),
    (
        "key_value_gradients",
        "delta without other",
        [(LOAD_DELTA, LOAD_DELTA.replace(", other=0.0", ""))],
        "0 · NaN .* of delta other",
    ),
    (
        "key_value_gradients",
        "dO, lse and delta without other",
        [(load, load.replace(", other=0.0", "")) for load in (LOAD_DO, LOAD_LSE, LOAD_DELTA)],
        "0 · NaN .* loads of do, delta other",
    ),
    (
        "key_value_gradients",
        "starts without Lk − Lq",
        [(BEGIN, "begin = first // BLOCK_M * BLOCK_M")],
        "loop's start forgets Lk − Lq",
    ),
    ("key_value_gradients", "Lk − Lq turned in the mask", [(DIAGONAL, DIAGONAL_TURNED)], "sign of Lk − Lq is turned"),
    (
        "key_value_gradients",
        "Lk − Lq turned in the start",
        [(BEGIN, BEGIN.replace("- (Lk", "+ (Lk"))],
        "sign of Lk − Lq is turned",
    ),
    (
        "key_value_gradients",
        "Lk − Lq turned",
        [(DIAGONAL, DIAGONAL_TURNED), (BEGIN, BEGIN.replace("- (Lk", "+ (Lk"))],
        "sign of Lk − Lq is turned",
    ),
    ("key_value_gradients", "mask turned round", [(DIAGONAL, DIAGONAL.replace("<=", ">="))], "mask is turned round"),
    ("key_value_gradients", "mask inverted", [(DIAGONAL, DIAGONAL.replace("<=", ">"))], "turned round.* no others"),
    (
        "key_value_gradients",
        "outputs exchanged",
        [
            ("tl.store(dk_ptr", "tl.store(there"),
            ("tl.store(dv_ptr", "tl.store(dk_ptr"),
            ("tl.store(there", "tl.store(dv_ptr"),
        ],
        "stored into each other",
    ),
    ("key_value_gradients", "delta as a row", [("delta[:, None]", "delta[None, :]")], r"delta\[:, None\], not"),
    ("key_value_gradients", "lse as a row", [("lse[:, None]", "lse[None, :]")], r"lse\[:, None\], not"),
    (
        "key_value_gradients",
        "queries at keys' places",
        [(QUERIES, QUERIES.replace("Lq", "Lk"))],
        r"rows of q and do start at head \* Lq, not at head \* Lk",
    ),
    (
        "key_value_gradients",
        "all of the queries at keys' places",
        [(QUERIES, QUERIES.replace("Lq", "Lk")), ("head * Lq + rows, mask", "head * Lk + rows, mask")],
        r"rows of q, do and lse start at head \* Lq, not at head \* Lk",
    ),
    *(
        (
            "key_value_gradients",
            f"{name} at keys' places",
            [(load, load.replace("queries", QUERIES_AT_LK).replace("head * Lq", "head * Lk"))],
            rf"rows of {name} start at head \* Lq, not at head \* Lk",
        )
        for name, load in (("q", LOAD_Q), ("do", LOAD_DO), ("lse", LOAD_LSE), ("delta", LOAD_DELTA))
    ),
    (
        "key_value_gradients",
        "the head forgotten at dO",
        [(LOAD_DO, LOAD_DO.replace("queries", QUERIES_AT_0))],
        r"rows of do start at head \* Lq, not at 0",
    ),
    # dq_conflicts
    ("dq_conflicts", "last key tile forgotten", [("-(-Lk // BLOCK_N)", "Lk // BLOCK_N")], "partly filled"),
    (
        "dq_conflicts",
        "query tiles counted",
        [("[key_tiles] * query_tiles", "[query_tiles] * query_tiles")],
        "the programs are the key tiles",
    ),
    ("dq_conflicts", "causal ignored", [("    if not causal:\n        return", "    return")], "before the diagonal"),
    (
        "dq_conflicts",
        "first row of the tile",
        [("min((i + 1) * BLOCK_M, Lq) - 1", "i * BLOCK_M")],
        "sees more keys than its first",
    ),
    ("dq_conflicts", "top left corner", [("row + Lk - Lq", "row")], "Lk − Lq is missing"),
    ("dq_conflicts", "one too few", [("key // BLOCK_N + 1", "key // BLOCK_N")], "last key seen is forgotten"),
    (
        "dq_conflicts",
        "tile numbers",
        [("[max(key // BLOCK_N + 1, 0) for key in last_keys]", "[i + 1 for i in range(query_tiles)]")],
        "are mixed up",
    ),
    (
        "dq_conflicts",
        "blind tiles",
        [("max(key // BLOCK_N + 1, 0)", "max(key, 0) // BLOCK_N + 1")],
        "added to by no program",
    ),
    ("dq_conflicts", "floor", [("-(-Lq // BLOCK_M)", "Lq // BLOCK_M")], "one a query tile"),
    # softcap_gradients (the transfer exercise; its reference is beside this file)
    ("softcap_gradients", "no derivative of the tanh", [(" * (1 - bent**2)", "")], "derivative of the tanh is missing"),
    ("softcap_gradients", "derivative over the cap", [("(1 - bent**2)", "(1 - bent**2) / cap")], "no 1/cap left"),
    (
        "softcap_gradients",
        "derivative of the capped score",
        [("(1 - bent**2)", "(1 - (cap * bent)**2)")],
        "taken of s'",
    ),
    (
        "softcap_gradients",
        "the cap forgotten in P",
        [("torch.exp(cap * bent -", "torch.exp(scale * q @ k.mT -")],
        "cap is missing in the scores",
    ),
    ("softcap_gradients", "delta left out", [("(do @ v.mT - delta)", "(do @ v.mT)")], "delta is left out"),
    ("softcap_gradients", "kernel: no derivative", [(SLOPE, "")], "derivative of the tanh is missing"),
    (
        "softcap_gradients",
        "kernel: scores not capped",
        [("p = tl.exp2((cap * bent", 'p = tl.exp2((scale * tl.dot(q, tl.trans(k), input_precision="ieee")')],
        "cap is missing in the scores",
    ),
    (
        "softcap_gradients",
        "kernel: keys past the end",
        [("        p = tl.where(columns[None, :] < Lk, p, 0.0)\n", "")],
        "keys past the end",
    ),
    (
        "softcap_gradients",
        "kernel: K without other",
        [(LOAD_K, LOAD_K.replace(", other=0.0", ""))],
        "0 · NaN .* load of k other",
    ),
    (
        "softcap_gradients",
        "kernel: queries at keys' places",
        [("load(q_ptr + tile", f"load(q_ptr + {QUERIES_AT_LK}")],
        r"rows of q start at head \* Lq, not at head \* Lk",
    ),
    ("softcap_gradients", "kernel: dQ unscaled", [(STORE_DQ, STORE_DQ.replace("scale * ", ""))], "scale is missing"),
    (
        "softcap_gradients",
        "kernel: dQ from PyTorch",
        [
            ("dq = torch.empty_like(q)", "spare = torch.empty_like(q)"),
            ("do, lse, delta, dq, Lq", "do, lse, delta, spare, Lq"),
        ],
        "no kernel was given dQ",
    ),
]

REFERENCES = {
    name: getattr(exercises, name)
    for name in ("attention_function", "query_gradient", "key_value_gradients", "dq_conflicts")
}
REFERENCES["softcap_gradients"] = softcap_gradients

DIFFERENT = [
    ("attention_function", [("delta = (o * do).sum(-1, keepdim=True)", "delta = (p * dp).sum(-1, keepdim=True)")]),
    (
        "attention_function",
        [
            (SAVE, "ctx.save_for_backward(q, k, v, lse)"),
            ("q, k, v, o, lse = ctx", "q, k, v, lse = ctx"),
            ("delta = (o * do)", "delta = ((p @ v) * do)"),
        ],
    ),
    ("query_gradient", [(EXP2, "p = tl.exp(s - lse[:, None])")]),
    ("query_gradient", [(MASK, "p *= seen"), (EXP2, "p = tl.exp2(tl.minimum((s - lse[:, None]) * LOG2E, 0.0))")]),
    ("query_gradient", [(DS, DS + " * scale"), (STORE_DQ, STORE_DQ.replace("scale * ", ""))]),
    (
        "key_value_gradients",
        [
            (
                's = tl.dot(q, tl.trans(k), input_precision="ieee") * scale',
                's = tl.trans(tl.dot(k, tl.trans(q), input_precision="ieee")) * scale',
            )
        ],
    ),
    ("key_value_gradients", [("(rows[:, None] < Lq) & real", "real")]),  # q and do are 0 there
    ("key_value_gradients", [(BEGIN, "begin = tl.maximum(first - (Lk - Lq), 0)")]),
    (
        "dq_conflicts",
        [
            (
                "[max(key // BLOCK_N + 1, 0) for key in last_keys]",
                "[sum(j * BLOCK_N <= key for j in range(key_tiles)) for key in last_keys]",
            )
        ],
    ),
    (
        "dq_conflicts",
        [
            (
                "last_rows = [min((i + 1) * BLOCK_M, Lq) - 1 for",
                "last_rows = [min(i * BLOCK_M + BLOCK_M - 1, Lq - 1) for",
            )
        ],
    ),
    (
        "softcap_gradients",
        [
            ("bent = 2.0 * tl.sigmoid(", "bent = 1.0 - 2.0 * tl.sigmoid(-"),
            ("(2.0 * scale / cap)) - 1.0", "(2.0 * scale / cap))"),
        ],
    ),
    ("softcap_gradients", [("(1 - bent**2)", "torch.cosh(torch.atanh(bent)) ** -2")]),
]


class TestLab05(PlantedBugs):
    check, REFERENCES, BUGS, DIFFERENT = check, REFERENCES, BUGS, DIFFERENT
