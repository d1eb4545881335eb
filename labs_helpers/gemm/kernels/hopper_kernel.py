"""D = ReLU(A·B + C) for Hopper, written in Gluon: what Triton's compiler would otherwise decide stands here.

One persistent program an SM. Its warps have roles: one warp loads tiles of A and B with the tensor memory
accelerator (TMA) into a ring of STAGES buffers; CONSUMERS warpgroups multiply them (`wgmma`, two in flight), add their
part of C, which came in behind the first products, and let TMA store D while the next tile is under way.

Imports nothing of this course, so that a compiler can be pointed at the file alone.
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


@gluon.jit
def grouped_tile(pid, tiles_m, tiles_n, group_m):
    """(tile row, tile column) of the pid-th tile, as in tile_order.py."""
    group = pid // (group_m * tiles_n)
    first_row = group * group_m
    group_rows = min(tiles_m - first_row, group_m)
    place = pid - group * group_m * tiles_n
    return first_row + place % group_rows, place // group_rows


@gluon.jit
def load(a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, group_m):
    """The loading warp: fills the ring in the order in which the consumers empty it."""
    STAGES: gl.constexpr = b_ring.type.shape[0]
    CONSUMERS: gl.constexpr = a_ring.type.shape[0] // STAGES
    ROWS: gl.constexpr = a_ring.type.shape[1]
    BLOCK_M: gl.constexpr = ROWS * CONSUMERS
    BLOCK_K: gl.constexpr = b_ring.type.shape[1]
    BLOCK_N: gl.constexpr = b_ring.type.shape[2]
    tiles_m, tiles_n = gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N)
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        row, column = grouped_tile(tile, tiles_m, tiles_n, group_m)
        for k in range(0, K, BLOCK_K):
            stage = step % STAGES
            mbarrier.wait(empty.index(stage), (step // STAGES) & 1 ^ 1)
            arrived = full.index(stage)
            mbarrier.expect(arrived, (BLOCK_M + BLOCK_N) * BLOCK_K * 2)
            for consumer in gl.static_range(CONSUMERS):
                tma.async_copy_global_to_shared(
                    a_desc, [row * BLOCK_M + consumer * ROWS, k], arrived, a_ring.index(stage * CONSUMERS + consumer)
                )
            tma.async_copy_global_to_shared(b_desc, [k, column * BLOCK_N], arrived, b_ring.index(stage))
            step += 1


@gluon.jit
def multiply(
    me: gl.constexpr, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after
):
    """Consumer `me`, a warpgroup: ROWS × BLOCK_N of each tile, from the ring to D."""
    STAGES: gl.constexpr = b_ring.type.shape[0]
    CONSUMERS: gl.constexpr = a_ring.type.shape[0] // STAGES
    ROWS: gl.constexpr = a_ring.type.shape[1]
    BLOCK_M: gl.constexpr = ROWS * CONSUMERS
    BLOCK_K: gl.constexpr = b_ring.type.shape[1]
    BLOCK_N: gl.constexpr = b_ring.type.shape[2]
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 16]
    )
    tiles_m, tiles_n = gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N)
    c_buffer, c_arrived = c_buffers.index(me), c_full.index(me)
    step = 0
    c_phase = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        row, column = grouped_tile(tile, tiles_m, tiles_n, group_m)
        corner_m, corner_n = row * BLOCK_M + me * ROWS, column * BLOCK_N
        stage = step % STAGES
        mbarrier.wait(full.index(stage), (step // STAGES) & 1)
        acc = gl.zeros((ROWS, BLOCK_N), gl.float32, layout)
        acc = warpgroup_mma(
            a_ring.index(stage * CONSUMERS + me), b_ring.index(stage), acc, use_acc=False, is_async=True
        )
        acc = warpgroup_mma_wait(1, (acc,))
        step += 1
        for k in range(BLOCK_K, K, BLOCK_K):
            if k == c_after:
                # Not before: the first tiles of A and B have the right of way. The last D has to be out by now.
                tma.store_wait(0)
                mbarrier.expect(c_arrived, ROWS * BLOCK_N * 2)
                tma.async_copy_global_to_shared(c_desc, [corner_m, corner_n], c_arrived, c_buffer)
            stage = step % STAGES
            mbarrier.wait(full.index(stage), (step // STAGES) & 1)
            acc = warpgroup_mma(a_ring.index(stage * CONSUMERS + me), b_ring.index(stage), acc, is_async=True)
            acc = warpgroup_mma_wait(1, (acc,))
            mbarrier.arrive(empty.index((step - 1) % STAGES), count=1)
            step += 1
        acc = warpgroup_mma_wait(0, (acc,))
        mbarrier.arrive(empty.index((step - 1) % STAGES), count=1)
        mbarrier.wait(c_arrived, c_phase)
        c_phase ^= 1
        d = gl.maximum(acc + c_buffer.load(layout).to(gl.float32), 0.0)
        c_buffer.store(d.to(d_desc.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(d_desc, [corner_m, corner_n], c_buffer)
    tma.store_wait(0)


@gluon.jit
def multiply_upper(c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after):
    multiply(0, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after)


@gluon.jit
def multiply_lower(c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after):
    multiply(1, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after)


# Sizes are loop bounds and coordinates here, no addresses: the compiler gains little by knowing that 16 divides one,
# and would compile each of the eight kinds of shape anew.
@gluon.jit(do_not_specialize=["M", "N", "K", "group_m", "c_after"])
def hopper_matmul_kernel(
    a_desc,
    b_desc,
    c_desc,
    d_desc,
    M,
    N,
    K,
    group_m,
    c_after,
    BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr,
    CONSUMERS: gl.constexpr,
):
    """Descriptors: A in blocks of ROWS × BLOCK_K, B of BLOCK_K × BLOCK_N, C and D of ROWS × BLOCK_N, all row-major,
    where BLOCK_M = CONSUMERS · ROWS. group_m: tile rows a group. c_after: the k at which C is asked for, a multiple
    of BLOCK_K from BLOCK_K on and below K. Launch with num_warps=4 and one program an SM, at most one a tile."""
    ROWS: gl.constexpr = a_desc.block_type.shape[0]
    BLOCK_K: gl.constexpr = a_desc.block_type.shape[1]
    a_ring = gl.allocate_shared_memory(a_desc.dtype, [STAGES * CONSUMERS, ROWS, BLOCK_K], a_desc.layout)
    b_ring = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_K, BLOCK_N], b_desc.layout)
    c_buffers = gl.allocate_shared_memory(c_desc.dtype, [CONSUMERS, ROWS, BLOCK_N], c_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    c_full = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=CONSUMERS)
    for i in gl.static_range(CONSUMERS):
        mbarrier.init(c_full.index(i), count=1)
    # The first role runs on the launch's own four warps; the others' warps and registers a thread follow the list.
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (
                    multiply_upper,
                    (c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after),
                ),
                (
                    multiply_lower,
                    (c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after),
                ),
                (load, (a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, group_m)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (
                    multiply_upper,
                    (c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after),
                ),
                (load, (a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, group_m)),
            ],
            [1],
            [24],
        )
