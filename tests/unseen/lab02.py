"""Answers to lab 02."""

from tests.unseen.answers import TRITON, Answer

SILU = TRITON + '''
@triton.jit
def silu_matmul_kernel(a_ptr, b_ptr, bias_ptr, d_ptr, M, N, K,
                       stride_am, stride_ak, stride_bk, stride_bn, stride_dm, stride_dn,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_tile = a_ptr + rows[:, None] * stride_am + k[None, :] * stride_ak
        b_tile = b_ptr + k[:, None] * stride_bk + columns[None, :] * stride_bn
        a = tl.load(a_tile, mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_tile, mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    acc += bias[None, :]
    acc = acc * tl.sigmoid(acc)
    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def silu_matmul(a, b, bias, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32):
    (M, K), (_, N) = a.shape, b.shape
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    silu_matmul_kernel[grid](a, b, bias, d, M, N, K, *a.stride(), *b.stride(), *d.stride(),
                             BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return d
'''

X_TILE = "x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn"
Y_TILE = "y_ptr + rows[:, None] * stride_ym + columns[None, :] * stride_yn"
A_MASK = "(rows[:, None] < M) & (k[None, :] < K)"
B_MASK = "(k[:, None] < K) & (columns[None, :] < N)"
D_MASK = "(rows[:, None] < M) & (columns[None, :] < N)"
DOT = 'acc = tl.dot(a, b, acc, input_precision="ieee")'
DOT3 = "        " + DOT
TO_D = "acc.to(d_ptr.dtype.element_ty)"

