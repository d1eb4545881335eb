"""Answers to lab 00."""

from tests.unseen.answers import TRITON, Answer

RMS = TRITON + '''
@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, N, stride_xm, stride_xn, stride_ym, stride_yn, eps,
                    BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=0.0).to(tl.float32)
        squares += x * x
    rms = tl.sqrt(tl.sum(squares) / N + eps)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=0.0).to(tl.float32)
        y = x / rms
        tl.store(y_ptr + row * stride_ym + columns * stride_yn, y.to(y_ptr.dtype.element_ty), mask=columns < N)


def rms_norm(x, eps=1e-6, BLOCK=128):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rms_norm_kernel[(M,)](x, y, N, *x.stride(), *y.stride(), eps, BLOCK=BLOCK)
    return y
'''

CEIL = "(n + BLOCK - 1) // BLOCK"
ELEMENTS = "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
Y_TILE = "y_ptr + rows[:, None] * stride_ym + columns[None, :] * stride_yn"
X_TILE = "x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn"
LOAD = "tl.load(x_ptr + row * stride_m + columns * stride_n, mask=columns < N, other=0.0)"
BOUND = '"compute" if flops / peak_flops >= moved / bandwidth else "memory"'

ANSWERS = [
    Answer("programs_needed", "a float from true division", [(CEIL, "n / BLOCK")], "/ returns a float, // an int"),
    Answer("programs_needed", "ceil of a floor", [("return", "import math\n    return"), (CEIL, "math.ceil(n // BLOCK)")], "// rounds down; the last, partial block needs"),
    Answer("programs_needed", "adds BLOCK, not BLOCK − 1", [(CEIL, "(n + BLOCK) // BLOCK")], "one is added even if BLOCK divides n"),
    Answer("programs_needed", "rounds to the nearest", [(CEIL, "round(n / BLOCK)")], r"round\(\) rounds to the nearest integer; even"),
    Answer("programs_needed", "swaps n and BLOCK", [(CEIL, "(BLOCK + n - 1) // n")], "n and BLOCK are swapped"),
    Answer("programs_needed", "the remainder instead of the quotient", [(CEIL, "n // BLOCK + n % BLOCK")], "the remainder needs one more program, not"),
    Answer("programs_needed", "a float from math.ceil's cousin", [("return", "import numpy as np\n    return"), (CEIL, "np.ceil(n / BLOCK)")]),
    Answer("programs_needed", "divmod", [("return " + CEIL, "full, rest = divmod(n, BLOCK)\n    return full + (rest > 0)")], None),
    Answer("programs_needed", "negative floor", [(CEIL, "-(-n // BLOCK)")], None),
    Answer("vector_add", "multiplies", [("x + y, mask", "x * y, mask")], "this is a product, not a sum"),
    Answer("vector_add", "x twice", [("tl.load(y_ptr", "tl.load(x_ptr")], "both loads read x"),
    Answer("vector_add", "stores into x", [("tl.store(z_ptr", "tl.store(x_ptr")], "an in-place operation, out=x, or a store into"),
    Answer("vector_add", "mask <= n", [("elements < n", "elements <= n")], "the mask on that line is too wide, or an"),
    Answer("vector_add", "mask compares the block's place, not the element", [("exists = elements < n", "exists = tl.arange(0, BLOCK) < n")], "the mask on that line is too wide, or an"),
    Answer("vector_add", "no mask on the loads", [("x_ptr + elements, mask=exists", "x_ptr + elements"), ("y_ptr + elements, mask=exists", "y_ptr + elements")], r"the tl\.load on that line has no mask, or an"),
    Answer("vector_add", "program id without BLOCK", [(ELEMENTS, "tl.program_id(0) + tl.arange(0, BLOCK)")], "a block starts at program id × BLOCK, not at"),
    Answer("vector_add", "stores at the block's own places", [("tl.store(z_ptr + elements", "tl.store(z_ptr + tl.arange(0, BLOCK)")], "every program works on the same elements"),
    Answer("vector_add", "adds the pointers' offsets instead of values", [("x + y, mask", "x + elements, mask")]),
    Answer("vector_add", "mask with n − 1", [("elements < n", "elements < n - 1")], "the mask leaves out the last element: use"),
    Answer("vector_add", "mask by range comparison", [("exists = elements < n", "exists = (elements >= 0) & (elements <= n - 1)")], None),
    Answer("vector_add", "other=0 and pid named", [("elements = " + ELEMENTS, "pid = tl.program_id(axis=0)\n    elements = tl.arange(0, BLOCK) + BLOCK * pid"), ("tl.load(x_ptr + elements, mask=exists)", "tl.load(x_ptr + elements, mask=exists, other=0)")], None),
    Answer("transpose_copy", "y's strides swapped", [(Y_TILE, "y_ptr + rows[:, None] * stride_yn + columns[None, :] * stride_ym")], "this is a plain copy of X: swap rows and"),
    Answer("transpose_copy", "x's strides for y", [(Y_TILE, "y_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn")], "this is a plain copy of X: swap rows and"),
    Answer("transpose_copy", "rows by BLOCK_N", [("tl.program_id(0) * BLOCK_M", "tl.program_id(0) * BLOCK_N")], "the rows use BLOCK_N in place of BLOCK_M"),
    Answer("transpose_copy", "program ids swapped", [("rows = tl.program_id(0)", "rows = tl.program_id(1)"), ("columns = tl.program_id(1)", "columns = tl.program_id(0)")], "the two program ids are swapped: axis 0"),
    Answer("transpose_copy", "mask with M and N swapped", [("(rows[:, None] < M) & (columns[None, :] < N)", "(rows[:, None] < N) & (columns[None, :] < M)")], "the mask on that line is too wide, or an"),
    Answer("transpose_copy", "mask joined with |", [("< M) & (", "< M) | (")], r"`\|` lets an element through if it is inside one"),
    Answer("transpose_copy", "column mask only", [("(rows[:, None] < M) & (columns[None, :] < N)", "(columns[None, :] < N) & (rows[:, None] >= 0)")], "the mask on that line is too wide, or an"),
    Answer("transpose_copy", "assumes x contiguous", [(X_TILE, "x_ptr + rows[:, None] * N + columns[None, :]")], "the mask on that line is too wide, or an"),
    Answer("transpose_copy", "forgets the store's mask", [("mask=exists), mask=exists)", "mask=exists))")], r"the tl\.store on that line has no mask, or an"),
    Answer("transpose_copy", "transposes the tile by tl.trans and y's indices too", [("tl.store(y_tile, tl.load(x_tile, mask=exists), mask=exists)", "tl.store(y_tile, tl.trans(tl.load(x_tile, mask=exists)), mask=exists)")], "each tile is transposed twice: by Y's"),
    Answer("transpose_copy", "tl.trans, with pointers and a mask of the transposed tile", [(Y_TILE, "y_ptr + columns[:, None] * stride_yn + rows[None, :] * stride_ym"), ("tl.store(y_tile, tl.load(x_tile, mask=exists), mask=exists)", "tl.store(y_tile, tl.trans(tl.load(x_tile, mask=exists)), mask=(columns[:, None] < N) & (rows[None, :] < M))")], None),
    Answer("transpose_copy", "offsets first, then bases", [("x_tile = " + X_TILE, "x_tile = x_ptr + (rows * stride_xm)[:, None] + (columns * stride_xn)[None, :]")], None),
    Answer("row_sum", "ignores the column stride", [("columns * stride_n", "columns")], "the kernel assumes that X's column stride is 1"),
    Answer("row_sum", "overwrites the total", [("total += tl.load", "total = tl.load")], "only the last block counts: add to the"),
    Answer("row_sum", "accumulates in float16", [("dtype=tl.float32", "dtype=tl.float16")], "the sum goes through float16, whose"),
    Answer("row_sum", "accumulates in X's dtype", [("dtype=tl.float32", "dtype=x_ptr.dtype.element_ty")], "the sum goes through float16, whose"),
    Answer("row_sum", "no loop: the first block only", [("range(0, N, BLOCK)", "range(0, BLOCK, BLOCK)")], "only the first block of each row is added:"),
    Answer("row_sum", "the loop steps by one", [("range(0, N, BLOCK)", "range(0, N)")], "the loop advances by one column: use"),
    Answer("row_sum", "loop over whole blocks only", [("range(0, N, BLOCK)", "range(0, N // BLOCK * BLOCK, BLOCK)")], "the last, partial block is missing"),
    Answer("row_sum", "other=1", [("other=0.0", "other=1.0")], r"masked elements count as 1: use other=0\.0"),
    Answer("row_sum", "mean instead of sum", [("tl.sum(total)", "tl.sum(total) / N")], "this is the mean, not the sum"),
    Answer("row_sum", "max instead of sum", [("tl.sum(total)", "tl.max(total)")], "this is the largest of the partial sums: use"),
    Answer("row_sum", "row times N", [("row * stride_m", "row * N")], "the mask on that line is too wide, or an"),
    Answer("row_sum", "stores at y_ptr for all", [("y_ptr + row", "y_ptr")], r"every program stores to y\[0\]: the pointer is"),
    Answer("row_sum", "scalar accumulator", [("tl.zeros((BLOCK,), dtype=tl.float32)", "0.0"), ("total += " + LOAD, "total += tl.sum(" + LOAD + ".to(tl.float32))"), ("tl.sum(total)", "total")], None),
    Answer("row_sum", "moves the pointer on", [("row = tl.program_id(0)", "row = tl.program_id(0)\n    base = x_ptr + row * stride_m"), ("x_ptr + row * stride_m + columns", "base + columns")], None),
    Answer("five_operations", "a multiply-add as one FLOP", [("(2 * n * n, n", "(n * n, n"), ("(2 * n * n * 32", "(n * n * 32"), ("(2 * n**3", "(n**3")], "a multiply-add is two FLOPs"),
    Answer("five_operations", "forgets the written result of X + Y", [("(n * n, 3 * n * n)", "(n * n, 2 * n * n)")], "add the result, which is also written"),
    Answer("five_operations", "X·Y is n² FLOPs", [("2 * n**3", "2 * n**2")], "each of the n² elements of the product takes"),
    Answer("five_operations", "bound the wrong way round", [(BOUND, '"memory" if flops / peak_flops >= moved / bandwidth else "compute"')], "the comparison is reversed in every"),
    Answer("five_operations", "bound compares counts, not times", [(BOUND, '"compute" if flops >= moved else "memory"')], "FLOPs are compared with bytes; compare"),
    Answer("five_operations", "elements, not bytes", [("moved = elements * itemsize", "moved = elements")], "bytes are elements times itemsize"),
    Answer("five_operations", "bound from elements", [("moved / bandwidth", "elements / bandwidth")], "elements are divided by the bandwidth, not"),
    Answer("five_operations", "returns a list", [("return answer", "return list(answer.values())")], r"a list has no names; dict\(zip\(names, …\)\)"),
    Answer("five_operations", "V counted once", [("n * n + 2 * n * 32", "n * n + n * 32")], "add the result, which is also written"),
    Answer("five_operations", "row sums with n(n − 1) additions", [("(n * n, n * n + n)", "(n * (n - 1), n * n + n)")], "a sum of n numbers is counted as n additions"),
    Answer("five_operations", "by intensity", [(BOUND, '"compute" if flops / moved >= peak_flops / bandwidth else "memory"')], None),
    Answer("rms_norm", "the mean over BLOCK", [("/ N + eps", "/ BLOCK + eps")], "the sum of squares is divided by BLOCK, not", RMS),
    Answer("rms_norm", "eps outside the root", [("tl.sqrt(tl.sum(squares) / N + eps)", "tl.sqrt(tl.sum(squares) / N) + eps")], "eps is added outside the square root", RMS),
    Answer("rms_norm", "forgets eps", [(" / N + eps", " / N")], "eps is missing, or a constant replaces it", RMS),
    Answer("rms_norm", "divides by the mean square, no root", [("tl.sqrt(tl.sum(squares) / N + eps)", "tl.sum(squares) / N + eps")], "the square root is missing", RMS),
    Answer("rms_norm", "squares in X's dtype", [("other=0.0).to(tl.float32)\n        squares", "other=0.0)\n        squares")], "x² overflows in float16 above 256: convert", RMS),
    Answer("rms_norm", "subtracts the mean as LayerNorm does", [("y = x / rms", "y = (x - tl.sum(x) / N) / rms")], source=RMS),
    Answer("rms_norm", "y at x's strides", [("y_ptr + row * stride_ym + columns * stride_yn", "y_ptr + row * stride_xm + columns * stride_xn")], "the mask on that line is too wide, or an", RMS),
    Answer("rms_norm", "rsqrt", [("rms = tl.sqrt(tl.sum(squares) / N + eps)", "scale = tl.rsqrt(tl.sum(squares) / N + eps)"), ("x / rms", "x * scale")], None, RMS),
]
