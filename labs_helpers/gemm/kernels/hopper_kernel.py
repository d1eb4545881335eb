"""Compute D = ReLU(A·B + C) on Hopper, in Gluon, which makes explicit what Triton's compiler would otherwise decide.

Each SM runs one persistent program, whose warps have different roles. One warp loads tiles of A and B with the tensor
memory accelerator (TMA) into a ring of STAGES buffers. CONSUMERS warpgroups multiply these tiles (`wgmma`) and add
their part of C, which arrives during the first products. TMA then stores D while the warpgroups begin the next tile.

Triton requires tensor shapes that are powers of two, but a tile may be 192 wide. The kernel therefore moves B, C and D
in panels of 64 columns, the layout of 128-byte swizzled rows in shared memory, and reads neighboring panels as one
matrix.

With SPLIT, `splits` programs share a tile's sum over K. Each writes its part to memory in float32, and the last program
of a tile adds the parts in a fixed order, so the result does not depend on the timing.

Operands of 8 bits, int8 or float8, are codes with a scale per row of A and per column of B: D is their product times
both scales, without C and ReLU. `wgmma` takes these only with consecutive elements along K, so B is (N, K) then, and a
panel is 64 rows of it.

The file imports nothing from this course, so other tools can compile it alone.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# the names in Triton 3.6 and in 3.7
wait_for_threads = gl.thread_barrier if hasattr(gl, "thread_barrier") else gl.barrier
PANEL = gl.constexpr(64)  # columns: 128 bytes


@gluon.jit
def work(item, tiles_m, tiles_n, steps, splits, group_m, SPLIT: gl.constexpr):
    """Return (tile row, tile column, first step along K, end of the last step) of a program's work item `item`.

    Tiles come in groups of rows, as in tile_order.py, and all tiles come once for each part of K.
    """
    tile, first, end = item, 0, steps
    if SPLIT:
        tile = item % (tiles_m * tiles_n)
        each = gl.cdiv(steps, splits)
        first = item // (tiles_m * tiles_n) * each
        end = min(first + each, steps)
    group = tile // (group_m * tiles_n)
    first_row = group * group_m
    group_rows = min(tiles_m - first_row, group_m)
    place = tile - group * group_m * tiles_n
    return first_row + place % group_rows, place // group_rows, first, end


@gluon.constexpr_function
def is_scaled(ring):
    """Return whether a ring holds 8-bit codes."""
    return ring.dtype.primitive_bitwidth == 8


@gluon.jit
def load(
    a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, splits, group_m, PANELS: gl.constexpr, SPLIT: gl.constexpr
):
    """Run the loading warp, which fills the ring in the order in which the consumers empty it."""
    STAGES: gl.constexpr = b_ring.type.shape[0] // PANELS
    CONSUMERS: gl.constexpr = a_ring.type.shape[0] // STAGES
    ROWS: gl.constexpr = a_ring.type.shape[1]
    BLOCK_M: gl.constexpr = ROWS * CONSUMERS
    BLOCK_K: gl.constexpr = a_ring.type.shape[2]
    BLOCK_N: gl.constexpr = PANELS * PANEL
    tiles_m, tiles_n, steps = gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N), gl.cdiv(K, BLOCK_K)
    step = 0
    for item in range(gl.program_id(0), tiles_m * tiles_n * splits, gl.num_programs(0)):
        row, column, first, end = work(item, tiles_m, tiles_n, steps, splits, group_m, SPLIT)
        for k in range(first * BLOCK_K, end * BLOCK_K, BLOCK_K):
            stage = step % STAGES
            mbarrier.wait(empty.index(stage), (step // STAGES) & 1 ^ 1)
            arrived = full.index(stage)
            mbarrier.expect(arrived, (BLOCK_M + BLOCK_N) * BLOCK_K * (a_ring.dtype.primitive_bitwidth // 8))
            for consumer in gl.static_range(CONSUMERS):
                tma.async_copy_global_to_shared(
                    a_desc, [row * BLOCK_M + consumer * ROWS, k], arrived, a_ring.index(stage * CONSUMERS + consumer)
                )
            for panel in gl.static_range(PANELS):
                n = column * BLOCK_N + panel * PANEL
                if is_scaled(b_ring):
                    tma.async_copy_global_to_shared(b_desc, [n, k], arrived, b_ring.index(stage * PANELS + panel))
                else:
                    tma.async_copy_global_to_shared(b_desc, [k, n], arrived, b_ring.index(stage * PANELS + panel))
            step += 1


@gluon.jit
def columns(ring, first, WIDTH: gl.constexpr):
    """Return the panels of a ring from `first` on as one matrix of WIDTH columns."""
    return ring.index(first)._reinterpret(ring.dtype, [ring.type.shape[1], WIDTH], ring.type.layout)


@gluon.jit
def operand_b(ring, first, WIDTH: gl.constexpr):
    """Return the panels of B's ring from `first` on as one matrix (BLOCK_K, WIDTH)."""
    if is_scaled(ring):
        rows = ring.index(first)._reinterpret(ring.dtype, [WIDTH, ring.type.shape[2]], ring.type.layout)
        return rows.permute((1, 0))
    else:
        return columns(ring, first, WIDTH)