ANSWERS = [
    Answer("traffic", "a multiply-add as one", [("2 * M * N * K + 2 * M * N", "M * N * K + 2 * M * N")], "a multiply-add is two FLOPs"),
    Answer("traffic", "forgets the ReLU's FLOP", [("2 * M * N * K + 2 * M * N", "2 * M * N * K + M * N")], "the sum with C and the maximum are M·N FLOPs"),
    Answer("traffic", "K − 1 additions per element", [("2 * M * N * K + 2 * M * N", "M * N * (2 * K - 1) + 2 * M * N")], "K multiply-adds count as 2·K FLOPs here,"),
    Answer("traffic", "the product reads its output as well", [("M * K + K * N + M * N\n", "M * K + K * N + 2 * M * N\n")], "1 times M·N elements too many: the product"),
    Answer("traffic", "the sum reads only C", [("3 * M * N", "2 * M * N")], "1 times M·N elements too few: the product"),
    Answer("traffic", "fused forgets to read C", [("M * K + K * N + 2 * M * N)", "M * K + K * N + M * N)")], "the fused kernel still reads C and writes D,"),
    Answer("traffic", "fused in elements", [("2 * M * N) * itemsize", "2 * M * N)")], "bytes are elements times itemsize"),
    Answer("traffic", "bytes swapped in the result", [("flops, unfused_bytes, fused_bytes\n", "flops, fused_bytes, unfused_bytes\n")], "this is fused_bytes: the order is flops,"),
    Answer("traffic", "itemsize on the last term only", [("(product + addition + relu) * itemsize", "product + addition + relu * itemsize")], "parentheses are missing: multiply the sum"),
    Answer("traffic", "written out", [("product + addition + relu", "M * K + K * N + 6 * M * N"), ("2 * M * N * K + 2 * M * N", "2 * M * N * (K + 1)")], None),
    Answer("copy_tiles", "columns by BLOCK_M", [("tl.program_id(1) * BLOCK_N", "tl.program_id(1) * BLOCK_M")], r"program \(0, 1\): line \d+ loads X from column"),
    Answer("copy_tiles", "both from axis 0", [("tl.program_id(1)", "tl.program_id(0)")], r"program \(0, 1\): line \d+ loads X from column 0"),
    Answer("copy_tiles", "y with x's strides", [(Y_TILE, Y_TILE.replace("stride_y", "stride_x"))], r"line \d+ steps through Y by 160 per row and by"),
    Answer("copy_tiles", "x's two strides swapped", [(X_TILE, "x_ptr + rows[:, None] * stride_xn + columns[None, :] * stride_xm")], r"line \d+ steps through X by 1 per row and by"),
    Answer("copy_tiles", "no offset of the tile in y", [("y_tile = " + Y_TILE, "y_tile = y_ptr + tl.arange(0, BLOCK_M)[:, None] * stride_ym + tl.arange(0, BLOCK_N)[None, :] * stride_yn")], r"program \(0, 1\): line \d+ stores Y from column"),
    Answer("copy_tiles", "row and column stride left out", [(X_TILE, "x_ptr + rows[:, None] + columns[None, :]")], r"line \d+ steps through X by 1 per row and by 1"),
    Answer("copy_tiles", "copies x onto itself", [("tl.store(y_tile", "tl.store(x_tile")], r"line \d+ stores to x_ptr\."),
    Answer("copy_tiles", "one step of pointers", [("x_tile = " + X_TILE, "x_tile = x_ptr + (rows * stride_xm)[:, None] + (columns * stride_xn)[None, :]")], None),
    Answer("tile_matmul", "never advances along K", [("k = start + tl.arange(0, BLOCK_K)", "k = tl.arange(0, BLOCK_K)")], r"program \(0, 0\) loads the same block of A in"),
    Answer("tile_matmul", "overwrites acc", [("tl.dot(a, b, acc, input", "tl.dot(a, b, input")], "only the last step counts; add each"),
    Answer("tile_matmul", "TF32", [('acc, input_precision="ieee"', "acc")], r'tl\.dot without input_precision="ieee"\.'),
    Answer("tile_matmul", "adds acc twice", [(DOT, 'acc += tl.dot(a, b, acc, input_precision="ieee")')], r"acc \+= tl\.dot\(a, b, acc\) adds acc twice;"),
    Answer("tile_matmul", "b's strides swapped", [("k[:, None] * stride_bk + columns[None, :] * stride_bn", "k[:, None] * stride_bn + columns[None, :] * stride_bk")], r"line \d+ steps through B by 1 per k and by 192"),
    Answer("tile_matmul", "a by columns' stride twice", [("rows[:, None] * stride_am + k[None, :] * stride_ak", "rows[:, None] * stride_ak + k[None, :] * stride_ak")], r"line \d+ steps through A by 1 per row and by 1"),
    Answer("tile_matmul", "rounds the accumulator in every step", [(DOT, DOT + "\n        acc = acc.to(d_ptr.dtype.element_ty).to(tl.float32)")], "the sum is rounded to float16 in every step;"),
    Answer("tile_matmul", "stores in each step before the product", [("range(0, K, BLOCK_K)", "range(0, K - BLOCK_K, BLOCK_K)")], r"program \(0, 0\) makes 4 steps of BLOCK_K = 16"),
    Answer("tile_matmul", "store as float16 always", [(TO_D, "acc.to(tl.float16)")], "D is rounded to float16 although it is"),
    Answer("tile_matmul", "steps of BLOCK_N along K", [("range(0, K, BLOCK_K)", "range(0, K, BLOCK_N)")], r"program \(0, 0\), step 1 along K: line \d+ loads"),
    Answer("tile_matmul", "acc += without acc", [(DOT, 'acc += tl.dot(a, b, input_precision="ieee")')], None),
    Answer("tile_matmul", "pointers moved on", [("    for start in range(0, K, BLOCK_K):\n        k = start + tl.arange(0, BLOCK_K)", "    for step in range(0, tl.cdiv(K, BLOCK_K)):\n        k = step * BLOCK_K + tl.arange(0, BLOCK_K)")], None),
    Answer("masked_matmul", "a masked along K only", [(A_MASK, "k[None, :] < K")], r"line \d+ loads A with a mask that lets through"),
    Answer("masked_matmul", "b masked along N only", [(B_MASK, "columns[None, :] < N")], r"line \d+ loads B with a mask that lets through"),
    Answer("masked_matmul", "other=1", [(A_MASK + ", other=0.0", A_MASK + ", other=1.0"), (B_MASK + ", other=0.0", B_MASK + ", other=1.0")], r"masked elements count as 1; with other=0\.0"),
    Answer("masked_matmul", "no other at all", [(A_MASK + ", other=0.0", A_MASK), (B_MASK + ", other=0.0", B_MASK)], "masked elements of the last step are not 0;"),
    Answer("masked_matmul", "M and N swapped in the store's mask", [(D_MASK, "(rows[:, None] < N) & (columns[None, :] < M)")], r"line \d+ stores D with a mask that leaves out"),
    Answer("masked_matmul", "store masked on rows only", [(D_MASK, "rows[:, None] < M")], r"line \d+ stores D with a mask that lets"),
    Answer("masked_matmul", "masks k with K − 1", [("k[None, :] < K", "k[None, :] < K - 1")], r"line \d+ loads A with a mask that leaves out k"),
    Answer("masked_matmul", "a's mask with N for K", [(A_MASK, "(rows[:, None] < M) & (k[None, :] < N)")], r"line \d+ loads A with a mask that lets through"),
    Answer("masked_matmul", "K masks in a alone", [(B_MASK, "columns[None, :] < N")], r"line \d+ loads B with a mask that lets through"),
    Answer("masked_matmul", "int zero and masks by name", [("a = tl.load(a_tile, mask=" + A_MASK + ", other=0.0)", "inner = k < K\n        a = tl.load(a_tile, mask=(rows < M)[:, None] & inner[None, :], other=0)")], None),
    Answer("matmul_add_relu", "ReLU before C", [("tl.maximum(acc + c, 0.0)", "tl.maximum(acc, 0.0) + c")], "the ReLU comes before C is added"),
    Answer("matmul_add_relu", "minimum", [("tl.maximum(acc + c", "tl.minimum(acc + c")], "the kernel takes the smaller of the sum and 0;"),
    Answer("matmul_add_relu", "subtracts C", [("acc + c", "acc - c")], "C is subtracted"),
    Answer("matmul_add_relu", "C through d's strides", [("c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn", "c_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn")], r"line \d+ steps through C by 130 per row and by"),
    Answer("matmul_add_relu", "rounds the product before C", [("tl.maximum(acc + c, 0.0)", "tl.maximum(acc.to(c.dtype) + c, 0.0)")], "the product is rounded to float16 before C is"),
    Answer("matmul_add_relu", "C added in every K step", [("    # 1. Load this", "    # 1. Load this"), (DOT3, "        inside = " + D_MASK + "\n        acc += tl.load(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, mask=inside, other=0.0)\n" + DOT3), ("tl.maximum(acc + c, 0.0)", "tl.maximum(acc, 0.0)")], "C is added in every step of the K loop"),
    Answer("matmul_add_relu", "ReLU's result dropped", [("acc = tl.maximum(acc + c, 0.0)", "acc += c\n    tl.maximum(acc, 0.0)")], r"nothing uses the result of `tl\.maximum\(acc,"),
    Answer("matmul_add_relu", "C as a bias row", [("rows[:, None] * stride_cm + columns[None, :] * stride_cn, mask=inside", "columns[None, :] * stride_cn, mask=columns[None, :] < N")], r"line \d+ loads a block of 1×32 elements of C,"),
    Answer("matmul_add_relu", "C transposed", [("rows[:, None] * stride_cm + columns[None, :] * stride_cn", "rows[:, None] * stride_cn + columns[None, :] * stride_cm")], r"line \d+ steps through C by 1 per row and by"),
    Answer("matmul_add_relu", "where for maximum", [("tl.maximum(acc + c, 0.0)", "acc + c\n    acc = tl.where(acc > 0, acc, 0.0)")], None),
    Answer("tile_order", "row by row", [("first_row + place % group_rows, place // group_rows", "pid // tiles_n, pid % tiles_n")], "this is plain row order; within a group the"),
    Answer("tile_order", "the last group not shortened", [("tl.minimum(tiles_m - first_row, GROUP_M)", "GROUP_M")], "the last group has fewer rows than GROUP_M:"),
    Answer("tile_order", "groups counted with tiles_m", [("pid // (GROUP_M * tiles_n)", "pid // (GROUP_M * tiles_m)")], "a group has GROUP_M · tiles_n programs"),
    Answer("tile_order", "walks along rows within the group", [("first_row + place % group_rows, place // group_rows", "first_row + place // tiles_n, place % tiles_n")], "this is plain row order; within a group the"),
    Answer("tile_order", "forgets first_row", [("first_row + place % group_rows", "place % group_rows")], "the group's first row is not added to the row"),
    Answer("tile_order", "place not within the group", [("place = pid - group * GROUP_M * tiles_n", "place = pid")], "the place within a group counts from the"),
    Answer("tile_order", "row and column swapped", [("first_row + place % group_rows, place // group_rows", "place // group_rows, first_row + place % group_rows")], "row and column are swapped"),
    Answer("tile_order", "maximum of what is left", [("tl.minimum", "tl.maximum")], "the smaller of GROUP_M and the remaining rows:"),
    Answer("tile_order", "by remainder", [("pid - group * GROUP_M * tiles_n", "pid % (GROUP_M * tiles_n)")], None),
    Answer("silu_matmul", "sigmoid of the product without bias", [("acc * tl.sigmoid(acc)", "acc * tl.sigmoid(acc - bias[None, :])")], "the bias is not in the sigmoid; both factors", SILU),
    Answer("silu_matmul", "sigmoid only", [("acc = acc * tl.sigmoid(acc)", "acc = tl.sigmoid(acc)")], r"only the sigmoid: SiLU\(x\) = x · sigmoid\(x\)", SILU),
    Answer("silu_matmul", "bias along rows", [("bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)", "bias = tl.load(bias_ptr + rows, mask=rows < N, other=0.0)"), ("acc += bias[None, :]", "acc += bias[:, None]")], r"line \d+ loads bias along the rows; element j", SILU),
    Answer("silu_matmul", "bias after SiLU", [("    acc += bias[None, :]\n    acc = acc * tl.sigmoid(acc)", "    acc = acc * tl.sigmoid(acc)\n    acc += bias[None, :]")], "the bias is added after the SiLU", SILU),
    Answer("silu_matmul", "ReLU as before", [("acc * tl.sigmoid(acc)", "tl.maximum(acc, 0.0)")], r"a ReLU, not a SiLU: SiLU\(x\) = x · sigmoid\(x\)", SILU),
    Answer("silu_matmul", "sign in the exponential", [("acc * tl.sigmoid(acc)", "acc / (1 + tl.exp(acc))")], "a sign is wrong: this is x", SILU),
    Answer("silu_matmul", "the exponential by hand", [("acc * tl.sigmoid(acc)", "acc / (1 + tl.exp(-acc))")], None, SILU),
]
