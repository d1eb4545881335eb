"""Each check of lab 04 names the mistakes that people make, and accepts right answers written differently."""

from labs_helpers.attention.lab04 import checks as check
from labs_helpers.attention.lab04 import exercises
from tests.attention.lab04.exercises.ex6_window_attention import window_attention
from tests.planted import PlantedBugs

INF = '-float("inf")'
SCORES = 's = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2E)'
ROUNDED_SCORES = [(SCORES, SCORES.replace(" * (scale", ".to(q.dtype) * (scale"))]
RESCALE = "        acc = acc * factor[:, None]\n"
SUM = "l_i = l_i * factor + tl.sum(p, axis=1)"
ADD = 'acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")'
K_MASK = "k = tl.load(k_head + columns[:, None] * stride_kn + d[None, :], mask=columns[:, None] < Lk, other=0.0)"
V_MASK = "v = tl.load(v_head + columns[:, None] * stride_vn + d[None, :], mask=columns[:, None] < Lk, other=0.0)"
TO_LK = ", mask=columns[:, None] < Lk, other=0.0"
LSE = "(m_i + tl.log2(l_i)) / LOG2E"
SHIFT = 'shift = tl.where(m_new == -float("inf"), 0.0, m_new)'
DIAGONAL = "columns[None, :] <= rows[:, None] + Lk - Lq"
END = "end = tl.minimum(first + BLOCK_M + Lk - Lq, Lk)"
BEGIN = "begin = tl.maximum(first + Lk - Lq - window + 1, 0) // BLOCK_N * BLOCK_N"
WINDOW = "(columns[None, :] <= own) & (columns[None, :] > own - window)"
MASKING = "        s = tl.where"
EDGES = "        if start + BLOCK_N > first + 1 + Lk - Lq or start < first + BLOCK_M + Lk - Lq - window:\n    "
GUARD = "    l_i = tl.where(l_i == 0.0, 1.0, l_i)\n"
BLOCK_MAX = "m_new = tl.maximum(m_i, tl.max(x))"
TAIL = f"x = tl.load(x_row + columns * stride_xn, mask=columns < N, other={INF}).to(tl.float32)"
NO_GUARD = (SHIFT, "shift = m_new")
FINITE = (f"tl.full((BLOCK_M,), {INF}, tl.float32)", "tl.full((BLOCK_M,), -1e30, tl.float32)")

