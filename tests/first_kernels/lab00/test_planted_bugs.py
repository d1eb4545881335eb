"""Each check of lab 00 names the mistakes that people make, and accepts right answers written differently."""

from labs_helpers.course.stub import BEGIN, END, cell_of
from labs_helpers.first_kernels.lab00 import checks as check
from labs_helpers.first_kernels.lab00 import exercises
from tests.first_kernels.lab00.exercises.ex5_rms_norm import rms_norm
from tests.planted import PlantedBugs

CEIL = "return (n + BLOCK - 1) // BLOCK"
ELEMENTS = "elements = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
ROWS = "rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)"
COLUMNS = "columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)"
BOTH = "(rows[:, None] < M) & (columns[None, :] < N)"
X_TILE = "x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn"
Y_TILE = "y_ptr + rows[:, None] * stride_ym + columns[None, :] * stride_yn"
ROW_LOAD = "tl.load(x_ptr + row * stride_m + columns * stride_n, mask=columns < N, other=0.0)"
LOOP = "for start in range(0, N, BLOCK):"
STEP = "columns = start + tl.arange(0, BLOCK)"
BOUND = '"compute" if flops / peak_flops >= moved / bandwidth else "memory"'
RMS = "rms = tl.sqrt(tl.sum(squares) / N + eps)"
RMS_LOAD = "tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=0.0).to(tl.float32)"
Y_ROW = "y_ptr + row * stride_ym + columns * stride_yn"