@gluon.jit
def zeros(ring, ROWS: gl.constexpr, WIDTH: gl.constexpr):
    """Return an accumulator of zeros for one warpgroup and the products of a ring's operand."""
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, WIDTH, 256 // ring.dtype.primitive_bitwidth]
    )
    dtype: gl.constexpr = gl.int32 if ring.dtype == gl.int8 else gl.float32
    return gl.zeros((ROWS, WIDTH), dtype, layout)


@gluon.jit
def product(a, b_ring, panel, left, right, LEFT: gl.constexpr, RIGHT: gl.constexpr, use_acc: gl.constexpr = True):
    """Start left += and right += A times LEFT and RIGHT columns from `panel` on, while earlier products finish."""
    left = warpgroup_mma(a, operand_b(b_ring, panel, LEFT), left, use_acc=use_acc, is_async=True)
    if RIGHT > 0:
        more = operand_b(b_ring, panel + LEFT // PANEL, RIGHT)
        right = warpgroup_mma(a, more, right, use_acc=use_acc, is_async=True)
        left, right = warpgroup_mma_wait(2, (left, right))
    else:
        left = warpgroup_mma_wait(1, (left,))
    return left, right


@gluon.jit
def ask_for_c(c_desc, corner_m, corner_n, c_buffers, first, arrived, PANELS: gl.constexpr):
    """Wait until the previous D has left the buffer, then start loading C's tile."""
    tma.store_wait(0)
    mbarrier.expect(arrived, c_buffers.type.shape[1] * PANELS * PANEL * 2)
    for panel in gl.static_range(PANELS):
        tma.async_copy_global_to_shared(
            c_desc, [corner_m, corner_n + panel * PANEL], arrived, c_buffers.index(first + panel)
        )


@gluon.jit
def add_c(acc, c_buffers, first):
    """Replace C's columns in the panels from `first` on by those of D."""
    buffer = columns(c_buffers, first, acc.type.shape[1])
    d = gl.maximum(acc + buffer.load(acc.type.layout).to(gl.float32), 0.0)
    buffer.store(d.to(c_buffers.dtype))


@gluon.jit
def load_scales(a_scale_ptr, b_scale_ptr, like, corner_m, corner_n, M, N):
    """Return the scales of a tile's rows and columns, in the layout of an accumulator."""
    layout: gl.constexpr = like.type.layout
    m = corner_m + gl.arange(0, like.type.shape[0], gl.SliceLayout(1, layout))
    n = corner_n + gl.arange(0, like.type.shape[1], gl.SliceLayout(0, layout))
    of_rows = gl.load(a_scale_ptr + m, mask=m < M, other=0.0)
    return of_rows, gl.load(b_scale_ptr + n, mask=n < N, other=0.0)


@gluon.jit
def store_scaled(acc, of_rows, of_columns, buffers, first):
    """Store an accumulator times its scales in the panels from `first` on."""
    d = acc.to(gl.float32) * of_rows[:, None] * of_columns[None, :]
    columns(buffers, first, acc.type.shape[1]).store(d.to(buffers.dtype))


@gluon.jit
def place_of(acc, rows_left, at: gl.constexpr, BLOCK_N: gl.constexpr):
    """Return the offsets of an accumulator's elements in a part of a sum, and a mask of those in rows of D.

    A part is BLOCK_N columns wide, and the accumulator begins at column `at`. Blocks of 8×8 elements follow one
    another. A warp holds 2 elements per thread of each block, so it moves 256 contiguous bytes. In row order, it would
    move pieces of 32 bytes from 8 rows.
    """
    layout: gl.constexpr = acc.type.layout
    rows = gl.arange(0, acc.type.shape[0], gl.SliceLayout(1, layout))[:, None]
    across = at + gl.arange(0, acc.type.shape[1], gl.SliceLayout(0, layout))[None, :]
    block = rows // 8 * (BLOCK_N // 8) + across // 8
    return block * 64 + rows % 8 * 8 + across % 8, rows < rows_left


@gluon.jit
def write_part(part, acc, rows_left, at: gl.constexpr, BLOCK_N: gl.constexpr):
    place, there = place_of(acc, rows_left, at, BLOCK_N)
    gl.store(part + place, acc, mask=there, cache_modifier=".cg")


@gluon.jit
def add_parts(part, stride, parts, acc, rows_left, at: gl.constexpr, BLOCK_N: gl.constexpr):
    """Add up all parts of the sum for the elements of `acc`, in a fixed order; parts are `stride` elements apart."""
    place, there = place_of(acc, rows_left, at, BLOCK_N)
    total = gl.load(part + place, mask=there, other=0, cache_modifier=".cg")
    for _ in range(1, parts):
        part += stride
        total += gl.load(part + place, mask=there, other=0, cache_modifier=".cg")
    return total


@gluon.jit
def multiply(
    me: gl.constexpr, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, parts_ptr, counters_ptr,
    a_scale_ptr, b_scale_ptr, M, N, K, splits, group_m, c_after, PANELS: gl.constexpr, SPLIT: gl.constexpr,
):  # fmt: skip
    """Run consumer `me`, a warpgroup, which computes ROWS × BLOCK_N of each tile, from the ring to D."""
    STAGES: gl.constexpr = b_ring.type.shape[0] // PANELS
    CONSUMERS: gl.constexpr = a_ring.type.shape[0] // STAGES
    ROWS: gl.constexpr = a_ring.type.shape[1]
    BLOCK_M: gl.constexpr = ROWS * CONSUMERS
    BLOCK_K: gl.constexpr = a_ring.type.shape[2]
    BLOCK_N: gl.constexpr = PANELS * PANEL
    # The widest power of two that an instruction takes, in Triton less than 256 of int8, and the rest of the columns.
    LEFT: gl.constexpr = 128 if BLOCK_N == 192 or (BLOCK_N == 256 and a_ring.dtype == gl.int8) else BLOCK_N
    RIGHT: gl.constexpr = BLOCK_N - LEFT
    SCALED: gl.constexpr = is_scaled(a_ring)
    tiles_m, tiles_n, steps = gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N), gl.cdiv(K, BLOCK_K)
    c_panel, c_arrived = me * PANELS, c_full.index(me)
    step = 0
    c_phase = 0
    for item in range(gl.program_id(0), tiles_m * tiles_n * splits, gl.num_programs(0)):
        row, column, first, end = work(item, tiles_m, tiles_n, steps, splits, group_m, SPLIT)
        corner_m, corner_n = row * BLOCK_M + me * ROWS, column * BLOCK_N
        stage = step % STAGES
        mbarrier.wait(full.index(stage), (step // STAGES) & 1)
        left = zeros(a_ring, ROWS, LEFT)
        right = zeros(a_ring, ROWS, RIGHT if RIGHT > 0 else 16)
        a = a_ring.index(stage * CONSUMERS + me)
        left, right = product(a, b_ring, stage * PANELS, left, right, LEFT, RIGHT, use_acc=False)
        step += 1
        for k in range((first + 1) * BLOCK_K, end * BLOCK_K, BLOCK_K):
            if not SPLIT and not SCALED:
                if k == c_after:  # not earlier, because the first tiles of A and B are more urgent
                    ask_for_c(c_desc, corner_m, corner_n, c_buffers, c_panel, c_arrived, PANELS)
            stage = step % STAGES
            mbarrier.wait(full.index(stage), (step // STAGES) & 1)
            a = a_ring.index(stage * CONSUMERS + me)
            left, right = product(a, b_ring, stage * PANELS, left, right, LEFT, RIGHT)
            mbarrier.arrive(empty.index((step - 1) % STAGES), count=1)
            step += 1
        if SCALED:  # the last products hide the latency of these loads
            of_rows, of_left = load_scales(
                a_scale_ptr, b_scale_ptr, zeros(a_ring, ROWS, LEFT), corner_m, corner_n, M, N
            )
            if RIGHT > 0:
                of_rows_right, of_right = load_scales(
                    a_scale_ptr, b_scale_ptr, zeros(a_ring, ROWS, RIGHT), corner_m, corner_n + LEFT, M, N
                )
        if RIGHT > 0:
            left, right = warpgroup_mma_wait(0, (left, right))
        else:
            left = warpgroup_mma_wait(0, (left,))
        mbarrier.arrive(empty.index((step - 1) % STAGES), count=1)
        mine = True
        if SPLIT:
            tiles = tiles_m * tiles_n
            tile = item % tiles
            part = parts_ptr + tile.to(gl.int64) * (BLOCK_M * BLOCK_N) + me * ROWS * BLOCK_N
            stride = tiles.to(gl.int64) * (BLOCK_M * BLOCK_N)
            own = part + item // tiles * stride
            write_part(own, left, M - corner_m, 0, BLOCK_N)
            if RIGHT > 0:
                write_part(own, right, M - corner_m, LEFT, BLOCK_N)
            # All threads' stores come before the one atomic (release), and the last program's loads after it (acquire).
            wait_for_threads()
            counter = counters_ptr + tile * CONSUMERS + me
            mine = gl.atomic_add(counter, 1, sem="acq_rel") == splits - 1
            if mine:
                gl.store(counter, 0)
                if not SCALED:
                    ask_for_c(c_desc, corner_m, corner_n, c_buffers, c_panel, c_arrived, PANELS)
                left = add_parts(part, stride, splits, left, M - corner_m, 0, BLOCK_N)
                if RIGHT > 0:
                    right = add_parts(part, stride, splits, right, M - corner_m, LEFT, BLOCK_N)
        if mine:
            if SCALED:
                tma.store_wait(0)  # until the previous D has left the buffer
                store_scaled(left, of_rows, of_left, c_buffers, c_panel)
                if RIGHT > 0:
                    store_scaled(right, of_rows_right, of_right, c_buffers, c_panel + LEFT // PANEL)
            else:
                mbarrier.wait(c_arrived, c_phase)
                c_phase ^= 1
                add_c(left, c_buffers, c_panel)
                if RIGHT > 0:
                    add_c(right, c_buffers, c_panel + LEFT // PANEL)
            fence_async_shared()
            for panel in gl.static_range(PANELS):
                tma.async_copy_shared_to_global(
                    d_desc, [corner_m, corner_n + panel * PANEL], c_buffers.index(c_panel + panel)
                )
    tma.store_wait(0)


# Sizes are loop bounds and coordinates here, not addresses. The compiler gains little from knowing that 16 divides one,
# and would compile a new kernel for each of the eight kinds of shape.
@gluon.jit(do_not_specialize=["M", "N", "K", "splits", "group_m", "c_after"])
def hopper_matmul_kernel(
    a_desc,
    b_desc,
    c_desc,
    d_desc,
    parts_ptr,
    counters_ptr,
    a_scale_ptr,
    b_scale_ptr,
    M,
    N,
    K,
    splits,
    group_m,
    c_after,
    BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr,
    CONSUMERS: gl.constexpr,
    SPLIT: gl.constexpr,
):
    """Compute tiles of D with specialized warps. Launch with num_warps=4 and one program per SM, at most one per item.

    Descriptors, all row-major: A in blocks of ROWS × BLOCK_K, B of BLOCK_K × 64, C and D of ROWS × 64, with BLOCK_M =
    CONSUMERS · ROWS and BLOCK_N 64, 128, 192 or 256. An item is a tile and a part of K. group_m: tile rows per group.
    c_after: the k at which the kernel requests C, a multiple of BLOCK_K, at least BLOCK_K and below K. With SPLIT:
    splits, the parts of K, with at least one step each; parts_ptr, float32 (splits, tiles, BLOCK_M · BLOCK_N), in the
    order of `place_of`; counters_ptr, int32, CONSUMERS per tile, zero before and after.

    For codes of 8 bits: B in blocks of 64 × BLOCK_K, BLOCK_K 128; the scales, float32 (M,) and (N,); parts in int32 for
    int8; C unused. float8 is added up with the tensor cores' own accumulator, which keeps about 14 bits.
    """
    ROWS: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    PANELS: gl.constexpr = BLOCK_N // PANEL
    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES * CONSUMERS, ROWS, BLOCK_K], a_desc.layout)
    b_ring = gl.allocate_shared_memory(
        b_desc.dtype, [STAGES * PANELS, b_desc.block_type.shape[0], b_desc.block_type.shape[1]], b_desc.layout
    )
    c_buffers = gl.allocate_shared_memory(c_desc.dtype, [CONSUMERS * PANELS, ROWS, PANEL], c_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    c_full = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    for i in gl.static_range(CONSUMERS):
        mbarrier.init(c_full.index(i), count=1)
    # The first role runs on the launch's own four warps. Numbers of warps and of registers per thread for the others
    # follow the list. The arguments are repeated, because a tuple assigned to a variable would lose its constexprs.
    # fmt: off
    if CONSUMERS == 3:
        gl.warp_specialize(
            [
                (multiply,
                 (0, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, parts_ptr, counters_ptr,
                  a_scale_ptr, b_scale_ptr, M, N, K, splits, group_m, c_after, PANELS, SPLIT)),
                (multiply,
                 (1, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, parts_ptr, counters_ptr,
                  a_scale_ptr, b_scale_ptr, M, N, K, splits, group_m, c_after, PANELS, SPLIT)),
                (multiply,
                 (2, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, parts_ptr, counters_ptr,
                  a_scale_ptr, b_scale_ptr, M, N, K, splits, group_m, c_after, PANELS, SPLIT)),
                (load, (a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, splits, group_m, PANELS, SPLIT)),
            ],
            [4, 4, 1],
            [160, 160, 24],
        )
    elif CONSUMERS == 2:
        gl.warp_specialize(
            [
                (multiply,
                 (0, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, parts_ptr, counters_ptr,
                  a_scale_ptr, b_scale_ptr, M, N, K, splits, group_m, c_after, PANELS, SPLIT)),
                (multiply,
                 (1, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, parts_ptr, counters_ptr,
                  a_scale_ptr, b_scale_ptr, M, N, K, splits, group_m, c_after, PANELS, SPLIT)),
                (load, (a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, splits, group_m, PANELS, SPLIT)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (multiply,
                 (0, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, parts_ptr, counters_ptr,
                  a_scale_ptr, b_scale_ptr, M, N, K, splits, group_m, c_after, PANELS, SPLIT)),
                (load, (a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, splits, group_m, PANELS, SPLIT)),
            ],
            [1],
            [24],
        )
    # fmt: on
