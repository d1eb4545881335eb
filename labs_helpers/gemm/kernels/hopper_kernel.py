"""D = ReLU(A·B + C) for Hopper, written in Gluon: what Triton's compiler would otherwise decide stands here.

One persistent program an SM. Its warps have roles: one warp loads tiles of A and B with the tensor memory
accelerator (TMA) into a ring of STAGES buffers; CONSUMERS warpgroups multiply them (`wgmma`, two in flight), add their
part of C, which came in behind the first products, and let TMA store D while the next tile is under way.

With SHARED, the tiles that do not fill a wave, and those of the wave before, are shared out step by step (Osama et al.,
"Stream-K", PPoPP 2023): every program has as many steps along K, which may begin and end within a tile. What a program
has of a part of a tile goes to memory, in float32, and the last one of a tile to be done adds its parts up.

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

# Triton 3.6's name, and 3.7's
wait_for_threads = gl.thread_barrier if hasattr(gl, "thread_barrier") else gl.barrier


@gluon.jit
def grouped_tile(pid, tiles_m, tiles_n, group_m):
    """(tile row, tile column) of the pid-th tile, as in tile_order.py."""
    group = pid // (group_m * tiles_n)
    first_row = group * group_m
    group_rows = min(tiles_m - first_row, group_m)
    place = pid - group * group_m * tiles_n
    return first_row + place % group_rows, place // group_rows


@gluon.jit
def share(tiles, steps, SHARED: gl.constexpr):
    """(tiles that one program has each, the first and the end of this program's steps of the others)."""
    whole = tiles
    begin, end = 0, 0
    if SHARED:
        programs = gl.num_programs(0)
        if tiles % programs != 0:
            whole = max(tiles // programs - 1, 0) * programs
        shared_steps = (tiles - whole) * steps
        begin = gl.program_id(0) * shared_steps // programs
        end = (gl.program_id(0) + 1) * shared_steps // programs
    return whole, begin, end


@gluon.jit
def piece(tile, position, whole, end, steps, SHARED: gl.constexpr):
    """(tile, its first step, its end, the next tile, the next position) of the next piece of work."""
    current = tile
    first, last = 0, steps
    following = tile + gl.num_programs(0)
    if SHARED:
        if tile >= whole:
            current = whole + position // steps
            first = position % steps
            last = min(first + end - position, steps)
            position += last - first
            following = tile
    return current, first, last, following, position


@gluon.jit
def load(a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, group_m, SHARED: gl.constexpr):
    """The loading warp: fills the ring in the order in which the consumers empty it."""
    STAGES: gl.constexpr = b_ring.type.shape[0]
    CONSUMERS: gl.constexpr = a_ring.type.shape[0] // STAGES
    ROWS: gl.constexpr = a_ring.type.shape[1]
    BLOCK_M: gl.constexpr = ROWS * CONSUMERS
    BLOCK_K: gl.constexpr = b_ring.type.shape[1]
    BLOCK_N: gl.constexpr = b_ring.type.shape[2]
    tiles_m, tiles_n, steps = gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N), gl.cdiv(K, BLOCK_K)
    step = 0
    whole, position, end = share(tiles_m * tiles_n, steps, SHARED)
    tile = gl.program_id(0)
    while (tile < whole) | (position < end):
        current, first, last, tile, position = piece(tile, position, whole, end, steps, SHARED)
        row, column = grouped_tile(current, tiles_m, tiles_n, group_m)
        for k in range(first * BLOCK_K, last * BLOCK_K, BLOCK_K):
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
def add_up(me: gl.constexpr, CONSUMERS: gl.constexpr, acc, tile, first, whole, tiles, steps, parts_ptr, counters_ptr):
    """(the sum over all of K, whether it is for this program) of a part of a tile, from step `first` on. The program
    that is the last to have its part adds them up, in their order, so that the result does not depend on who it is."""
    ROWS: gl.constexpr = acc.type.shape[0]
    BLOCK_N: gl.constexpr = acc.type.shape[1]
    layout: gl.constexpr = acc.type.layout
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    columns = gl.arange(0, BLOCK_N, gl.SliceLayout(0, layout))
    place = me * ROWS * BLOCK_N + rows[:, None] * BLOCK_N + columns[None, :]
    programs = gl.num_programs(0)
    # A program has at most two parts: one that others began, and one that it begins.
    slot = 2 * gl.program_id(0)
    if first == 0:
        slot += 1
    gl.store(parts_ptr + slot * (CONSUMERS * ROWS * BLOCK_N) + place, acc, cache_modifier=".cg")
    # All threads' stores come before the one atomic (release), and the last program's loads after it (acquire).
    wait_for_threads()
    shared_steps = (tiles - whole) * steps
    begin = (tile - whole) * steps
    earliest = ((begin + 1) * programs - 1) // shared_steps  # the program that has this step
    latest = ((begin + steps) * programs - 1) // shared_steps
    counter = counters_ptr + (tile - whole) * CONSUMERS + me
    mine = gl.atomic_add(counter, 1, sem="acq_rel") == latest - earliest
    if mine:
        gl.store(counter, 0)
        acc = gl.zeros((ROWS, BLOCK_N), gl.float32, layout)
        slot = 2 * earliest + 1
        for program in range(earliest, latest + 1):
            acc += gl.load(parts_ptr + slot * (CONSUMERS * ROWS * BLOCK_N) + place, cache_modifier=".cg")
            slot = 2 * (program + 1)
    return acc, mine


@gluon.jit
def ask_for_c(c_desc, corner_m, corner_n, c_buffer, c_arrived):
    """C's tile is on its way, once the last D has left the buffer."""
    tma.store_wait(0)
    mbarrier.expect(c_arrived, c_buffer.type.shape[0] * c_buffer.type.shape[1] * 2)
    tma.async_copy_global_to_shared(c_desc, [corner_m, corner_n], c_arrived, c_buffer)


@gluon.jit
def finish(acc, d_desc, corner_m, corner_n, c_buffer, c_arrived, c_phase, layout: gl.constexpr):
    """D's tile is on its way."""
    mbarrier.wait(c_arrived, c_phase)
    d = gl.maximum(acc + c_buffer.load(layout).to(gl.float32), 0.0)
    c_buffer.store(d.to(d_desc.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(d_desc, [corner_m, corner_n], c_buffer)


@gluon.jit
def multiply(
    me: gl.constexpr,
    c_desc,
    d_desc,
    a_ring,
    b_ring,
    c_buffers,
    full,
    empty,
    c_full,
    M,
    N,
    K,
    group_m,
    c_after,
    parts_ptr,
    counters_ptr,
    SHARED: gl.constexpr,
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
    tiles_m, tiles_n, steps = gl.cdiv(M, BLOCK_M), gl.cdiv(N, BLOCK_N), gl.cdiv(K, BLOCK_K)
    c_buffer, c_arrived = c_buffers.index(me), c_full.index(me)
    step = 0
    c_phase = 0
    whole, position, end = share(tiles_m * tiles_n, steps, SHARED)
    tile = gl.program_id(0)
    while (tile < whole) | (position < end):
        current, first, last, tile, position = piece(tile, position, whole, end, steps, SHARED)
        row, column = grouped_tile(current, tiles_m, tiles_n, group_m)
        corner_m, corner_n = row * BLOCK_M + me * ROWS, column * BLOCK_N
        c_at = c_after
        if SHARED:
            if last - first < steps:
                c_at = 0  # not in the loop below: who finishes the tile is not known yet
        stage = step % STAGES
        mbarrier.wait(full.index(stage), (step // STAGES) & 1)
        acc = gl.zeros((ROWS, BLOCK_N), gl.float32, layout)
        acc = warpgroup_mma(
            a_ring.index(stage * CONSUMERS + me), b_ring.index(stage), acc, use_acc=False, is_async=True
        )
        acc = warpgroup_mma_wait(1, (acc,))
        step += 1
        for k in range((first + 1) * BLOCK_K, last * BLOCK_K, BLOCK_K):
            if k == c_at:  # not before: the first tiles of A and B have the right of way
                ask_for_c(c_desc, corner_m, corner_n, c_buffer, c_arrived)
            stage = step % STAGES
            mbarrier.wait(full.index(stage), (step // STAGES) & 1)
            acc = warpgroup_mma(a_ring.index(stage * CONSUMERS + me), b_ring.index(stage), acc, is_async=True)
            acc = warpgroup_mma_wait(1, (acc,))
            mbarrier.arrive(empty.index((step - 1) % STAGES), count=1)
            step += 1
        acc = warpgroup_mma_wait(0, (acc,))
        mbarrier.arrive(empty.index((step - 1) % STAGES), count=1)
        if SHARED:
            mine = last > first
            if last - first < steps:
                acc, mine = add_up(
                    me, CONSUMERS, acc, current, first, whole, tiles_m * tiles_n, steps, parts_ptr, counters_ptr
                )
                if mine:
                    ask_for_c(c_desc, corner_m, corner_n, c_buffer, c_arrived)
            if mine:
                finish(acc, d_desc, corner_m, corner_n, c_buffer, c_arrived, c_phase, layout)
                c_phase ^= 1
        else:
            finish(acc, d_desc, corner_m, corner_n, c_buffer, c_arrived, c_phase, layout)
            c_phase ^= 1
    tma.store_wait(0)


@gluon.jit
def multiply_upper(
    c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after, parts, counters,
    SHARED: gl.constexpr,
):  # fmt: skip
    multiply(
        0, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after, parts, counters,
        SHARED,
    )  # fmt: skip


@gluon.jit
def multiply_lower(
    c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after, parts, counters,
    SHARED: gl.constexpr,
):  # fmt: skip
    multiply(
        1, c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after, parts, counters,
        SHARED,
    )  # fmt: skip


# Sizes are loop bounds and coordinates here, no addresses: the compiler gains little by knowing that 16 divides one,
# and would compile each of the eight kinds of shape anew.
@gluon.jit(do_not_specialize=["M", "N", "K", "group_m", "c_after"])
def hopper_matmul_kernel(
    a_desc,
    b_desc,
    c_desc,
    d_desc,
    parts_ptr,
    counters_ptr,
    M,
    N,
    K,
    group_m,
    c_after,
    BLOCK_N: gl.constexpr,
    STAGES: gl.constexpr,
    CONSUMERS: gl.constexpr,
    SHARED: gl.constexpr,
):
    """Descriptors: A in blocks of ROWS × BLOCK_K, B of BLOCK_K × BLOCK_N, C and D of ROWS × BLOCK_N, all row-major,
    where BLOCK_M = CONSUMERS · ROWS. group_m: tile rows a group. c_after: the k at which C is asked for, a multiple
    of BLOCK_K from BLOCK_K on and below K. With SHARED: parts_ptr, float32, room for two tiles a program; counters_ptr,
    int32, zeros, which are zeros again afterwards, CONSUMERS for each of two tiles a program. Launch with num_warps=4
    and one program an SM, at most one a tile, with SHARED one a step."""
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
    # The arguments stand here each time, because a constexpr in a tuple that has a name is none any more.
    # fmt: off
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (multiply_upper,
                 (c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after, parts_ptr,
                 counters_ptr, SHARED)),
                (multiply_lower,
                 (c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after, parts_ptr,
                 counters_ptr, SHARED)),
                (load, (a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, group_m, SHARED)),
            ],
            [4, 1],
            [240, 24],
        )
    else:
        gl.warp_specialize(
            [
                (multiply_upper,
                 (c_desc, d_desc, a_ring, b_ring, c_buffers, full, empty, c_full, M, N, K, group_m, c_after, parts_ptr,
                 counters_ptr, SHARED)),
                (load, (a_desc, b_desc, a_ring, b_ring, full, empty, M, N, K, group_m, SHARED)),
            ],
            [1],
            [24],
        )
    # fmt: on
