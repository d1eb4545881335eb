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


def without_other(load):
    return load, load.replace(", other=0.0", "")


BUGS = {
    "attention_function": [
        ("delta left out", [("(dp - delta)", "dp")], "delta is left out"),
        ("delta after the product", [("p * (dp - delta)", "p * dp - delta")], "subtracted after the product"),
        ("dQ unscaled", [("dq = scale * ds @ k", "dq = ds @ k")], "the scale is missing: .* dQ"),
        ("dK unscaled", [("dk = scale * ds.mT @ q", "dk = ds.mT @ q")], "the scale is missing: .* dK"),
        ("scale twice", [("dk = scale * ds.mT @ q", "dk = scale**2 * ds.mT @ q")], "scale is applied twice to dK"),
        (
            "scale twice in the scores",
            [(RECOMPUTE, RECOMPUTE.replace("scores(", "scale * scores("))],
            "scale is applied twice in the scores",
        ),
        (
            "P not transposed",
            [("dv = p.mT @ do", "dv = (p if p.shape[-1] == p.shape[-2] else p.mT) @ do")],
            "P is not transposed",
        ),
        (
            "dV from dS",
            [("dv = p.mT @ do", ""), ("dq = scale", "dv = ds.mT @ do\n            dq = scale")],
            "dV is computed from dS",
        ),
        (
            "dS not transposed",
            [("dk = scale * ds.mT", "dk = scale * (ds if ds.shape[-1] == ds.shape[-2] else ds.mT)")],
            "dS is not transposed",
        ),
        (
            "mask forgotten in the backward",
            [(RECOMPUTE, RECOMPUTE.replace("causal", "False"))],
            "causal mask is missing",
        ),
        ("lse forgotten", [(RECOMPUTE, RECOMPUTE.replace(" - lse[..., None]", ""))], "lse is missing"),
        (
            "P saved",
            [
                (SAVE, "ctx.save_for_backward(q, k, v, o, lse, torch.exp(s))"),
                ("q, k, v, o, lse = ctx", "q, k, v, o, lse, _ = ctx"),
            ],
            "P or the scores",
        ),
        (
            "operands set to zero",
            [
                (
                    "            s = scores(q, k, scale, causal)\n",
                    "            s = scores(q.zero_(), k.zero_(), scale, causal)\n",
                )
            ],
            "of 30 elements are off",
        ),
        (
            "P in a list of its own",
            [
                ("    class Attention", "    kept = []\n\n    class Attention"),
                (SAVE, SAVE + "\n            kept.append(torch.exp(s - lse[..., None]))"),
                (RECOMPUTE, "p = kept[-1]"),
            ],
            "P or the scores",
        ),
        ("P kept on ctx", [(SAVE, SAVE + "\n            ctx.p = torch.exp(s - lse[..., None])")], "P or the scores"),
        (
            "no autograd.Function",
            [("return AttentionFunction.apply(q, k, v)", "return torch.softmax(scores(q, k, scale, causal), -1) @ v")],
            "never called",
        ),
        (
            "one output for all calls",
            [
                ("def attention_function(", "KEPT = {}\n\n\ndef attention_function("),
                (
                    "            return o\n",
                    "            return KEPT.setdefault(o.shape, torch.empty_like(o)).copy_(o)\n",
                ),
            ],
            "second call overwrites the result of the first one",
        ),
        ("no shape fits", [("sum(-1, keepdim=True)", "sum(-2, keepdim=True)")], "shapes do not match, here"),
        (
            "the wrong axis",
            [
                (
                    "torch.exp(scores(q, k, scale, causal) - lse[..., None])",
                    "torch.softmax(scores(q, k, scale, causal), -2)",
                )
            ],
            "the softmax sums over the queries",
        ),
        ("K and V exchanged", [("q, k, v, o, lse = ctx", "q, v, k, o, lse = ctx")], "K and V are swapped"),
    ],
    "query_gradient": [
        ("dQ unscaled", [(STORE_DQ, STORE_DQ.replace("scale * ", ""))], "the scale is missing: .* dQ"),
        ("scale twice", [(DS, DS + " * scale")], "scale is applied twice"),
        ("delta left out", [("(dp - delta[:, None])", "dp")], "delta is left out"),
        ("lse as base 2", [(EXP2, "p = tl.exp2(s * LOG2E - lse[:, None])")], "treats it as base 2"),
        ("no log2(e)", [(EXP2, "p = tl.exp2(s - lse[:, None])")], "exp2 is used without log2"),
        ("no scale in the scores", [(" * scale\n        p", "\n        p")], "scale is missing in the scores"),
        ("dQ from P", [("ds.to(k.dtype)", "p.to(k.dtype)")], "dQ is computed from P"),
        ("accumulator overwritten", [("k, dq, input_precision", "k, input_precision")], "add every tile to dQ"),
        ("diagonal one short", [(DIAGONAL, DIAGONAL.replace("<=", "<"))], "query i does see key i"),
        ("diagonal one long", [(DIAGONAL, DIAGONAL + " + 1")], "query i does not see key"),
        (
            "top left corner",
            [(DIAGONAL, "columns[None, :] <= rows[:, None]"), (END, "end = tl.minimum(Lk, first + BLOCK_M)")],
            "top left corner",
        ),
        ("no causal mask", [("seen = seen & (", "seen = seen | (")], "causal mask is missing"),
        ("no keys skipped", [(END, "end = Lk")], "after the diagonal are computed"),
        (
            "the diagonal skipped",
            [(END, "end = tl.minimum(Lk, first + Lk - Lq)")],
            "loop ends before the diagonal",
        ),
        (
            "keys past the end",
            [("seen = columns[None, :] < Lk", "seen = columns[None, :] >= 0")],
            "keys past the end are not masked",
        ),
        (
            "−inf instead of 0",
            [(EXP2, ""), (MASK, "p = tl.exp2((tl.where(seen, s, -float('inf')) - lse[:, None]) * LOG2E)")],
            "sees no key has lse",
        ),
        ("K not masked", [(LOAD_K, "k = tl.load(k_ptr + keys)")], "load outside k_ptr"),
        (
            "Q in the loop",
            [
                (
                    "        s = tl.dot(",
                    "        q = tl.load(q_ptr + tile, mask=real[:, None], other=0.0)\n        s = tl.dot(",
                )
            ],
            "belongs to one program",
        ),
        ("K without other", [without_other(LOAD_K)], "0 · NaN .* load of k other"),
        ("V without other", [without_other(LOAD_V)], "0 · NaN .* load of v other"),
        (
            "neither with other, nor keys masked",
            [
                without_other(LOAD_K),
                without_other(LOAD_V),
                ("seen = columns[None, :] < Lk", "seen = columns[None, :] >= 0"),
            ],
            "0 · NaN .* loads of k, v other",
        ),
        ("P masked by a product", [(MASK, "p *= seen")], r"tl.where, because ∞ · 0"),
        ("delta as a row", [("delta[:, None]", "delta[None, :]")], r"delta\[:, None\], not"),
        ("lse as a row", [("lse[:, None]", "lse[None, :]")], r"lse\[:, None\], not"),
        (
            "lse and delta as rows",
            [("lse[:, None]", "lse[None, :]"), ("delta[:, None]", "delta[None, :]")],
            "one lse and one delta",
        ),
        ("Lk − Lq turned in the mask", [(DIAGONAL, DIAGONAL_TURNED)], "Lk − Lq has the wrong sign"),
        ("Lk − Lq turned in the end", [(END, END.replace("Lk - Lq", "Lq - Lk"))], "Lk − Lq has the wrong sign"),
        (
            "Lk − Lq turned",
            [(DIAGONAL, DIAGONAL_TURNED), (END, END.replace("Lk - Lq", "Lq - Lk"))],
            "Lk − Lq has the wrong sign",
        ),
        ("end without Lk − Lq", [(END, "end = tl.minimum(Lk, first + BLOCK_M)")], "loop's end omits Lk − Lq"),
        ("mask turned round", [(DIAGONAL, DIAGONAL.replace("<=", ">="))], "mask is reversed"),
        ("mask inverted", [(DIAGONAL, DIAGONAL.replace("<=", ">"))], "mask is reversed.* no others"),
        ("keys at queries' places", [(KEYS, KEYS.replace("Lk", "Lq"))], "load outside k_ptr"),
        ("values at queries' places", [(LOAD_V, LOAD_V.replace("keys", KEYS_AT_LQ))], "load outside v_ptr"),
        (
            "the head forgotten at V",
            [(LOAD_V, LOAD_V.replace("keys", KEYS_AT_0))],
            r"rows of v start at head \* Lk, not at 0",
        ),
        (
            "a copy of K",
            [("dq = torch.empty_like(q)", "k, dq = k.clone(), torch.empty_like(q)")],
            "calls PyTorch: clone",
        ),
        (
            "dP and delta in 16 bits",
            [(DS, "ds = p * (dp.to(k.dtype) - delta[:, None].to(k.dtype))")],
            "Likely cause: dP and delta are rounded to 16 bits before you",
        ),
        ("TF32", [(DQ, "dq = tl.dot(ds.to(k.dtype), k, dq)")], "TF32"),
        ("end a key early", [("first + BLOCK_M + Lk - Lq)", "first + BLOCK_M + Lk - Lq - 1)")], "ends a key too early"),
        ("its own queries for K", [("ds.to(k.dtype), k, dq", "ds.to(k.dtype), q, dq")], "dS is multiplied by Q"),
        (
            "always causal",
            [("        if CAUSAL:\n            seen", "        if True:\n            seen")],
            "although CAUSAL is False",
        ),
        ("scores of dO", [("s = tl.dot(q,", "s = tl.dot(do,")], "the scores are computed as dO·Kᵀ"),
    ],
    "key_value_gradients": [
        ("dK unscaled", [(STORE_DK, STORE_DK.replace("scale * ", ""))], "the scale is missing: .* dK"),
        ("dV scaled", [("dv.to(dv_ptr", "(scale * dv).to(dv_ptr")], "dV takes no scale"),
        (
            "dV from dS",
            [(DV + "\n", "\n"), (DK, DK + "\n        " + DV.replace("p.to", "ds.to"))],
            "dV is computed from dS",
        ),
        ("P not transposed", [(DV, DV.replace("tl.trans(p.to(do.dtype))", "p.to(do.dtype)"))], "P is not transposed"),
        (
            "dS not transposed",
            [(DK, DK.replace("tl.trans(ds.to(q.dtype))", "ds.to(q.dtype)"))],
            "dS is not transposed",
        ),
        ("delta left out", [("(dp - delta[:, None])", "dp")], "delta is left out"),
        ("delta added", [("(dp - delta", "(dp + delta")], "delta is added"),
        ("lse as base 2", [(EXP2, "p = tl.exp2(s * LOG2E - lse[:, None])")], "treats it as base 2"),
        ("starts one tile late", [(BEGIN, BEGIN + " + BLOCK_M")], "tiles on the diagonal are skip"),
        ("starts at the first query", [(BEGIN, "begin = 0")], "before the diagonal are computed"),
        ("diagonal one short", [(DIAGONAL, DIAGONAL.replace("<=", "<"))], "query i does see key i"),
        ("diagonal one long", [(DIAGONAL, DIAGONAL + " + 1")], "query i does not see key"),
        (
            "padded queries",
            [("(rows[:, None] < Lq) & real", "real"), without_other(LOAD_LSE)],
            "queries past the end are not masked",
        ),
        ("delta not masked", [(LOAD_DELTA, "delta = tl.load(delta_ptr + head * Lq + rows)")], "load outside delta_ptr"),
        (
            "−inf instead of 0",
            [(EXP2, ""), (MASK, "p = tl.exp2((tl.where(seen, s, -float('inf')) - lse[:, None]) * LOG2E)")],
            "sees no key has lse",
        ),
        ("dV alone", [("return dk, dv", "return dv")], r"return \(dK, dV\)"),
        ("K's place is forgotten", [("dk, input_precision", "input_precision")], "add every tile to dK"),
        (
            "two writers",
            [("grid = (triton.cdiv(Lk, BLOCK_N), B * H)", "grid = (triton.cdiv(Lk, BLOCK_N), B * H, 2)")],
            "by 2 programs",
        ),
        (
            "stored in the loop",
            [(DK, DK + "\n        tl.store(dv_ptr + tile, dv.to(dv_ptr.dtype.element_ty), mask=real[:, None])")],
            "goes through memory",
        ),
        (
            "float16 accumulator",
            [
                ("dv = tl.zeros((BLOCK_N, D), dtype=tl.float32)", "dv = tl.zeros((BLOCK_N, D), dtype=tl.float16)"),
                (DV, "dv += tl.dot(tl.trans(p.to(do.dtype)), do)"),
            ],
            "changes its dtype",
        ),
        ("Q without other", [without_other(LOAD_Q)], "0 · NaN .* of q other"),
        ("dO without other", [without_other(LOAD_DO)], "0 · NaN .* of do other"),
        ("delta without other", [without_other(LOAD_DELTA)], "0 · NaN .* of delta other"),
        (
            "dO, lse and delta without other",
            [without_other(load) for load in (LOAD_DO, LOAD_LSE, LOAD_DELTA)],
            "0 · NaN .* loads of do, delta other",
        ),
        ("starts without Lk − Lq", [(BEGIN, "begin = first // BLOCK_M * BLOCK_M")], "loop's start omits Lk − Lq"),
        ("Lk − Lq turned in the mask", [(DIAGONAL, DIAGONAL_TURNED)], "Lk − Lq has the wrong sign"),
        ("Lk − Lq turned in the start", [(BEGIN, BEGIN.replace("- (Lk", "+ (Lk"))], "Lk − Lq has the wrong sign"),
        (
            "Lk − Lq turned",
            [(DIAGONAL, DIAGONAL_TURNED), (BEGIN, BEGIN.replace("- (Lk", "+ (Lk"))],
            "Lk − Lq has the wrong sign",
        ),
        ("mask turned round", [(DIAGONAL, DIAGONAL.replace("<=", ">="))], "mask is reversed"),
        ("mask inverted", [(DIAGONAL, DIAGONAL.replace("<=", ">"))], "is reversed.* no others"),
        (
            "outputs exchanged",
            [
                ("tl.store(dk_ptr", "tl.store(there"),
                ("tl.store(dv_ptr", "tl.store(dk_ptr"),
                ("tl.store(there", "tl.store(dv_ptr"),
            ],
            "dK and dV are swapped",
        ),
        ("delta as a row", [("delta[:, None]", "delta[None, :]")], r"delta\[:, None\], not"),
        ("lse as a row", [("lse[:, None]", "lse[None, :]")], r"lse\[:, None\], not"),
        (
            "queries at keys' places",
            [(QUERIES, QUERIES.replace("Lq", "Lk"))],
            r"rows of q and do start at head \* Lq, not at head \* Lk",
        ),
        (
            "all of the queries at keys' places",
            [(QUERIES, QUERIES.replace("Lq", "Lk")), ("head * Lq + rows, mask", "head * Lk + rows, mask")],
            r"rows of q, do and lse start at head \* Lq, not at head \* Lk",
        ),
        *(
            (
                f"{name} at keys' places",
                [(load, load.replace("queries", QUERIES_AT_LK).replace("head * Lq", "head * Lk"))],
                rf"rows of {name} start at head \* Lq, not at head \* Lk",
            )
            for name, load in (("q", LOAD_Q), ("do", LOAD_DO), ("lse", LOAD_LSE), ("delta", LOAD_DELTA))
        ),
        (
            "the head forgotten at dO",
            [(LOAD_DO, LOAD_DO.replace("queries", QUERIES_AT_0))],
            r"rows of do start at head \* Lq, not at 0",
        ),
        (
            "one output for all calls",
            [
                ("def key_value_gradients(", "KEPT = {}\n\n\ndef key_value_gradients("),
                (
                    "dk, dv = torch.empty_like(k), torch.empty_like(v)",
                    "dk, dv = KEPT.setdefault(k.shape, (0 * k, 0 * v))",
                ),
            ],
            "second call overwrites|calls PyTorch",
        ),
        ("one tile again and again", [("rows = start + tl", "rows = begin + tl")], "every step loads the same tile"),
        ("scores divided", [("* scale\n", "/ scale\n")], "are divided by the scale"),
    ],
    "dq_conflicts": [
        ("last key tile forgotten", [("-(-Lk // BLOCK_N)", "Lk // BLOCK_N")], "partly filled"),
        (
            "query tiles counted",
            [("[key_tiles] * query_tiles", "[query_tiles] * query_tiles")],
            "the programs are the key tiles",
        ),
        ("causal ignored", [("    if not causal:\n        return", "    return")], "before the diagonal"),
        ("first row of the tile", [("min((i + 1) * BLOCK_M, Lq) - 1", "i * BLOCK_M")], "sees more keys than its first"),
        ("top left corner", [("row + Lk - Lq", "row")], "Lk − Lq is missing"),
        ("one too few", [("key // BLOCK_N + 1", "key // BLOCK_N")], "last visible key is missing"),
        (
            "tile numbers",
            [("[max(key // BLOCK_N + 1, 0) for key in last_keys]", "[i + 1 for i in range(query_tiles)]")],
            "are mixed up",
        ),
        ("blind tiles", [("max(key // BLOCK_N + 1, 0)", "max(key, 0) // BLOCK_N + 1")], "no program adds to"),
        ("floor", [("-(-Lq // BLOCK_M)", "Lq // BLOCK_M")], "one per query tile"),
        (
            "query tiles rounded down",
            [("-(-Lq // BLOCK_M)", "Lq // BLOCK_M")],
            "partly filled query tile needs a number",
        ),
    ],
    "softcap_gradients": [
        ("no derivative of the tanh", [(" * (1 - bent**2)", "")], "derivative of the tanh is missing"),
        ("derivative over the cap", [("(1 - bent**2)", "(1 - bent**2) / cap")], "no factor 1/cap"),
        ("derivative of the capped score", [("(1 - bent**2)", "(1 - (cap * bent)**2)")], "derivative uses s'"),
        (
            "the cap forgotten in P",
            [("torch.exp(cap * bent -", "torch.exp(scale * q @ k.mT -")],
            "cap is missing in the scores",
        ),
        ("delta left out", [("(do @ v.mT - delta)", "(do @ v.mT)")], "delta is left out"),
        ("kernel: no derivative", [(SLOPE, "")], "derivative of the tanh is missing"),
        (
            "kernel: scores not capped",
            [("p = tl.exp2((cap * bent", 'p = tl.exp2((scale * tl.dot(q, tl.trans(k), input_precision="ieee")')],
            "cap is missing in the scores",
        ),
        (
            "kernel: keys past the end",
            [("        p = tl.where(columns[None, :] < Lk, p, 0.0)\n", "")],
            "keys past the end",
        ),
        ("kernel: K without other", [without_other(LOAD_K)], "0 · NaN .* load of k other"),
        (
            "kernel: queries at keys' places",
            [("load(q_ptr + tile", f"load(q_ptr + {QUERIES_AT_LK}")],
            r"rows of q start at head \* Lq, not at head \* Lk",
        ),
        ("kernel: dQ unscaled", [(STORE_DQ, STORE_DQ.replace("scale * ", ""))], "scale is missing"),
        (
            "kernel: dQ from PyTorch",
            [
                ("dq = torch.empty_like(q)", "spare = torch.empty_like(q)"),
                ("do, lse, delta, dq, Lq", "do, lse, delta, spare, Lq"),
            ],
            "no kernel was given dQ",
        ),
        (
            "kernel: dQ from PyTorch, copied",
            [
                ("dq = torch.empty_like(q)", "made, dq = dq.contiguous(), torch.empty_like(q)"),
                ("do, lse, delta, dq, Lq", "do, lse, delta, dq, made, Lq"),
                ("delta_ptr, dq_ptr,", "delta_ptr, dq_ptr, made_ptr,"),
                (STORE_DQ, "tl.load(made_ptr + tile, mask=real[:, None], other=0.0)"),
            ],
            "PyTorch computes a part of dQ",
        ),
        ("the tanh's slope in dV", [("p.mT @ do", "(p * (1 - bent**2)).mT @ do")], "dV takes no derivative"),
    ],
}

REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"softcap_gradients": softcap_gradients}

DIFFERENT = {
    "attention_function": [
        [("AttentionFunction", "Own")],
        [("delta = (o * do).sum(-1, keepdim=True)", "delta = (p * dp).sum(-1, keepdim=True)")],
        [
            (SAVE, "ctx.save_for_backward(q, k, v, lse)"),
            ("q, k, v, o, lse = ctx", "q, k, v, lse = ctx"),
            ("delta = (o * do)", "delta = ((p @ v) * do)"),
        ],
    ],
    "query_gradient": [
        [(EXP2, "p = tl.exp(s - lse[:, None])")],
        [(MASK, "p *= seen"), (EXP2, "p = tl.exp2(tl.minimum((s - lse[:, None]) * LOG2E, 0.0))")],
        [(DS, DS + " * scale"), (STORE_DQ, STORE_DQ.replace("scale * ", ""))],
    ],
    "key_value_gradients": [
        [
            (
                's = tl.dot(q, tl.trans(k), input_precision="ieee") * scale',
                's = tl.trans(tl.dot(k, tl.trans(q), input_precision="ieee")) * scale',
            )
        ],
        [("(rows[:, None] < Lq) & real", "real")],  # q and do are 0 there
        [(BEGIN, "begin = tl.maximum(first - (Lk - Lq), 0)")],
    ],
    "dq_conflicts": [
        [
            (
                "[max(key // BLOCK_N + 1, 0) for key in last_keys]",
                "[sum(j * BLOCK_N <= key for j in range(key_tiles)) for key in last_keys]",
            )
        ],
        [
            (
                "last_rows = [min((i + 1) * BLOCK_M, Lq) - 1 for",
                "last_rows = [min(i * BLOCK_M + BLOCK_M - 1, Lq - 1) for",
            )
        ],
    ],
    "softcap_gradients": [
        [
            ("bent = 2.0 * tl.sigmoid(", "bent = 1.0 - 2.0 * tl.sigmoid(-"),
            ("(2.0 * scale / cap)) - 1.0", "(2.0 * scale / cap))"),
        ],
        [("(1 - bent**2)", "torch.cosh(torch.atanh(bent)) ** -2")],
    ],
}


class TestLab05(PlantedBugs):
    check, REFERENCES = check, REFERENCES
    BUGS = [(name, *bug) for name, bugs in BUGS.items() for bug in bugs]
    DIFFERENT = [(name, changes) for name, answers in DIFFERENT.items() for changes in answers]