BUGS = [
    # programs_needed
    ("programs_needed", "exit", [(CEIL, "quit()")], "ends with return"),
    (
        "programs_needed",
        "no brackets",
        [(CEIL, "return n + BLOCK - 1 // BLOCK")],
        r"Python evaluates // before \+ and −: write \(n",
    ),
    (
        "five_operations",
        "rows exchanged",
        [
            (
                "(n * n, n * n + n),\n        (2 * n * n, n * n + 2 * n)",
                "(2 * n * n, n * n + 2 * n),\n        (n * n, n * n + n)",
            )
        ],
        "are swapped, or belong to other names",
    ),
    (
        "five_operations",
        "whole seconds",
        [("flops / peak_flops >= moved / bandwidth", "flops // peak_flops >= moved // bandwidth")],
        "every bound is 'compute'; does // round",
    ),
    ("row_sum", "a block per column", [("range(0, N, BLOCK)", "range(N)")], "the loop advances by one column: use"),
    ("row_sum", "a block stored", [("tl.sum(total)", "total")], "the store writes a block to one address"),
    ("rms_norm", "row 0 for all", [("x_ptr + row * stride_xm", "x_ptr")], "every program reads row 0"),
    (
        "rms_norm",
        "the store behind the loop",
        [("        tl.store(y_ptr", "    tl.store(y_ptr")],
        "only the last block is written: store inside",
    ),
    ("rms_norm", "no tl.sum", [("tl.sum(squares) / N", "squares / N")], "partial sums are not added up"),
    ("programs_needed", "rounds down", [(CEIL, "return n // BLOCK")], "// rounds down"),
    ("programs_needed", "one too many", [(CEIL, "return n // BLOCK + 1")], "one is added even if BLOCK divides n"),
    ("programs_needed", "a float", [(CEIL, "return n / BLOCK")], "/ returns a float, // an int"),
    ("programs_needed", "no return", [(CEIL, "programs = (n + BLOCK - 1) // BLOCK")], "the function returns nothing"),
    ("programs_needed", "n and BLOCK swapped", [(CEIL, "return (BLOCK + n - 1) // n")], "n and BLOCK are swapped"),
    ("programs_needed", "a program an element", [(CEIL, "return n")], "a program covers BLOCK elements, not one"),
    (
        "programs_needed",
        "rounds to the nearest",
        [(CEIL, "return round(n / BLOCK)")],
        r"round\(\) rounds to the nearest integer; even",
    ),
    (
        "programs_needed",
        "a fraction added",
        [(CEIL, "return int(n / BLOCK + 0.999)")],
        "adding a fraction before rounding down",
    ),
    (
        "programs_needed",
        "the rest added",
        [(CEIL, "return n // BLOCK + n % BLOCK")],
        "the remainder needs one more program, not",
    ),
    (
        "programs_needed",
        "compared last",
        [(CEIL, "return n // BLOCK + n % BLOCK > 0")],
        "Python evaluates a comparison last: put it",
    ),
    # vector_add
    (
        "vector_add",
        "no mask on the loads",
        [("elements, mask=exists)\n    y", "elements)\n    y")],
        r"load outside x_ptr: element 300(.|\n)*has no mask",
    ),
    ("vector_add", "no mask on the store", [("x + y, mask=exists", "x + y")], "store outside z_ptr"),
    ("vector_add", "off by one", [("elements < n", "elements <= n")], "load outside x_ptr"),
    ("vector_add", "no program id", [("tl.program_id(0) * BLOCK + ", "")], "never written(.|\n)*to the offsets"),
    ("vector_add", "id not times the block", [("program_id(0) * BLOCK", "program_id(0)")], "blocks overlap"),
    ("vector_add", "x twice", [("y_ptr + elements", "x_ptr + elements")], "both loads read x"),
    ("vector_add", "a difference", [("x + y, mask", "x - y, mask")], "this is a difference, not a sum"),
    ("vector_add", "grid rounds down", [("triton.cdiv(n, BLOCK)", "max(1, n // BLOCK)")], "the grid rounds down"),
    ("vector_add", "mask of the block", [("elements < n", "tl.arange(0, BLOCK) < n")], "outside x_ptr"),
    (
        "vector_add",
        "pointers added",
        [("tl.load(y_ptr + elements, mask=exists)", "y_ptr + elements")],
        r"line \d+: tl.store|line \d+: .*x \+ y",
    ),
    (
        "vector_add",
        "added in PyTorch",
        [("vector_add_kernel[grid](x, y, z, n, BLOCK=BLOCK)", "z = x + y")],
        "no Triton kernel",
    ),
    ("vector_add", "nothing returned", [("    return z\n", "")], "returned NoneType"),
    (
        "vector_add",
        "128 for BLOCK",
        [(ELEMENTS, ELEMENTS.replace("BLOCK", "128"))],
        "the number 128 is written in place of BLOCK",
    ),
    ("vector_add", "x overwritten", [("z = torch.empty_like(x)", "z = x")], "shares memory with the argument x"),
    (
        "vector_add",
        "the inputs changed too",
        [("    tl.store(z", "    tl.store(y_ptr + elements, y * 0, mask=exists)\n    tl.store(z")],
        "the function changed its argument y",
    ),
    (
        "vector_add",
        "the inputs changed too, whatever they are called",
        [
            (
                "def vector_add(x, y, BLOCK=128):\n",
                "def vector_add(*given, BLOCK=128):\n    x, y, *BLOCK = *given, BLOCK\n",
            ),
            ("BLOCK),)", "BLOCK[0]),)"),
            ("BLOCK=BLOCK)", "BLOCK=BLOCK[0])"),
            ("    tl.store(z", "    tl.store(y_ptr + elements, y * 0, mask=exists)\n    tl.store(z"),
        ],
        r"the function changed its argument given\[1\]",
    ),
    (
        "vector_add",
        "PyTorch adds into the output",
        [("    return z\n", "    torch.add(x, y, out=z)\n    return z\n")],
        "besides launching the kernel, the function",
    ),
    (
        "vector_add",
        "one element for each program",
        [(ELEMENTS, "elements = tl.program_id(0)"), ("(triton.cdiv(n, BLOCK),)", "(n,)")],
        "one at a time",
    ),
    (
        "vector_add",
        "a subscript",
        [("tl.load(x_ptr + elements, mask=exists)", "x_ptr[elements]")],
        "x_ptr is an address",
    ),
    (
        "vector_add",
        "z kept",
        [("z = torch.empty_like(x)", "z = globals().setdefault(f'z{len(x)}', torch.empty_like(x))")],
        "a second call overwrites",
    ),
    ("vector_add", "exit in the kernel", [("    exists =", "    exit()\n    exists =")], "ends with return"),
    ("vector_add", "exit", [("    return z", "    import sys\n    sys.exit()")], "SystemExit(.|\n)*ends with return"),
    (
        "vector_add",
        "one y for all",
        [("tl.load(y_ptr + elements, mask=exists)", "tl.load(y_ptr)")],
        "every element gets the same element of y",
    ),
    ("vector_add", "below BLOCK", [("elements < n", "elements < BLOCK")], "the mask compares with BLOCK"),
    # transpose_copy
    (
        "transpose_copy",
        "not transposed",
        [(Y_TILE, "y_ptr + rows[:, None] * stride_yn + columns[None, :] * stride_ym")],
        "plain copy of X",
    ),
    (
        "transpose_copy",
        "transposed twice",
        [(X_TILE, "x_ptr + rows[:, None] * stride_xn + columns[None, :] * stride_xm")],
        "plain copy of X",
    ),
    (
        "transpose_copy",
        "column stride forgotten",
        [(X_TILE, "x_ptr + rows[:, None] * stride_xm + columns[None, :]")],
        "outside x_ptr|column stride is 1",
    ),
    (
        "transpose_copy",
        "row stride forgotten",
        [(X_TILE, "x_ptr + rows[:, None] + columns[None, :] * stride_xn")],
        "the kernel assumes that X's row stride is 1",
    ),
    (
        "transpose_copy",
        "N mask missing",
        [(BOTH, "rows[:, None] < M")],
        "load outside x_ptr: row 0, column 70 of 37×70",
    ),
    ("transpose_copy", "M mask missing", [(BOTH, "columns[None, :] < N")], "load outside x_ptr: row 37"),
    (
        "transpose_copy",
        "M and N swapped in the mask",
        [(BOTH, "(rows[:, None] < N) & (columns[None, :] < M)")],
        "outside x_ptr|never written",
    ),
    ("transpose_copy", "store not masked", [("mask=exists), mask=exists)", "mask=exists))")], "store outside y_ptr"),
    (
        "transpose_copy",
        "ids swapped",
        [("program_id(0)", "program_id(2)"), ("program_id(1)", "program_id(0)"), ("program_id(2)", "program_id(1)")],
        "never written",
    ),
    (
        "transpose_copy",
        "every program the same source tile",
        [(X_TILE, "x_ptr + tl.arange(0, BLOCK_M)[:, None] * stride_xm + tl.arange(0, BLOCK_N)[None, :] * stride_xn")],
        r"every program copied tile \(0, 0\): compute",
    ),
    ("transpose_copy", "grid rounds down", [("triton.cdiv(N, BLOCK_N)", "max(1, N // BLOCK_N)")], "never written"),
    ("transpose_copy", "Python's and", [(BOTH, BOTH.replace("&", "and"))], "Python's `and` between two blocks"),
    (
        "transpose_copy",
        "& without brackets",
        [(BOTH, "rows[:, None] < M & columns[None, :] < N")],
        "& binds tighter than <",
    ),
    (
        "transpose_copy",
        "columns of BLOCK_M",
        [(COLUMNS, COLUMNS.replace("BLOCK_N", "BLOCK_M"))],
        "the columns use BLOCK_M in place of BLOCK_N",
    ),
    (
        "transpose_copy",
        "rows of BLOCK_N",
        [(ROWS, ROWS.replace("BLOCK_M", "BLOCK_N"))],
        "the rows use BLOCK_N in place of BLOCK_M",
    ),
    (
        "transpose_copy",
        "the grid from the other block",
        [("triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N)", "triton.cdiv(M, BLOCK_N), triton.cdiv(N, BLOCK_M)")],
        "the grid divides M by BLOCK_N",
    ),
    ("transpose_copy", "a view", [("    return y\n", "    return x.t()\n")], "shares memory with the argument x"),
    (
        "transpose_copy",
        "copied by PyTorch",
        [("    return y\n", "    y.copy_(x.t())\n    return y\n")],
        "besides launching the kernel, the function",
    ),
    (
        "transpose_copy",
        "not contiguous",
        [("torch.empty((N, M), dtype=x.dtype, device=x.device)", "torch.empty_like(x).t()")],
        r"it must be contiguous, like torch\.empty\(\(N",
    ),
    (
        "transpose_copy",
        "columns against M",
        [(BOTH, BOTH.replace("< N", "< M"))],
        "the mask compares columns with M; compare",
    ),
    # row_sum
    (
        "row_sum",
        "tail not masked",
        [("mask=columns < N, other=0.0", "other=0.0"), (", other=0.0", "")],
        "load outside x_ptr: row 0, column 300 of 5×300",
    ),
    (
        "row_sum",
        "no other=",
        [("mask=columns < N, other=0.0", "mask=columns < N")],
        r"masked elements are not 0: pass other=0\.0 to",
    ),
    ("row_sum", "start not used", [(STEP, "columns = tl.arange(0, BLOCK)")], "every step of the loop adds the same"),
    (
        "row_sum",
        "accumulator overwritten",
        [("total += tl.load", "total = tl.load")],
        "only the last block counts: add to the",
    ),
    ("row_sum", "no loop", [(LOOP, "for start in range(0, BLOCK, BLOCK):")], "only the first block"),
    (
        "row_sum",
        "tail dropped",
        [(LOOP, "for start in range(0, N // BLOCK * BLOCK, BLOCK):")],
        "the last, partial block is missing",
    ),
    (
        "row_sum",
        "float16 accumulator",
        [("dtype=tl.float32", "dtype=tl.float16"), (ROW_LOAD, ROW_LOAD + ".to(tl.float16)")],
        "float16, whose significand has 11 bits",
    ),
    (
        "row_sum",
        "summed in X's dtype",
        [("dtype=tl.float32", "dtype=x_ptr.dtype.element_ty")],
        "float16, whose significand has 11 bits",
    ),
    (
        "row_sum",
        "accumulator changes its dtype",
        [
            ("tl.zeros((BLOCK,), dtype=tl.float32)", "tl.zeros((BLOCK,), dtype=tl.float16)"),
            ("other=0.0)", "other=0.0).to(tl.float32)"),
        ],
        "changes its dtype inside the loop",
    ),
    ("row_sum", "always row 0", [("x_ptr + row * stride_m", "x_ptr")], "sums row 0"),
    (
        "row_sum",
        "column stride forgotten",
        [("columns * stride_n", "columns")],
        "outside x_ptr|column stride is 1",
    ),
    ("row_sum", "the mean", [("tl.sum(total))", "tl.sum(total) / N)")], "this is the mean, not the sum"),
    ("row_sum", "always y[0]", [("y_ptr + row,", "y_ptr,")], "every program stores to y"),
    ("row_sum", "result in X's dtype", [("dtype=torch.float32", "dtype=x.dtype")], "expected torch.float32"),
    (
        "row_sum",
        "one block of 512",
        [
            (LOOP, "for start in range(0, 512, 512):"),
            ("zeros((BLOCK,)", "zeros((512,)"),
            (STEP, "columns = tl.arange(0, 512)"),
        ],
        "only the first 512 columns",
    ),
    ("row_sum", "starts late", [(LOOP, "for start in range(BLOCK, N, BLOCK):")], "the first block is missing"),
    (
        "row_sum",
        "steps of 128",
        [(LOOP, "for start in range(0, N, 128):")],
        "the loop advances by the number 128 in place",
    ),
    (
        "row_sum",
        "steps of one column",
        [(LOOP, "for start in range(tl.cdiv(N, BLOCK)):")],
        "the loop advances by one column: use",
    ),
    (
        "row_sum",
        "atomically into torch.empty",
        [("tl.store(y_ptr", "tl.atomic_add(y_ptr")],
        r"tl\.atomic_add adds to the old value of y",
    ),
    (
        "row_sum",
        "summed by PyTorch",
        [("    return y\n", "    torch.sum(x, 1, out=y)\n    return y\n")],
        "besides launching the kernel, the function",
    ),
    # five_operations
    (
        "five_operations",
        "multiply-add counted once",
        [("2 * n * n, n * n + 2 * n)", "n * n, n * n + 2 * n)")],
        "a multiply-add is two FLOPs",
    ),
    ("five_operations", "elements, not bytes", [("elements * itemsize", "elements")], "elements times itemsize"),
    (
        "five_operations",
        "result not counted",
        [("(n * n, 3 * n * n)", "(n * n, 2 * n * n)")],
        "add the result, which is also written",
    ),
    ("five_operations", "only X counted", [("n * n + 2 * n)", "n * n)")], "only X is counted"),
    ("five_operations", "32 columns forgotten", [("2 * n * n * 32, n", "2 * n * n, n")], "V has 32 columns"),
    ("five_operations", "n² for a product", [("2 * n**3", "2 * n**2")], "takes n multiply-adds"),
    ("five_operations", "bound the wrong way round", [(">=", "<")], "the comparison is reversed in every"),
    (
        "five_operations",
        "bound from a fixed intensity",
        [(BOUND, '"compute" if flops / moved > 100 else "memory"')],
        "comes from both roofs",
    ),
    (
        "five_operations",
        "bound by feeling",
        [(BOUND, '"compute" if name == "X · Y" else "memory"')],
        "the bound depends only on the operation's",
    ),
    (
        "five_operations",
        "4 bytes always",
        [("elements * itemsize", "elements * 4")],
        "a number computed for n = 48 or for 4 bytes",
    ),
    (
        "five_operations",
        "one operation missing",
        [("    return answer", '    del answer["X · v"]\n    return answer')],
        "a dict with the keys",
    ),
    (
        "five_operations",
        "a capital letter",
        [('"compute" if', '"Compute" if')],
        "the words are 'memory' and 'compute', in",
    ),
    (
        "five_operations",
        "other dots",
        [("answer[name] =", 'answer[name.replace("·", "*")] =')],
        "take them from `names`",
    ),
    (
        "five_operations",
        "divided crosswise",
        [(BOUND, BOUND.replace("peak_flops >= moved / bandwidth", "bandwidth >= moved / peak_flops"))],
        "crosswise",
    ),
    # rms_norm (the transfer exercise; its reference is beside this file)
    (
        "rms_norm",
        "no root",
        [("tl.sqrt(tl.sum(squares) / N + eps)", "tl.sum(squares) / N + eps")],
        "square root is missing",
    ),
    ("rms_norm", "sum, not mean", [("tl.sum(squares) / N", "tl.sum(squares)")], "divide by N"),
    ("rms_norm", "no eps", [(" / N + eps)", " / N)")], "eps is missing"),
    ("rms_norm", "eps outside the root", [(RMS, "rms = tl.sqrt(tl.sum(squares) / N) + eps")], "eps is added outside"),
    (
        "rms_norm",
        "divided by the padded length",
        [(RMS, "rms = tl.sqrt(tl.sum(squares) / (tl.cdiv(N, BLOCK) * BLOCK) + eps)")],
        "padded length",
    ),
    (
        "rms_norm",
        "squares in float16",
        [("        squares += x * x", "        h = x.to(x_ptr.dtype.element_ty)\n        squares += h * h")],
        "overflows in float16",
    ),
    (
        "rms_norm",
        "float16 accumulator",
        [("tl.zeros((BLOCK,), dtype=tl.float32)", "tl.zeros((BLOCK,), dtype=tl.float16)")],
        "changes its dtype inside the loop",
    ),
    (
        "rms_norm",
        "a LayerNorm",
        [
            ("y = (x / rms)", "y = ((x - mean) / rms)"),
            (RMS, "mean = total / N\n    rms = tl.sqrt(tl.sum(squares) / N - mean * mean + eps)"),
            ("        squares += x * x", "        squares += x * x\n        total += tl.sum(x)"),
            ("    squares = tl.zeros", "    total = 0.0\n    squares = tl.zeros"),
        ],
        "the mean is subtracted, as in LayerNorm; RMS",
    ),
    ("rms_norm", "multiplied", [("x / rms", "x * rms")], "instead of divided"),
    (
        "rms_norm",
        "only the first block",
        [
            (
                "    for start in range(0, N, BLOCK):\n        columns = start + tl.arange("
                "0, BLOCK)\n        x = " + RMS_LOAD + "\n        squares",
                "    for start in range(0, BLOCK, BLOCK):\n        columns = start + "
                "tl.arange(0, BLOCK)\n        x = " + RMS_LOAD + "\n        squares",
            )
        ],
        "the mean covers only the first 128 columns",
    ),
    ("rms_norm", "X's strides for Y", [(Y_ROW, "y_ptr + row * stride_xm + columns * stride_xn")], "outside y_ptr"),
    ("rms_norm", "store not masked", [("y, mask=columns < N)", "y)")], "store outside y_ptr"),
    ("rms_norm", "float32 result", [("dtype=x.dtype", "dtype=torch.float32")], "the result has X's dtype"),
    (
        "rms_norm",
        "normalized in two kernels",
        [
            (
                "    return y\n",
                "    rms_norm_kernel[(M,)](x, y, N, *x.stride(), *y.stride(), eps, BLOCK=BLOCK)\n    return y\n",
            )
        ],
        "several|written by 2|kernels were launched",
    ),
    ("rms_norm", "a square by **", [("x * x", "x**2")], r"Triton has no \*\*"),
    ("rms_norm", "divided by BLOCK", [(RMS, RMS.replace("/ N", "/ BLOCK"))], "divided by BLOCK, not by N"),
    (
        "rms_norm",
        "eps with the sum",
        [(RMS, "rms = tl.sqrt((tl.sum(squares) + eps) / N)")],
        "eps is added to the sum, and thus divided by",
    ),
    (
        "rms_norm",
        "in place",
        [("y = torch.empty((M, N), dtype=x.dtype, device=x.device)", "y = x")],
        "shares memory with the argument x",
    ),
    (
        "rms_norm",
        "no other=",
        [(RMS_LOAD, RMS_LOAD.replace(", other=0.0", ""))],
        r"masked elements are not 0 in the mean: pass other=0\.0 to",
    ),
]