BUGS = [
    # attention_costs
    (
        "attention_costs",
        "elements, not bytes",
        [("plain_bytes = itemsize * ", "plain_bytes = ")],
        "elements times itemsize",
    ),
    (
        "attention_costs",
        "softmax in place",
        [(" + 2 * scores + (", " + scores + (")],
        "3 × S's size .*, not 4",
    ),
    ("attention_costs", "no softmax", [(" + 2 * scores + (", " + (")], "2 × S's size .*, not 4"),
    (
        "attention_costs",
        "one head",
        [("tensor, scores = rows * D, rows * L", "tensor, scores = rows * D, L * L")],
        "0.167 × S's size .*, not 4",
    ),
    (
        "attention_costs",
        "only S alive",
        [("itemsize * 2 * scores", "itemsize * scores")],
        "1 × S's size .* both alive",
    ),
    (
        "attention_costs",
        "K and V once",
        [("L // BLOCK_M * 2 * tensor", "2 * tensor")],
        "4 × Q's size .* not 8: .* each of a head's L / BLOCK_M = 3 programs reads K and V",
    ),
    (
        "attention_costs",
        "Q again and again",
        [("(2 * tensor + L // BLOCK_M * 2 * tensor)", "(tensor + L // BLOCK_M * 3 * tensor)")],
        "10 × Q's size .* not 8: Q is read and O written once",
    ),
    ("attention_costs", "no log-sum-exp", [("* tensor) + lse", "* tensor)")], "0 × the log-sum-exp .*, not 1"),
    ("attention_costs", "a program a row", [("L // BLOCK_M", "L")], "98 × Q's size .* not 8"),
    ("attention_costs", "lse in Q's dtype", [("lse = 4 * rows", "lse = itemsize * rows")], "float32 whatever Q is"),
    (
        "attention_costs",
        "lse as large as O",
        [("lse = 4 * rows", "lse = 4 * tensor")],
        "the log-sum-exp is one float32 per row",
    ),
    (
        "attention_costs",
        "V forgotten",
        [("L // BLOCK_M * 2 * tensor", "L // BLOCK_M * tensor")],
        "is 2,953,728, expected 4,723,200\nLikely cause: you count 5 × Q's size",
    ),
    (
        "attention_costs",
        "another order",
        [("return plain_bytes, plain_extra, tiled_bytes", "return plain_bytes, tiled_bytes, plain_extra")],
        r"is 4,723,200, expected 442,368\nLikely cause: the order is wrong; return \(plain_bytes, plain_extra",
    ),
    # merge
    (
        "merge",
        "no rescaling",
        [("factor1 * l1 + factor2 * l2, factor1[:, None] * o1 + factor2[:, None] * o2", "l1 + l2, o1 + o2")],
        "l is not rescaled",
    ),
    ("merge", "l not rescaled", [("factor1 * l1 + factor2 * l2", "l1 + l2")], "l is not rescaled"),
    ("merge", "o not rescaled", [("factor1[:, None] * o1 + factor2[:, None] * o2", "o1 + o2")], "o is not rescaled"),
    ("merge", "only one part rescaled", [("factor1 * l1", "l1")], "l1 is not rescaled"),
    (
        "merge",
        "a sign",
        [("torch.exp(m1 - shift), torch.exp(m2 - shift)", "torch.exp(shift - m1), torch.exp(shift - m2)")],
        r"factors of l are inverted: multiply l1 by exp\(m1 − m\)",
    ),
    (
        "merge",
        "a sign in one factor",
        [("torch.exp(m1 - shift)", "torch.exp(shift - m1)")],
        r"factor of l1 is inverted: multiply l1 by exp\(m1 − m\)",
    ),
    (
        "merge",
        "o divided by one factor",
        [("factor1[:, None] * o1", "o1 / factor1[:, None]")],
        "factor of o1 is inverted: multiply o1",
    ),
    (
        "merge",
        "o divided by the factors",
        [("factor1[:, None] * o1", "o1 / factor1[:, None]"), ("factor2[:, None] * o2", "o2 / factor2[:, None]")],
        "factors of o are inverted: multiply o1",
    ),
    (
        "merge",
        "0 for an empty maximum",
        [("return m, ", "return shift, ")],
        r"expected -inf(.|\n)*return the maximum itself",
    ),
    (
        "merge",
        "in place",
        [("return m, factor1 * l1 +", "l1 *= factor1\n    return m, l1 +")],
        "the function changed its argument l1",
    ),
    ("merge", "factors swapped", [("factor1, factor2 = ", "factor2, factor1 = ")], "factors are swapped"),
    ("merge", "no guard", [('torch.where(m == float("-inf"), 0.0, m)', "m")], "both parts are empty"),
    ("merge", "sum of maxima", [("torch.maximum(m1, m2)", "m1 + m2")], "not their sum"),
    (
        "merge",
        "normalised",
        [
            ("+ factor2[:, None] * o2", "+ factor2[:, None] * o2) / (factor1 * l1 + factor2 * l2)[:, None]"),
            ("factor1[:, None] * o1", "(factor1[:, None] * o1"),
        ],
        "divided by l",
    ),
    ("merge", "m forgotten", [("return m, ", "return m1, ")], "shares memory with the argument m1"),
    ("merge", "exp2", [("torch.exp(", "torch.exp2(")], "base 2"),
    # row_softmax
    ("row_softmax", "maximum from 0", [(f"m_i = {INF}", "m_i = 0.0")], "starts at 0, not at −inf"),
    (
        "row_softmax",
        "no maximum",
        [(BLOCK_MAX, "m_new = 0.0 * tl.max(x)"), (f"m_i = {INF}", "m_i = 0.0")],
        "maximum is not subtracted",
    ),
    ("row_softmax", "l not rescaled", [("l_i * tl.exp(m_i - shift) + ", "l_i + ")], "l_i is not rescaled"),
    ("row_softmax", "last block only", [("l_i * tl.exp(m_i - shift) + ", "")], "l_i is overwritten in each step"),
    ("row_softmax", "last block's maximum", [(BLOCK_MAX, "m_new = tl.max(x)")], "off|not finite"),
    ("row_softmax", "tail of zeros", [(TAIL, TAIL.replace(INF, "0.0"))], "loaded as 0"),
    ("row_softmax", "no other=", [(TAIL, TAIL.replace(f", other={INF}", ""))], "end are undefined"),
    ("row_softmax", "not divided", [("tl.exp(x - m_i) / l_i", "tl.exp(x - m_i)")], "not divided by l_i"),
    (
        "row_softmax",
        "no guard",
        [('shift = tl.where(m_new == -float("inf"), 0.0, m_new)', "shift = m_new")],
        "only seen −inf so far",
    ),
    (
        "row_softmax",
        "no mask on the store",
        [(", mask=columns < N)\n        ### END", ")\n        ### END")],
        "store outside y_ptr",
    ),
    (
        "row_softmax",
        "no mask on the load",
        [(TAIL, "x = tl.load(x_row + columns * stride_xn).to(tl.float32)")],
        "load outside x_ptr",
    ),
    (
        "row_softmax",
        "a third reading",
        [("    m_i = -float", f"    columns = tl.arange(0, BLOCK)\n    {TAIL}\n    m_i = 0 * tl.max(x) - float")],
        "expected 2",
    ),
    (
        "row_softmax",
        "PyTorch's softmax",
        [("    row_softmax_kernel[(M,)](x, y", "    z = torch.softmax(x, 1)\n    row_softmax_kernel[(M,)](x, y")],
        "calls PyTorch: softmax",
    ),
    ("row_softmax", "exp2", [("tl.exp(", "tl.exp2(")], "exp2 is used without the factor"),
    ("row_softmax", "maximum not kept", [("        m_i = m_new\n", "")], "new maximum is not kept"),
    ("row_softmax", "column stride 1", [("columns * stride_xn", "columns")], "column stride is taken to be 1"),
    ("row_softmax", "torch.inf in the kernel", [(f"m_i = {INF}", "m_i = -torch.inf")], "a kernel may use only tl"),
    (
        "row_softmax",
        "dim=",
        [("tl.max(x)", "tl.max(x, dim=0)")],
        r"line \d+: m_new = tl.maximum(.|\n)*dim= belongs to PyTorch",
    ),
    *(
        (
            "row_softmax",
            f"column stride 1 in the {which} load",
            [(f"{TAIL}\n        {then}", f"{TAIL}\n        {then}".replace(" * stride_xn", ""))],
            f"column stride is taken to be 1 in the {which} load",
        )
        for which, then in (("first", "m_new ="), ("second", "y ="))
    ),
    *(
        (
            "row_softmax",
            f"128 {where}",
            [(old, old.replace("BLOCK", "128"))],
            "the number 128 is used instead of BLOCK",
        )
        for where, old in (("in the blocks", "tl.arange(0, BLOCK)"), ("in the steps", "range(0, N, BLOCK)"))
    ),
    (
        "row_softmax",
        "an unknown factor in one column",
        [("y = tl.exp(x - m_i) / l_i", "y = tl.exp(x - m_i) / l_i * tl.where(columns == 3, 1.5, 1.0)")],
        r'by hand; print\("y", y\) in the kernel',
    ),
    # tile_attention
    ("tile_attention", "accumulator not rescaled", [(RESCALE, "")], "accumulator is not rescaled"),
    ("tile_attention", "l not rescaled", [(SUM, "l_i += tl.sum(p, axis=1)")], "l_i is not rescaled"),
    (
        "tile_attention",
        "nothing rescaled",
        [(SUM, "l_i += tl.sum(p, axis=1)"), (RESCALE, "")],
        "neither l_i nor the accumulator",
    ),
    (
        "tile_attention",
        "accumulator rescaled twice",
        [(ADD, ADD.replace("v, acc", "v, acc * factor[:, None]"))],
        "elements are off",
    ),
    (
        "tile_attention",
        "maximum from 0",
        [(f"tl.full((BLOCK_M,), {INF}, tl.float32)", "tl.zeros((BLOCK_M,), tl.float32)")],
        "starts at 0, not at −inf",
    ),
    (
        "tile_attention",
        "no maximum",
        [
            ("m_new = tl.maximum(m_i, tl.max(s, axis=1))", "m_new = m_i"),
            (f"tl.full((BLOCK_M,), {INF}, tl.float32)", "tl.zeros((BLOCK_M,), tl.float32)"),
        ],
        "maximum is not subtracted",
    ),
    ("tile_attention", "scale twice", [(SCORES, SCORES.replace("scale *", "scale * scale *"))], "applied twice"),
    ("tile_attention", "scale missing", [(SCORES, SCORES.replace("(scale * LOG2E)", "LOG2E"))], "scale is missing"),
    ("tile_attention", "no LOG2E", [(SCORES, SCORES.replace("(scale * LOG2E)", "scale"))], "multiply them by LOG2E"),
    ("tile_attention", "exp and LOG2E", [("tl.exp2(", "tl.exp(")], "LOG2E is for exp2"),
    ("tile_attention", "default scale", [(SCORES, SCORES.replace("scale *", "(1 / D**0.5) *"))], "default 1/√D"),
    ("tile_attention", "lse in base 2", [(LSE, "m_i + tl.log2(l_i)")], "log-sum-exp is in base 2"),
    ("tile_attention", "half of lse in base 2", [(LSE, "m_i + tl.log(l_i)")], "m_i is in base 2"),
    ("tile_attention", "lse without m", [(LSE, "tl.log2(l_i) / LOG2E")], "m_i is missing"),
    ("tile_attention", "lse without l", [(LSE, "m_i / LOG2E")], "log l_i is missing"),
    ("tile_attention", "not divided by l", [("o = acc / l_i[:, None]", "o = acc")], "not divided by l_i"),
    (
        "tile_attention",
        "tiles do not advance",
        [("columns = start + tl.arange", "columns = tl.arange")],
        "every step loads the same tile",
    ),
    ("tile_attention", "maximum not kept", [("        m_i = m_new\n", "")], "new maximum is not kept"),
    (
        "tile_attention",
        "break",
        [("        m_i = m_new\n", "        m_i = m_new\n        if start > Lk:\n            break\n")],
        "Triton has no break",
    ),
    (
        "tile_attention",
        "factor along the columns",
        [("acc * factor[:, None]", "acc * factor[None, :]")],
        r"acc \* factor\[None(.|\n)*makes a column of rows",
    ),
    (
        "tile_attention",
        "lse of head 0 only",
        [("lse_ptr + head * Lq", "lse_ptr")],
        r"row 1, columns(.|\n)*each head has its own rows of lse: head \* Lq",
    ),
    (
        "tile_attention",
        "O of head 0 only",
        [("o_ptr + (head * Lq + rows", "o_ptr + (rows")],
        "each head has its own rows of O",
    ),
    (
        "tile_attention",
        "V transposed",
        [(", v, acc", ", tl.trans(v), acc")],
        "here 16×64 and 32×64: the inner sizes differ",
    ),
    (
        "tile_attention",
        "last tile missing",
        [("range(0, Lk, BLOCK_N)", "range(0, Lk - BLOCK_N, BLOCK_N)")],
        "the last tile of keys is left out",
    ),
    (
        "tile_attention",
        "first tile missing",
        [("range(0, Lk, BLOCK_N)", "range(BLOCK_N, Lk, BLOCK_N)")],
        "the first tile of keys is left out",
    ),
    ("tile_attention", "Q's length", [("range(0, Lk, BLOCK_N)", "range(0, Lq, BLOCK_N)")], "the loop ends at Lq"),
    (
        "tile_attention",
        "V for K",
        [("k = tl.load(k_head + columns[:, None] * stride_kn", "k = tl.load(v_head + columns[:, None] * stride_vn")],
        "the tensor loaded as K is not K",
    ),
    ("tile_attention", "K not transposed", [("tl.trans(k)", "k")], "here 16×32 and 64×32: the inner"),
    ("tile_attention", "P not converted", [("p.to(v.dtype)", "p")], r"convert one(.|\n)*p.to\(v.dtype\)"),
    ("tile_attention", "P as integers", [("p.to(v.dtype)", "p.to(tl.int8).to(v.dtype)")], "elements are off"),
    (
        "tile_attention",
        "P rounded to float16",
        [("p.to(v.dtype), v,", "p.to(tl.float16).to(v.dtype), v,")],
        "elements are off",
    ),
    (
        "tile_attention",
        "Q in the loop",
        [
            (
                ADD,
                ADD + "\n        q = tl.load(q_ptr + b * stride_qb + h * stride_qh + "
                "rows[:, None] * stride_qm + d[None, :])",
            )
        ],
        "Q is loaded",
    ),
    (
        "tile_attention",
        "O in every step",
        [
            (
                "        m_i = m_new\n",
                "        m_i = m_new\n        tl.store(o_ptr + (head * Lq + rows[:, None]) * D "
                "+ d[None, :], acc.to(o_ptr.dtype.element_ty))\n",
            )
        ],
        "an intermediate result goes through memory",
    ),
    (
        "tile_attention",
        "contiguous copies",
        [
            (
                "    B, H, Lq, D = q.shape\n",
                "    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()\n    B, H, Lq, D = q.shape\n",
            )
        ],
        "besides launching the kernel, the function calls PyTorch: contiguous",
    ),
    ("tile_attention", "TF32", [(', input_precision="ieee"', "")], "TF32"),
    (
        "tile_attention",
        "scores in Q's dtype",
        ROUNDED_SCORES,
        "Likely cause: the scores are rounded to Q's dtype; keep",
    ),
    (
        "tile_attention",
        "scores in float16",
        [(SCORES, f"{SCORES}\n        s = s.to(tl.float16).to(tl.float32)")],
        "Likely cause: the scores are rounded to float16; keep",
    ),
    # causal_attention
    *(
        (
            name,
            "acc in Q's dtype",
            [(ADD, ADD + "\n        acc = acc.to(q.dtype).to(tl.float32)")],
            "acc is rounded to Q",
        )
        for name in ("causal_attention", "window_attention")
    ),
    (
        "causal_attention",
        "`full` one too far",
        [("full = first + 1 +", "full = first + 2 +")],
        "`full` is too large by one",
    ),
    (
        "causal_attention",
        "`full` is `end`",
        [("full = first + 1 + Lk - Lq", "full = end")],
        "`full` is where the last row's keys end",
    ),
    (
        "causal_attention",
        "masked with −10⁹",
        [(f"{DIAGONAL}, s, {INF}", f"{DIAGONAL}, s, -1e9")],
        "expected -inf(.|\n)*a score is masked with a large negative number",
    ),
    ("causal_attention", "m_i from −10³⁰", [FINITE, NO_GUARD], "m_i starts at a large negative number"),
    ("causal_attention", "end without Lk − Lq", [("BLOCK_M + Lk - Lq", "BLOCK_M")], "its end omits Lk − Lq"),
    ("causal_attention", "maximum not kept", [("        m_i = m_new\n", "")], "new maximum is not kept"),
    ("causal_attention", "diagonal one to the left", [(DIAGONAL, DIAGONAL.replace("<=", "<"))], "one too far left"),
    ("causal_attention", "diagonal one to the right", [(DIAGONAL, DIAGONAL + " + 1")], "one too far right"),
    ("causal_attention", "top left", [(DIAGONAL, "columns[None, :] <= rows[:, None]")], "from the top left"),
    ("causal_attention", "top left altogether", [("+ Lk - Lq", "+ 0")], "its end omits Lk − Lq"),
    (
        "causal_attention",
        "nothing masked",
        [("if start + BLOCK_N > full:", "if start + BLOCK_N > full + 100000:")],
        "nothing is masked",
    ),
    ("causal_attention", "every tile computed", [(END, "end = Lk")], "the loop continues to Lk"),
    (
        "causal_attention",
        "a skipped tile that was needed",
        [(END, "end = (first + 1 + Lk - Lq) // BLOCK_N * BLOCK_N")],
        "never loads key",
    ),
    (
        "causal_attention",
        "the diagonal's tile is the last row's only",
        [("if start + BLOCK_N > full:", "if start + BLOCK_N > full + BLOCK_M:")],
        "elements are off",
    ),
    (
        "causal_attention",
        "a tile too many",
        [(END, "end = tl.minimum(first + BLOCK_M + BLOCK_N + Lk - Lq, Lk)")],
        "the loop ends a tile too late",
    ),
    (
        "causal_attention",
        "a program too many",
        [("triton.cdiv(Lq, BLOCK_M)", "Lq // BLOCK_M + 1")],
        r"program \(5, 0\) has no queries but loads keys(.|\n)*the grid is too large",
    ),
    ("causal_attention", "keys past the end of K", [(K_MASK, K_MASK.replace(TO_LK, ""))], "load outside k_ptr"),
    ("causal_attention", "keys past the end of V", [(V_MASK, V_MASK.replace(TO_LK, ""))], "load outside v_ptr"),
    ("causal_attention", "no other= on V", [(V_MASK, V_MASK.replace(", other=0.0", ""))], "give V's load other"),
    (
        "causal_attention",
        "queries past the end",
        [(",\n                mask=rows[:, None] < Lq, other=0.0)", ")")],
        "load outside q_ptr",
    ),
    (
        "causal_attention",
        "rows past the end stored",
        [(", mask=rows[:, None] < Lq)\n    tl.store", ")\n    tl.store")],
        "store outside o_ptr",
    ),
    ("causal_attention", "0/0", [(GUARD, "")], "rows that see no key compute 0/0"),
    ("causal_attention", "no guard of −inf", [(SHIFT, "shift = m_new")], "subtract 0 from the scores"),
    (
        "causal_attention",
        "masked with 0",
        [(f"{DIAGONAL}, s, {INF}", f"{DIAGONAL}, s, 0.0")],
        "unseen keys are set to 0",
    ),
    ("causal_attention", "accumulator not rescaled", [(RESCALE, "")], "accumulator is not rescaled"),
    ("causal_attention", "lse in base 2", [(LSE, "m_i + tl.log2(l_i)")], "log-sum-exp is in base 2"),
    # window_attention (the transfer exercise; its reference is in exercises/)
    ("window_attention", "one too long", [("> own - window)", ">= own - window)")], "one too long"),
    ("window_attention", "one too short", [("> own - window)", "> own - window + 1)")], "one too short"),
    ("window_attention", "no window", [(WINDOW, "columns[None, :] <= own")], "window is not applied"),
    ("window_attention", "both sides", [(WINDOW, WINDOW.replace("<= own", "< own + window"))], "to both sides of"),
    ("window_attention", "starts at 0", [(BEGIN, "begin = 0")], "the loop starts at key 0"),
    (
        "window_attention",
        "starts with the last row's window",
        [(BEGIN, "begin = tl.maximum(first + BLOCK_M + Lk - Lq - window, 0) // BLOCK_N * BLOCK_N")],
        "starts at the last row's first key",
    ),
    ("window_attention", "computes to the end", [(END, "end = Lk")], "the loop continues to Lk"),
    (
        "window_attention",
        "begins at a negative key",
        [("tl.maximum(first + Lk - Lq - window + 1, 0)", "(first + Lk - Lq - window + 1)")],
        "outside k_ptr: 640 elements before the tensor's beginning",
    ),
    (
        "window_attention",
        "begin without Lk − Lq",
        [(BEGIN, BEGIN.replace(" + Lk - Lq", ""))],
        "its start omits Lk − Lq",
    ),
    (
        "window_attention",
        "`full` one too far",
        [(MASKING, EDGES.replace("first + 1", "first + 2") + MASKING)],
        "`full` is too large by one",
    ),
    (
        "window_attention",
        "first edge one too far",
        [(MASKING, EDGES.replace("< first", "< first - 1") + MASKING)],
        "first edge is one too far left",
    ),
    (
        "window_attention",
        "the mask at the diagonal only",
        [(MASKING, "        if start + BLOCK_N > first + 1 + Lk - Lq:\n    " + MASKING)],
        "tiles on the window's first edge",
    ),
    ("window_attention", "no guard of −inf", [(SHIFT, "shift = m_new")], "subtract 0 from the scores"),
    ("window_attention", "0/0", [(GUARD, "")], "0/0"),
    ("window_attention", "top left", [("own = rows[:, None] + Lk - Lq", "own = rows[:, None]")], "from the top left"),
    # mistakes that the checks find by recomputation
    (
        "attention_costs",
        "bits",
        [("itemsize * 2 * scores", "8 * itemsize * 2 * scores")],
        "bits are counted, not bytes",
    ),
    ("attention_costs", "B left out", [("rows = B * H * L", "rows = H * L")], "B is left out"),
    (
        "merge",
        "each with the other's maximum",
        [("torch.exp(m1 - shift), torch.exp(m2 - shift)", "torch.exp(m1 - m2), torch.exp(m2 - m1)")],
        "use the other part's maximum",
    ),
    ("merge", "the guard of one", [('m == float("-inf")', 'm1 == float("-inf")')], "the guard tests m1"),
    (
        "merge",
        "an empty part's other one returned",
        [
            (
                "    m = torch.maximum",
                '    if bool((m2 == float("-inf")).all()):\n        return m1, l1, o1\n    m = torch.maximum',
            )
        ],
        "shares memory with the argument m1",
    ),
    (
        "row_softmax",
        "the sum in X's dtype",
        [
            (
                "tl.sum(tl.exp(x - shift))",
                "tl.sum(tl.exp(x - shift))\n        l_i = l_i.to(x_ptr.dtype.element_ty).to(tl.float32)",
            )
        ],
        "float16, most(.|\n)*l_i is rounded to X's dtype",
    ),
    ("row_softmax", "the guard's 0 kept", [("m_i = m_new", "m_i = shift")], "is kept as the maximum"),
    ("row_softmax", "each block's maximum", [("tl.exp(x - m_i) / l_i", "tl.exp(x - tl.max(x)) / l_i")], "own maximum"),
    ("row_softmax", "rounded at the end", [("y.to(y_ptr.dtype.element_ty)", "y.to(tl.float16)")], "exact in float16"),
    (
        "row_softmax",
        "no exp in the sum",
        [("tl.sum(tl.exp(x - shift))", "tl.sum(x - shift)")],
        "sum its exponential",
    ),
    (
        "row_softmax",
        "one output for all calls",
        [
            ("def row_softmax(", "KEPT = {}\n\n\ndef row_softmax("),
            (
                "y = torch.empty((M, N), dtype=x.dtype, device=x.device)",
                "y = KEPT.setdefault(x.shape, torch.empty_like(x))",
            ),
        ],
        "second call overwrites the result of the first one",
    ),
    ("tile_attention", "one maximum for a tile", [("tl.max(s, axis=1)", "tl.max(s)")], "for the whole tile: tl.max"),
    ("tile_attention", "one sum for a tile", [("tl.sum(p, axis=1)", "tl.sum(p)")], "for the whole tile: tl.sum"),
    ("tile_attention", "divided by LOG2E", [("(scale * LOG2E)", "(scale / LOG2E)")], "are divided by LOG2E"),
    (
        "tile_attention",
        "one output for all calls",
        [
            ("def tile_attention(", "KEPT = {}\n\n\ndef tile_attention("),
            (
                "o = torch.empty(q.shape, dtype=q.dtype, device=q.device)",
                "o = KEPT.setdefault(q.shape, torch.empty_like(q))",
            ),
        ],
        "second call overwrites the result of the first one",
    ),
    (
        "window_attention",
        "moved by a key",
        [("own = rows[:, None] + Lk - Lq", "own = rows[:, None] + Lk - Lq - 1")],
        "too far left",
    ),
]


