"""Planted bugs of lab 02 by kind: changed inputs, default blocks only, strides, PyTorch's work, values, orders."""

DOT = 'acc = tl.dot(a, b, acc, input_precision="ieee")'
ZEROS = "tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)"
A_OFFSETS = "rows[:, None] * stride_am + k[None, :] * stride_ak"
B_OFFSETS = "k[:, None] * stride_bk + columns[None, :] * stride_bn"
MASK_A = "mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0"
MASK_B = "mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0"
RETURN = "    return d"
RELU, SILU = "tl.maximum(acc + c, 0.0)", "x / (1.0 + tl.exp(-x))"
EMPTY = "torch.empty((M, N), dtype=a.dtype, device=a.device)"
KEEPS, KEPT = "import torch\n", "KEPT = {}\n"
PLACE, COLUMN = "first_row + place % group_rows", "place // group_rows"

MORE_BUGS = [
    # an input is changed or returned
    ("copy_tiles", "y is x", [("torch.empty((M, N), dtype=x.dtype, device=x.device)", "x")], "shares memory with the"),
    ("copy_tiles", "x emptied", [("    return y", "    x.zero_()\n    return y")], "changed its argument x"),
    ("tile_matmul", "A scaled in place", [(RETURN, f"    a.mul_(2)\n{RETURN}")], "changed its argument a"),
    ("matmul_add_relu", "D is C", [(EMPTY, "c")], "shares memory with the argument c"),
    # right only for the default blocks
    ("copy_tiles", "rows times 32", [("program_id(0) * BLOCK_M", "program_id(0) * 32")], "begins at row 16"),
    ("tile_matmul", "accumulator turned", [(ZEROS, "tl.zeros((BLOCK_N, BLOCK_M), tl.float32)")], "not BLOCK_M"),
    ("tile_matmul", "K in steps of 32", [("range(0, K, BLOCK_K)", "range(0, K, 32)")], "k = 32 on; this step"),
    ("tile_matmul", "columns by BLOCK_M", [("(1) * BLOCK_N", "(1) * BLOCK_M")], "begins at column 32"),
    ("tile_matmul", "grid turned", [("(M // BLOCK_M, N // BLOCK_N)", "(M // BLOCK_N, N // BLOCK_M)")], "need 2 × 6"),
    ("masked_matmul", "columns by BLOCK_M", [("(1) * BLOCK_N", "(1) * BLOCK_M")], "begins at column 32"),
    ("masked_matmul", "grid of 64", [("triton.cdiv(M, BLOCK_M)", "triton.cdiv(M, 64)")], "the grid has 1 × 2 programs"),
    ("matmul_add_relu", "columns by BLOCK_M", [("(1) * BLOCK_N", "(1) * BLOCK_M")], "begins at column 32"),
    ("silu_matmul", "k by 32", [("range(0, K, BLOCK_K)", "range(0, K, 32)")], "k = 32 on; this step begins at k = 16"),
    ("tile_matmul", "k in blocks of 32", [("range(0, K, BLOCK_K)", "range(0, K, 32)"),
                                          ("arange(0, BLOCK_K)", "arange(0, 32)")], "BLOCK_M × BLOCK_K is 64×16"),
    ("silu_matmul", "rows of 64", [("(0) * BLOCK_M + tl.arange(0, BLOCK_M)", "(0) * 64 + tl.arange(0, 64)"),
                                   ("(BLOCK_M, BLOCK_N)", "(64, BLOCK_N)")], "BLOCK_M × BLOCK_.* is (16|128)×"),
    # kept from call to call
    ("copy_tiles", "kept", [("y = torch.empty(", "y = KEPT.setdefault((M, N), torch.empty("), (KEEPS, KEPT + KEEPS),
                            ("device=x.device)", "device=x.device))")], "a second call"),
    ("tile_matmul", "kept", [("d = torch.empty(", "d = KEPT.setdefault((M, N, a.dtype), torch.empty("),
                             ("device=a.device)", "device=a.device))"), (KEEPS, KEPT + KEEPS)], "a second call"),
    ("tile_order", "kept", [("order = torch.full(", "order = KEPT.setdefault((tiles_m, tiles_n), torch.full("),
                            ("device=device)", "device=device))"), (KEEPS, KEPT + KEEPS)], "a second call"),
    # no mask is needed, or the wrong tensor is read
    ("copy_tiles", "rows times columns", [("stride_xm + columns", "stride_xm * columns")], "all tiles fit here"),
    ("copy_tiles", "Y read", [("x_ptr + rows", "y_ptr + rows")], "loads from y_ptr"),
    ("tile_matmul", "A for B", [("b_ptr + k", "a_ptr + k")], "block of 16×32 elements of A"),
    ("tile_matmul", "float32 dot", [("tl.dot(a, b", "tl.dot(a.to(tl.float32), b.to(tl.float32)")], "dtype in which"),
    ("tile_matmul", "exit", [("    acc = tl.zeros", "    exit()\n    acc = tl.zeros")], "ends with return"),
    ("tile_order", "one number", [(f"return {PLACE}, {COLUMN}", f"return {PLACE}")], "all after its `return`"),
    ("matmul_add_relu", "asks the product", [(RELU, "tl.where(acc > 0, acc + c, 0.0)")], "whether A·B is above 0"),
    ("matmul_add_relu", "tl.relu", [(RELU, "tl.relu(acc + c)")], "tl has no such function"),
    ("silu_matmul", "one bias", [("bias_ptr + columns, mask=columns < N, other=0.0", "bias_ptr"),
                                 ("bias[None, :]", "bias")], "one element of bias|block of 1 elements of bias"),
    # strides
    ("tile_matmul", "no stride_bn", [("columns[None, :] * stride_bn", "columns[None, :]")], "strides are 1 and 96"),
    ("matmul_add_relu", "no stride_ak", [("k[None, :] * stride_ak", "k[None, :]")], "A's strides are 1 and 132"),
    ("silu_matmul", "no stride", [("columns[None, :] * stride_bn", "columns[None, :]")], "B's strides are 1 and 102"),
    ("silu_matmul", "bias strided", [("bias_ptr + columns", "bias_ptr + columns * stride_bn")], "every 102th element"),
    # PyTorch does the work
    ("copy_tiles", "copy_", [("    return y", "    y.copy_(x)\n    return y")], "calls PyTorch: copy_"),
    ("tile_matmul", "out=", [(RETURN, f"    torch.matmul(a, b, out=d)\n{RETURN}")], "calls PyTorch: matmul"),
    ("tile_matmul", "einsum", [(RETURN, f"    d[:] = torch.einsum('mk,kn->mn', a, b)\n{RETURN}")], "PyTorch: einsum"),
    ("matmul_add_relu", "clamp_", [(RELU, "acc + c"), (RETURN, f"    d.clamp_(min=0)\n{RETURN}")], "PyTorch: clamp_"),
    (
        "tile_order",
        "order in PyTorch",
        [("    return order\n", "    order[:, 0] = order[:, 0] + 0\n    return order\n")],
        "calls PyTorch",
    ),
    # extreme values, and formulas
    ("silu_matmul", "exp(x)", [(SILU, "x * tl.exp(x) / (1.0 + tl.exp(x))")], "infinite in float32 for x > 88.7"),
    ("silu_matmul", "sigmoid without bias", [(SILU, "x / (1.0 + tl.exp(-acc))")], "bias is not in the sigmoid"),
    ("silu_matmul", "rounded early", [("x = acc +", "x = (acc +"), ("[None, :]\n    silu", "[None, :]).to(d_ptr.dtype."
                                                                   "element_ty).to(tl.float32)\n    silu")], "to fl"),
    ("matmul_add_relu", "abs", [(RELU, "tl.abs(acc + c)")], "does not change the sign"),
    ("matmul_add_relu", "minimum", [(RELU, "tl.minimum(acc + c, 0.0)")], "takes the larger, tl.maximum"),
    ("matmul_add_relu", "ReLU of C", [(RELU, "acc + tl.maximum(c, 0.0)")], "ReLU is applied to C alone"),
    ("matmul_add_relu", "Python's max", [(RELU, "max(acc + c, 0.0)")], "Python's max"),
    ("matmul_add_relu", "pointers", [("c = tl.load(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, "
                                      "mask=inside, other=0.0)", "c = c_ptr + rows[:, None]")], "tl.load"),
    ("tile_matmul", "acc twice", [(DOT, 'acc += tl.dot(a, b, acc, input_precision="ieee")')], "adds acc twice"),
    ("tile_matmul", "dot dropped", [(DOT, 'tl.dot(a, b, acc, input_precision="ieee")')], "tl.dot is discarded"),
    ("tile_matmul", "steps without a step", [("range(0, K, BLOCK_K)", "range(K // BLOCK_K)")], "from k = 1 on"),
    ("tile_matmul", "float16 stored", [("acc.to(d_ptr.dtype.element_ty)", "acc.to(tl.float16)")], "rounded to float16"),
    ("masked_matmul", "other=1", [(MASK_A, MASK_A[:-3] + "1.0"), (MASK_B, MASK_B[:-3] + "1.0")], "elements count as 1"),
    ("masked_matmul", "Python's and", [(MASK_B, MASK_B.replace("&", "and"))], "Python's `and` between two blocks"),
    ("masked_matmul", "no brackets", [(MASK_A, "mask=rows[:, None] < M & k[None, :] < K, other=0.0")], "binds tighter"),
    ("copy_tiles", "into x", [("tl.store(y_tile,", "tl.store(x_tile,")], "stores to x_ptr"),
    ("copy_tiles", "turned", [("tl.store(y_tile, tl.load(x_tile))", "tl.store(tl.load(x_tile), y_tile)")], "first"),
    # orders
    ("tile_order", "row from pid", [(PLACE, "first_row + pid % group_rows")], "taken from pid, not"),
    ("tile_order", "fractions", [(COLUMN, "place / group_rows")], "`//` gives an integer"),
    ("tile_order", "first row forgotten", [(PLACE, "place % group_rows")], "first row is not added"),
    ("tile_order", "rest by %", [("tl.minimum(tiles_m - first_row, GROUP_M)", "tiles_m % GROUP_M")], "0 where GROUP_M"),
    ("tile_order", "group by tiles_m", [("GROUP_M * tiles_n", "GROUP_M * tiles_m")], r"has GROUP_M · tiles_n programs"),
    # numbers
    ("traffic", "always 4 bytes", [(") * itemsize", ") * 4")], "itemsize is not used"),
    ("traffic", "K − 1 additions", [("2 * M * N * K + 2 * M * N", "2 * M * N * K + M * N")], "one of them is missing"),
    ("traffic", "saved bytes", [("    return flops, unfused_bytes, fused_bytes", "    return flops, unfused_bytes, "
                                 "unfused_bytes - fused_bytes")], "bytes that fusing saves"),
]  # fmt: skip

MORE_DIFFERENT = [
    ("traffic", [("return flops, unfused_bytes, fused_bytes", "return [flops, unfused_bytes, fused_bytes]")]),
    (
        "masked_matmul",  # as Triton's own tutorial does it
        [
            (A_OFFSETS, "(rows % M)[:, None] * stride_am + k[None, :] * stride_ak"),
            (B_OFFSETS, "k[:, None] * stride_bk + (columns % N)[None, :] * stride_bn"),
            (MASK_A, "mask=k[None, :] < K, other=0.0"),
            (MASK_B, "mask=k[:, None] < K, other=0.0"),
        ],
    ),
    ("tile_order", [("group_rows = tl.minimum(tiles_m - first_row, GROUP_M)", "left = tiles_m - first_row\n"
                     "    group_rows = tl.where(left < GROUP_M, left, GROUP_M)")]),
]  # fmt: skip
