"""Test that lab 02's checks name common mistakes, and accept correct answers that are written differently."""

import pytest

from labs_helpers.gemm.lab02 import checks as check
from labs_helpers.gemm.lab02 import exercises
from tests.gemm.lab02.classes_of_bugs import MORE_BUGS, MORE_DIFFERENT
from tests.gemm.lab02.exercises.ex7_silu_matmul import silu_matmul
from tests.planted import PlantedBugs

LOOP_START = "        k = start + tl.arange(0, BLOCK_K)\n"
DOT = 'acc = tl.dot(a, b, acc, input_precision="ieee")'
MASK_A = "mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0"
MASK_B = "mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0"
STORE_MASK = ", mask=(rows[:, None] < M) & (columns[None, :] < N))"

BUGS = [
    # traffic
    ("traffic", "multiply-add counted once", [("2 * M * N * K", "M * N * K")], "multiply-add is two"),
    ("traffic", "epilogue not counted", [(" + 2 * M * N\n", "\n")], "the sum with C and the maximum"),
    ("traffic", "elements, not bytes", [(") * itemsize", ")")], "elements times itemsize"),
    (
        "traffic",
        "intermediates forgotten",
        [("(product + addition + relu)", "(M * K + K * N + 2 * M * N)")],
        "this is fused_bytes|4 times M·N elements too few",
    ),
    ("traffic", "ReLU for free", [("+ relu)", ")")], "2 times M·N elements too few"),
    ("traffic", "ReLU in place", [("relu = 2 *", "relu = ")], "1 times M·N elements too few"),
    (
        "traffic",
        "C forgotten when fused",
        [("+ 2 * M * N) * itemsize\n    return", "+ M * N) * itemsize\n    return")],
        "still reads C",
    ),
    (
        "traffic",
        "nothing saved",
        [("fused_bytes = (M * K + K * N + 2 * M * N) * itemsize\n", "fused_bytes = unfused_bytes\n")],
        "never leave the registers",
    ),
    # copy_tiles
    (
        "copy_tiles",
        "ids swapped",
        [("program_id(0)", "program_id(2)"), ("program_id(1)", "program_id(0)"), ("program_id(2)", "program_id(1)")],
        "begins at row",
    ),
    (
        "copy_tiles",
        "no program id",
        [("tl.program_id(0) * BLOCK_M + ", ""), ("tl.program_id(1) * BLOCK_N + ", "")],
        "its tile begins at column 64",
    ),
    (
        "copy_tiles",
        "id not times the block",
        [("tl.program_id(0) * BLOCK_M", "tl.program_id(0)")],
        "its tile begins at row 32",
    ),
    (
        "copy_tiles",
        "strides swapped",
        [("* stride_xm + columns[None, :] * stride_xn", "* stride_xn + columns[None, :] * stride_xm")],
        "the two are swapped",
    ),
    (
        "copy_tiles",
        "X's strides for Y",
        [
            (
                "rows[:, None] * stride_ym + columns[None, :] * stride_yn",
                "rows[:, None] * stride_xm + columns[None, :] * stride_xn",
            )
        ],
        "where Y's strides are 128 and 1",
    ),
    (
        "copy_tiles",
        "column stride forgotten",
        [("columns[None, :] * stride_xn", "columns[None, :]")],
        "by 1 per row and by 1 per column, where X's strides are 1 and 256",
    ),
    (
        "copy_tiles",
        "every program the same source tile",
        [
            (
                "x_tile = x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn",
                "x_tile = x_ptr + tl.arange(0, BLOCK_M)[:, None] * stride_xm "
                "+ tl.arange(0, BLOCK_N)[None, :] * stride_xn",
            )
        ],
        "X from column 0 on; its tile begins at column 64",
    ),
    (
        "copy_tiles",
        "half of the grid",
        [("(M // BLOCK_M, N // BLOCK_N)", "(M // BLOCK_M, N // BLOCK_N // 2)")],
        "never written",
    ),
    # tile_matmul
    (
        "tile_matmul",
        "k does not advance",
        [(LOOP_START, "        k = tl.arange(0, BLOCK_K)\n")],
        "k does not advance",
    ),
    (
        "tile_matmul",
        "accumulator overwritten",
        [(DOT, 'acc = tl.dot(a, b, input_precision="ieee")')],
        "only the last step",
    ),
    (
        "tile_matmul",
        "last step missing",
        [("range(0, K, BLOCK_K)", "range(0, K - BLOCK_K, BLOCK_K)")],
        "makes 4 steps of BLOCK_K = 16 along K = 80; 5 are needed",
    ),
    (
        "tile_matmul",
        "first step missing",
        [("range(0, K, BLOCK_K)", "range(BLOCK_K, K, BLOCK_K)")],
        "from k = 16 on; this step begins at k = 0",
    ),
    (
        "tile_matmul",
        "strides of B swapped",
        [
            (
                "k[:, None] * stride_bk + columns[None, :] * stride_bn",
                "k[:, None] * stride_bn + columns[None, :] * stride_bk",
            )
        ],
        "B's strides are 192 and 1: the two are swapped",
    ),
    (
        "tile_matmul",
        "float16 accumulator",
        [("dtype=tl.float32", "dtype=tl.float16"), (DOT, "acc += tl.dot(a, b)")],
        "changes its dtype inside the loop",
    ),
    (
        "tile_matmul",
        "accumulation in float16",
        [("dtype=tl.float32", "dtype=tl.float16"), (DOT, "acc = tl.dot(a, b, acc, out_dtype=tl.float16)")],
        "accumulates in float16|accumulator",
    ),
    ("tile_matmul", "TF32", [(', input_precision="ieee"', "")], "TF32"),
    (
        "tile_matmul",
        "no tl.dot",
        [(DOT, "acc += tl.sum(a[:, :, None].to(tl.float32) * b[None, :, :], axis=1)")],
        "no tensor-core instruction",
    ),
    (
        "tile_matmul",
        "a program for half of the tiles",
        [("(M // BLOCK_M, N // BLOCK_N)", "(M // BLOCK_M, 1)")],
        "never written",
    ),
    (
        "tile_matmul",
        "A's strides taken as K and 1",
        [("rows[:, None] * stride_am + k[None, :] * stride_ak", "rows[:, None] * K + k[None, :]")],
        "by 128 per row and by 1 per k, where A's strides are 1 and 128",
    ),
    (
        "tile_matmul",
        "no store",
        [("    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty))", "    d_tile")],
        "the kernel never stores",
    ),
    ("tile_matmul", "@", [(DOT, "acc += a @ b")], "tl.dot"),
    (
        "tile_matmul",
        "torch in a kernel",
        [("tl.zeros(", "torch.zeros("), ("tl.float32", "torch.float32")],
        "the kernel calls a function of torch",
    ),
    (
        "tile_matmul",
        "B's block turned",
        [
            (
                "k[:, None] * stride_bk + columns[None, :] * stride_bn",
                "k[None, :] * stride_bk + columns[:, None] * stride_bn",
            )
        ],
        "tl.dot takes M × K and K × N, here",
    ),
    # masked_matmul
    (
        "masked_matmul",
        "no K mask on A",
        [(MASK_A, "mask=rows[:, None] < M, other=0.0")],
        r"load outside a_ptr: row 0, column 70 of 100×70",
    ),
    (
        "masked_matmul",
        "no N mask on B",
        [(MASK_B, "mask=k[:, None] < K, other=0.0")],
        "lets through column 130",
    ),
    (
        "masked_matmul",
        "no M mask on A",
        [(MASK_A, "mask=k[None, :] < K, other=0.0")],
        "lets through row 100",
    ),
    ("masked_matmul", "no mask on the store", [(STORE_MASK, ")")], "D without a mask and reaches column 130"),
    (
        "masked_matmul",
        "off by one",
        [("(k[None, :] < K)", "(k[None, :] <= K)")],
        "lets through k = 70",
    ),
    (
        "masked_matmul",
        "M and N swapped",
        [(STORE_MASK, ", mask=(rows[:, None] < N) & (columns[None, :] < M))")],
        "where D has 0 to",
    ),
    ("masked_matmul", "no other=", [(MASK_A, MASK_A[:-11]), (MASK_B, MASK_B[:-11])], "give both loads other=0.0"),
    (
        "masked_matmul",
        "K counted from the step",
        [("(k[None, :] < K)", "(k[None, :] < K - start)")],
        "leaves out k =",
    ),
    ("masked_matmul", "grid rounds down", [("triton.cdiv(M, BLOCK_M)", "max(1, M // BLOCK_M)")], "never written"),
    (
        "masked_matmul",
        "tail of K dropped",
        [("range(0, K, BLOCK_K)", "range(0, K // BLOCK_K * BLOCK_K, BLOCK_K)")],
        "4 steps of BLOCK_K = 16 along K = 70; 5 are needed",
    ),
    # matmul_add_relu
    (
        "matmul_add_relu",
        "ReLU first",
        [("tl.maximum(acc + c, 0.0)", "tl.maximum(acc, 0.0) + c")],
        "ReLU comes before C",
    ),
    ("matmul_add_relu", "no ReLU", [("tl.maximum(acc + c, 0.0)", "acc + c")], "ReLU is missing"),
    ("matmul_add_relu", "no C", [("tl.maximum(acc + c, 0.0)", "tl.maximum(acc, 0.0)")], "C is not added"),
    (
        "matmul_add_relu",
        "C in the loop",
        [
            (
                DOT,
                DOT + "\n        acc += tl.load(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, "
                "mask=(rows[:, None] < M) & (columns[None, :] < N), other=0.0)",
            ),
            ("acc = tl.maximum(acc + c, 0.0)", "acc = tl.maximum(acc, 0.0)"),
        ],
        "every step of the K loop",
    ),
    (
        "matmul_add_relu",
        "rounded too early",
        [("tl.maximum(acc + c, 0.0)", "tl.maximum(acc.to(d_ptr.dtype.element_ty) + c, 0.0)")],
        "rounded to float16 before C",
    ),
    (
        "matmul_add_relu",
        "D's strides for C",
        [
            (
                "rows[:, None] * stride_cm + columns[None, :] * stride_cn",
                "rows[:, None] * stride_dm + columns[None, :] * stride_dn",
            )
        ],
        "where C's strides are 162 and 1|where C's strides are 1 and 100",
    ),
    (
        "matmul_add_relu",
        "C without a mask",
        [(", mask=inside, other=0.0)", ")")],
        "C without a mask and reaches column 130",
    ),
    (
        "matmul_add_relu",
        "two stores",
        [
            (
                "    acc = tl.maximum(acc + c, 0.0)\n    d_tile = d_ptr + rows[:, None] * "
                "stride_dm + columns[None, :] * stride_dn\n",
                "    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * "
                "stride_dn\n    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty), mask=inside)\n"
                "    acc = tl.maximum(acc + c, 0.0)\n",
            )
        ],
        "goes through memory",
    ),
    (
        "matmul_add_relu",
        "ReLU in PyTorch",
        [("tl.maximum(acc + c, 0.0)", "acc + c"), ("    return d", "    return d.relu()")],
        "PyTorch made it|relu",
    ),
    # tile_order
    (
        "tile_order",
        "last group too tall",
        [("tl.minimum(tiles_m - first_row, GROUP_M)", "GROUP_M")],
        "last group has fewer rows than GROUP_M",
    ),
    (
        "tile_order",
        "row order",
        [("return first_row + place % group_rows, place // group_rows", "return pid // tiles_n, pid % tiles_n")],
        "plain row order",
    ),
    (
        "tile_order",
        "place counted from 0",
        [("place = pid - group * GROUP_M * tiles_n", "place = pid")],
        "counts from the group's first program",
    ),
    (
        "tile_order",
        "swapped",
        [
            (
                "return first_row + place % group_rows, place // group_rows",
                "return place // group_rows, first_row + place % group_rows",
            )
        ],
        "swapped|does not exist",
    ),
    (
        "tile_order",
        "column divided by GROUP_M",
        [("place // group_rows", "place // GROUP_M")],
        "divided by GROUP_M",
    ),
    (
        "tile_order",
        "across before down",
        [
            (
                "return first_row + place % group_rows, place // group_rows",
                "return first_row + place // tiles_n, place % tiles_n",
            )
        ],
        "plain row order",
    ),
    ("tile_order", "group of one row", [("GROUP_M * tiles_n)\n", "tiles_n)\n")], "pid // tiles_n is not its number"),
    # silu_matmul (the transfer exercise; its reference is beside this file)
    ("silu_matmul", "a ReLU", [("x / (1.0 + tl.exp(-x))", "tl.maximum(x, 0.0)")], "a ReLU, not a SiLU"),
    ("silu_matmul", "only the sigmoid", [("x / (1.0 + tl.exp(-x))", "1.0 / (1.0 + tl.exp(-x))")], "only the sigmoid"),
    (
        "silu_matmul",
        "bias last",
        [("x = acc + bias[None, :]", "x = acc"), ("x / (1.0 + tl.exp(-x))", "x / (1.0 + tl.exp(-x)) + bias[None, :]")],
        "added after the SiLU",
    ),
    ("silu_matmul", "no bias", [("x = acc + bias[None, :]", "x = acc")], "bias is missing"),
    ("silu_matmul", "a sign", [("tl.exp(-x)", "tl.exp(x)")], "a sign is wrong"),
    (
        "silu_matmul",
        "bias along the rows",
        [
            ("bias = tl.load(bias_ptr + columns, mask=columns < N", "bias = tl.load(bias_ptr + rows, mask=rows < M"),
            ("bias[None, :]", "bias[:, None]"),
        ],
        "along the rows",
    ),
    (
        "silu_matmul",
        "bias not masked",
        [(", mask=columns < N, other=0.0", "")],
        "bias without a mask and reaches column 130",
    ),
    (
        "silu_matmul",
        "bias in every step",
        [
            (DOT, DOT + "\n        acc += tl.load(bias_ptr + columns, mask=columns < N, other=0.0)[None, :]"),
            ("x = acc + bias[None, :]", "x = acc"),
        ],
        "bias is added in every step",
    ),
]

REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"silu_matmul": silu_matmul}

DIFFERENT = [
    (
        "traffic",
        [
            ("flops = 2 * M * N * K + 2 * M * N", "flops = M * N * (2 * K + 2)"),
            ("(product + addition + relu)", "(M * K + K * N + 6 * M * N)"),
        ],
    ),
    ("traffic", [("relu = 2 * M * N", "relu = M * N + M * N")]),
    ("copy_tiles", [("tl.store(y_tile, tl.load(x_tile))", "block = tl.load(x_tile)\n    tl.store(y_tile, block)")]),
    (
        "copy_tiles",
        [
            (
                "x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn",
                "(x_ptr + rows * stride_xm)[:, None] + (columns * stride_xn)[None, :]",
            )
        ],
    ),
    ("tile_matmul", [(DOT, 'acc += tl.dot(a, b, input_precision="ieee")')]),
    (
        "tile_matmul",
        [
            ("for start in range(0, K, BLOCK_K):", "for step in range(0, K // BLOCK_K):"),
            (LOOP_START, "        k = step * BLOCK_K + tl.arange(0, BLOCK_K)\n"),
        ],
    ),
    ("masked_matmul", [("range(0, K, BLOCK_K)", "range(0, tl.cdiv(K, BLOCK_K) * BLOCK_K, BLOCK_K)")]),
    (
        "masked_matmul",
        [
            (MASK_A, "mask=(k[None, :] < K) & (rows[:, None] < M), other=0.0"),
            (STORE_MASK, ", mask=(columns < N)[None, :] & (rows < M)[:, None])"),
        ],
    ),
    ("matmul_add_relu", [("tl.maximum(acc + c, 0.0)", "tl.where(acc + c > 0, acc + c, 0.0)")]),
    ("matmul_add_relu", [("acc = tl.maximum(acc + c, 0.0)", "acc += c\n    acc = tl.maximum(0.0, acc)")]),
    ("tile_order", [("place = pid - group * GROUP_M * tiles_n", "place = pid % (GROUP_M * tiles_n)")]),
    ("tile_order", [("tl.minimum(tiles_m - first_row, GROUP_M)", "min(GROUP_M, tiles_m - first_row)")]),
    ("silu_matmul", [("x / (1.0 + tl.exp(-x))", "x * tl.sigmoid(x)")]),
    ("silu_matmul", [("x = acc + bias[None, :]", "acc += bias[None, :]\n    x = acc")]),
]


@pytest.fixture(autouse=True)
def without_a_solver(request, monkeypatch):
    """Skip triton-viz's sanitizer, which takes two seconds, for all bugs but one."""
    if "no K mask on A" not in request.node.name:
        monkeypatch.setattr("labs_helpers.course.verdict.sanitizer.sanitize", lambda *_, **__: "")


class TestLab02(PlantedBugs):
    check, REFERENCES, BUGS, DIFFERENT = check, REFERENCES, BUGS + MORE_BUGS, DIFFERENT + MORE_DIFFERENT