def stride_bugs(*names):
    """Return bugs that use one tensor's stride for another tensor, in each kernel."""
    return [
        (
            name,
            f"{new} for {old}",
            [(f"* {old}", f"* {new}")],
            "different strides(.|\n)*(uses the wrong stride|use .'s own strides)",
        )
        for name in names
        for old, new in (
            ("stride_vn + d", "stride_kn + d"),
            ("stride_vh", "stride_kh"),
            ("stride_vb", "stride_kb"),
            ("stride_kn + d", "stride_vn + d"),
            ("stride_kb", "stride_qb"),
        )
    ]


BUGS += stride_bugs("tile_attention", "causal_attention")  # window_attention's in test_planted_classes.py

REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"window_attention": window_attention}

DIFFERENT = [
    ("attention_costs", [("(2 * tensor + scores) + 2 * scores + (scores + 2 * tensor)", "4 * tensor + 4 * scores")]),
    ("attention_costs", [("2 * tensor + L // BLOCK_M * 2 * tensor", "2 * tensor * (1 + L / BLOCK_M)")]),
    (
        "merge",
        [
            (
                "torch.exp(m1 - shift), torch.exp(m2 - shift)",
                "torch.exp2((m1 - shift) * 1.4426950408889634), torch.exp2((m2 - shift) * 1.4426950408889634)",
            )
        ],
    ),
    (
        "merge",
        [
            (
                "torch.exp(m1 - shift), torch.exp(m2 - shift)",
                "torch.exp(m1 - m).nan_to_num(0.0), torch.exp(m2 - m).nan_to_num(0.0)",
            )
        ],
    ),
    (
        "row_softmax",
        [(f"m_i = {INF}", "m_i = -1e30"), ('shift = tl.where(m_new == -float("inf"), 0.0, m_new)', "shift = m_new")],
    ),
    ("row_softmax", [("tl.exp(x - m_i) / l_i", "tl.exp2((x - m_i) * 1.4426950408889634) / l_i")]),
    ("tile_attention", [(SCORES, SCORES.replace(" * LOG2E", "")), ("tl.exp2(", "tl.exp("), (LSE, "m_i + tl.log(l_i)")]),
    (
        "tile_attention",
        [(RESCALE, ""), (ADD, 'acc = acc * factor[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")')],
    ),
    (
        "tile_attention",
        [
            (
                "k = tl.load(k_head + columns[:, None] * stride_kn + d[None, :])",
                "k = tl.load(k_head + columns[None, :] * stride_kn + d[:, None])",
            ),
            ("tl.trans(k)", "k"),
        ],
    ),
    ("tile_attention", [(f"tl.full((BLOCK_M,), {INF}, tl.float32)", "tl.full((BLOCK_M,), -1e30, tl.float32)")]),
    (
        "causal_attention",
        [
            FINITE,
            NO_GUARD,
            (f"s, {INF})", "s, -1e38)"),
            (
                GUARD,
                "    sees = rows + Lk - Lq >= 0\n    acc = tl.where(sees[:, None], acc, 0.0)\n"
                f"    l_i = tl.where(sees, l_i, 1.0)\n    m_i = tl.where(sees, m_i, {INF})\n",
            ),
        ],
    ),
    ("causal_attention", [("if start + BLOCK_N > full:", "if True:")]),
    ("causal_attention", [("full = first + 1 + Lk - Lq", "full = first + Lk - Lq")]),
    ("causal_attention", [(K_MASK, K_MASK.replace("< Lk", "< end")), (V_MASK, V_MASK.replace("< Lk", "< end"))]),
    ("window_attention", [(BEGIN, "begin = tl.maximum(first + Lk - Lq - window + 1, 0)")]),
    ("window_attention", [(MASKING, EDGES + MASKING)]),
    ("window_attention", [(WINDOW, "(own - columns[None, :] >= 0) & (own - columns[None, :] < window)")]),
]


class TestLab04(PlantedBugs):
    check, REFERENCES, BUGS, DIFFERENT = check, REFERENCES, BUGS, DIFFERENT