REFERENCES = {name: getattr(exercises, name) for name in exercises.__all__} | {"rms_norm": rms_norm}

RMS_BODY = cell_of(rms_norm).split(BEGIN)[1].split(END)[0]
ONE_PASS = """
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=0.0).to(tl.float32)
    rms = tl.sqrt(tl.sum(x * x) / N + eps)
    y = (x / rms).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * stride_ym + columns * stride_yn, y, mask=columns < N)
    """

DIFFERENT = [
    ("programs_needed", [(CEIL, "return -(-n // BLOCK)")]),
    ("programs_needed", [(CEIL, "return n // BLOCK + (n % BLOCK > 0)")]),
    ("vector_add", [(ELEMENTS, "first = BLOCK * tl.program_id(axis=0)\n    elements = first + tl.arange(0, BLOCK)")]),
    ("vector_add", [("elements < n", "~(elements >= n)")]),
    (
        "vector_add",
        [
            ("@triton.jit\n", '@triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])\n@triton.jit\n'),
            ("(triton.cdiv(n, BLOCK),)", 'lambda meta: (triton.cdiv(n, meta["BLOCK"]),)'),
            ("z, n, BLOCK=BLOCK)", "z, n)"),
        ],
    ),
    (
        "vector_add",
        [
            (
                "    elements = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    exists = elements < n\n"
                "    x = tl.load(x_ptr + elements, mask=exists)\n    y = tl.load(y_ptr + elements, mask=exists)\n"
                "    tl.store(z_ptr + elements, x + y, mask=exists)",
                "    x = tl.make_tensor_descriptor(x_ptr, shape=[n], strides=[1], block_shape=[BLOCK])\n"
                "    y = tl.make_tensor_descriptor(y_ptr, shape=[n], strides=[1], block_shape=[BLOCK])\n"
                "    z = tl.make_tensor_descriptor(z_ptr, shape=[n], strides=[1], block_shape=[BLOCK])\n"
                "    first = tl.program_id(0) * BLOCK\n"
                "    z.store([first], x.load([first]) + y.load([first]))",
            )
        ],
    ),
    ("vector_add", [("mask=exists)\n    y", "mask=exists, other=0.0)\n    y"), ("BLOCK=128", "BLOCK=32")]),
    (
        "transpose_copy",
        [
            (
                "tl.store(y_tile, tl.load(x_tile, mask=exists), mask=exists)",
                "block = tl.trans(tl.load(x_tile, mask=exists))\n    tl.store(y_ptr + columns[:, None] * "
                "stride_yn + rows[None, :] * stride_ym, block, mask=tl.trans(exists))",
            )
        ],
    ),
    (
        "transpose_copy",
        [
            (X_TILE, "(x_ptr + rows * stride_xm)[:, None] + (columns * stride_xn)[None, :]"),
            (BOTH, "(rows < M)[:, None] & (columns < N)[None, :]"),
        ],
    ),
    ("transpose_copy", [("BLOCK_M=32, BLOCK_N=32", "BLOCK_M=16, BLOCK_N=64")]),
    (
        "row_sum",
        [
            ("total = tl.zeros((BLOCK,), dtype=tl.float32)", "total = 0.0"),
            ("total += " + ROW_LOAD, "total += tl.sum(" + ROW_LOAD + ".to(tl.float32))"),
            ("tl.sum(total)", "total"),
        ],
    ),
    (
        "row_sum",
        [(LOOP, "for step in range(tl.cdiv(N, BLOCK)):"), (STEP, "columns = step * BLOCK + tl.arange(0, BLOCK)")],
    ),
    ("five_operations", [(BOUND, '"memory" if flops / moved < peak_flops / bandwidth else "compute"')]),
    (
        "five_operations",
        [
            ("2 * n**3", "2 * n * n * n"),
            ("(n * n, 3 * n * n)", "(n**2, n * n + 2 * n**2)"),
            ("moved = elements * itemsize", "moved = itemsize * elements"),
        ],
    ),
    ("rms_norm", [("x / rms", "x * (1.0 / rms)")]),
    ("rms_norm", [(RMS_BODY, ONE_PASS), ("eps, BLOCK=BLOCK)", "eps, BLOCK=triton.next_power_of_2(N))")]),
    ("rms_norm", [(RMS, "rms = 1.0 / tl.rsqrt(tl.sum(squares) / N + eps)")]),
]


class TestLab00(PlantedBugs):
    check, REFERENCES, BUGS, DIFFERENT = check, REFERENCES, BUGS, DIFFERENT
