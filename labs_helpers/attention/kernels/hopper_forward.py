"""FlashAttention forward for Hopper in Gluon, with explicit layouts, shared memory and barriers.

Each SM runs one persistent program whose warps have roles. One warp loads tiles of q, K and V with the tensor memory
accelerator (TMA); each of CONSUMERS warpgroups computes 64 rows of queries. A consumer starts the scores of a block of
keys on the tensor cores (`wgmma`) and then P·V of the previous block. It computes the softmax of the scores while P·V
is still running. With BY_TURNS it waits until the previous consumer has started its products, so that its softmax
overlaps with the other consumers' products. Both ideas are from FlashAttention-3, 2024.

Key blocks are processed from the last to the first, so that the masked blocks come first.
"""
# ruff: noqa: E741 - l is the paper's name for the running sum

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.language.core import _aggregate as aggregate

from labs_helpers.attention.kernels.hopper_ring import barriers, ring_of

LN_2 = gl.constexpr(0.6931471805599453)


@aggregate
class Problem:
    """Sizes and the order of the tiles; c = scale · log2(e).

    Tiles are processed in groups of `head_group` heads, whose K and V fit into L2 together. Within a group, the rows
    with the most key blocks come first.
    """

    heads: gl.tensor  # query heads of one batch entry
    group_size: gl.tensor  # query heads per K/V head
    Lq: gl.tensor
    Lk: gl.tensor
    tiles_m: gl.tensor
    all_heads: gl.tensor  # of the whole batch
    head_group: gl.tensor
    c: gl.tensor
    CAUSAL: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, heads, group_size, Lq, Lk, tiles_m, all_heads, head_group, c, CAUSAL):
        self.heads, self.group_size, self.Lq, self.Lk = heads, group_size, Lq, Lk
        self.tiles_m, self.all_heads, self.head_group, self.c = tiles_m, all_heads, head_group, c
        self.CAUSAL = gl.constexpr(CAUSAL)

    @gluon.jit
    def tiles(self):
        return self.tiles_m * self.all_heads

    @gluon.jit
    def place(self, tile):
        """Return (tile row, head) of the tile-th tile."""
        group = tile // (self.head_group * self.tiles_m)
        first = group * self.head_group
        size = min(self.all_heads - first, self.head_group)
        rest = tile - first * self.tiles_m
        row = rest // size
        if self.CAUSAL:
            row = self.tiles_m - 1 - row
        return row, first + rest % size

    @gluon.jit
    def key_blocks(self, rows_end, BLOCK_N: gl.constexpr):
        """Return the number of key blocks that the rows before rows_end need: at least one, perhaps fully masked."""
        keys = self.Lk
        if self.CAUSAL:
            keys = min(keys, rows_end + self.Lk - self.Lq)
        return max(gl.cdiv(keys, BLOCK_N), 1)

    @gluon.jit
    def masked(self, s, first_row, first_key, layout: gl.constexpr):
        """Return s with −inf where the row does not see the key."""
        ROWS: gl.constexpr = s.type.shape[0]
        BLOCK_N: gl.constexpr = s.type.shape[1]
        rows = first_row + gl.arange(0, ROWS, gl.SliceLayout(1, layout))
        keys = first_key + gl.arange(0, BLOCK_N, gl.SliceLayout(0, layout))
        last = gl.full_like(rows, self.Lk - 1)
        if self.CAUSAL:
            last = gl.minimum(rows + self.Lk - self.Lq, self.Lk - 1)
        return gl.where(keys[None, :] <= last[:, None], s, float("-inf"))


@aggregate
class Queue:
    """The next tile's number, which the loading warp draws from a counter in memory and passes to the consumers.

    The loading warp runs as many tiles ahead as there are buffers of q; twice as many slots hold the numbers that a
    consumer has not read yet.
    """

    tile: gl.shared_memory_descriptor
    full: gl.shared_memory_descriptor

    @gluon.constexpr_function
    def __init__(self, tile, full):
        self.tile, self.full = tile, full

    @gluon.jit
    def put(self, turn, tile):
        SLOTS: gl.constexpr = self.full.type.shape[0]
        layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
        self.tile.index(turn % SLOTS).store(gl.full((1,), tile, gl.int32, layout))
        mbarrier.arrive(self.full.index(turn % SLOTS), count=1)

    @gluon.jit
    def take(self, turn):
        SLOTS: gl.constexpr = self.full.type.shape[0]
        layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
        mbarrier.wait(self.full.index(turn % SLOTS), (turn // SLOTS) & 1)
        return gl.max(self.tile.index(turn % SLOTS).load(layout), 0)


@gluon.jit
def load(
    q_desc,
    k_desc,
    v_desc,
    counter_ptr,
    q_buffers,
    q_full,
    q_empty,
    k_ring,
    v_ring,
    queue,
    problem,
    DRAWN: gl.constexpr,
):
    """Run the loading warp: load q once per tile, and K and V block by block in the order of the consumers."""
    Q_BUFFERS: gl.constexpr = q_full.type.shape[0]
    CONSUMERS: gl.constexpr = q_buffers.type.shape[0] // Q_BUFFERS
    ROWS: gl.constexpr = q_desc.block_type.shape[2]
    BLOCK_M: gl.constexpr = ROWS * CONSUMERS
    BLOCK_N: gl.constexpr = k_desc.block_type.shape[2]
    D: gl.constexpr = k_desc.block_type.shape[3]
    step = 0
    turn = 0
    tile = gl.program_id(0)
    while tile < problem.tiles():
        row, place = problem.place(tile)
        batch, head = place // problem.heads, place % problem.heads
        kv_head = head // problem.group_size
        if DRAWN:
            drawn = gl.atomic_add(counter_ptr, 1, sem="relaxed")
            tile = gl.num_programs(0) + drawn
            # There is one draw per tile, so this one is the last; the next launch needs a counter of zero.
            if drawn == problem.tiles() - 1:
                gl.store(counter_ptr, 0)
        else:
            tile += gl.num_programs(0)
        slot = turn % Q_BUFFERS
        mbarrier.wait(q_empty.index(slot), turn // Q_BUFFERS & 1 ^ 1)
        # This q buffer is free, so every consumer has read the following tile's number; its slot is free, too.
        queue.put(turn, tile)
        mbarrier.expect(q_full.index(slot), BLOCK_M * D * 2)
        for i in gl.static_range(CONSUMERS):
            tma.async_copy_global_to_shared(
                q_desc,
                [batch, head, row * BLOCK_M + i * ROWS, 0],
                q_full.index(slot),
                q_buffers.index(slot * CONSUMERS + i),
            )
        turn += 1
        blocks = problem.key_blocks((row + 1) * BLOCK_M, BLOCK_N)
        for i in range(0, blocks):
            key = (blocks - 1 - i) * BLOCK_N
            full = k_ring.wait_empty(step, BLOCK_N * D * 2)
            tma.async_copy_global_to_shared(
                k_desc, [batch, kv_head, key, 0], full, k_ring.buffers.index(k_ring.stage(step))
            )
            full = v_ring.wait_empty(step, BLOCK_N * D * 2)
            tma.async_copy_global_to_shared(
                v_desc, [batch, kv_head, key, 0], full, v_ring.buffers.index(v_ring.stage(step))
            )
            step += 1


@gluon.jit
def next_block(
    q,
    k_ring,
    v_ring,
    mine,
    others,
    step,
    turn,
    e,
    m,
    l,
    acc,
    first_row,
    first_key,
    problem,
    MASK: gl.constexpr,
    BY_TURNS: gl.constexpr,
    layout: gl.constexpr,
    o_layout: gl.constexpr,
):
    """Start this block's scores and the previous block's acc += P·V (P is e); compute this block's e, m and l."""
    ROWS: gl.constexpr = q.type.shape[0]
    D: gl.constexpr = q.type.shape[1]
    BLOCK_N: gl.constexpr = k_ring.buffers.type.shape[3]
    # With D = 128, P stays in float32 between steps: a rounded P would have to be repacked in registers in each step.
    # With D = 64 and three consumers there are not enough registers for this.
    p = gl.convert_layout(e.to(q.dtype), gl.DotOperandLayout(0, o_layout, 2))
    k_ring.wait_full(step)
    if BY_TURNS:
        mbarrier.wait(mine, turn & 1)
    s = gl.zeros((ROWS, BLOCK_N), gl.float32, layout)
    s = warpgroup_mma(q, k_ring.buffer(step).permute((1, 0)), s, use_acc=False, is_async=True)
    v_ring.wait_full(step - 1)
    acc = warpgroup_mma(p, v_ring.buffer(step - 1), acc, is_async=True)
    if BY_TURNS:
        mbarrier.arrive(others, count=1)
    s = warpgroup_mma_wait(1, (s,))
    if MASK:
        s = problem.masked(s, first_row, first_key, layout)
    m_new = gl.maximum(m, gl.max(s, 1))
    shift = m_new * problem.c
    if MASK:
        shift = gl.where(m_new == float("-inf"), 0.0, shift)  # no key seen so far: exp2(−inf − 0) = 0
    alpha = gl.exp2(m * problem.c - shift)
    e = gl.exp2(s * problem.c - shift[:, None])
    l = l * alpha + gl.sum(e, 1)
    acc, p = warpgroup_mma_wait(0, (acc, p))
    k_ring.release(step)
    v_ring.release(step - 1)
    acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, o_layout))[:, None]
    if D == 64:
        e = e.to(q.dtype)
    return e, m_new, l, acc


@gluon.jit
def consume(
    me: gl.constexpr,
    o_desc,
    lse_ptr,
    q_buffers,
    q_full,
    q_empty,
    k_ring,
    v_ring,
    o_buffers,
    turns,
    queue,
    problem,
    BY_TURNS: gl.constexpr,
):
    """Run consumer `me`, a warpgroup: compute o and lse for its rows of each tile."""
    Q_BUFFERS: gl.constexpr = q_full.type.shape[0]
    CONSUMERS: gl.constexpr = q_buffers.type.shape[0] // Q_BUFFERS
    ROWS: gl.constexpr = q_buffers.type.shape[3]
    BLOCK_M: gl.constexpr = ROWS * CONSUMERS
    BLOCK_N: gl.constexpr = k_ring.buffers.type.shape[3]
    D: gl.constexpr = k_ring.buffers.type.shape[4]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    mine, others = turns.index(me), turns.index((me + 1) % CONSUMERS)
    step = 0
    rounds = 0
    turn = 0
    tile = gl.program_id(0)
    while tile < problem.tiles():
        row, place = problem.place(tile)
        first_row = row * BLOCK_M + me * ROWS
        blocks = problem.key_blocks((row + 1) * BLOCK_M, BLOCK_N)
        slot = turn % Q_BUFFERS
        q = q_buffers.index(slot * CONSUMERS + me).reshape([ROWS, D])
        mbarrier.wait(q_full.index(slot), turn // Q_BUFFERS & 1)
        if problem.CAUSAL and BLOCK_M > BLOCK_N:
            # These rows may see no key in the tile's last blocks: release the blocks without using them.
            seen = problem.key_blocks(first_row + ROWS, BLOCK_N)
            for _ in range(seen, blocks):
                k_ring.wait_full(step)
                k_ring.release(step)
                if BY_TURNS:
                    mbarrier.wait(mine, rounds & 1)
                    mbarrier.arrive(others, count=1)
                    rounds += 1
                v_ring.wait_full(step)
                v_ring.release(step)
                step += 1
            blocks = min(seen, blocks)
        # The last block has no P·V before it, and needs a mask unless all of it is visible.
        k_ring.wait_full(step)
        s = gl.zeros((ROWS, BLOCK_N), gl.float32, layout)
        s = warpgroup_mma(q, k_ring.buffer(step).permute((1, 0)), s, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(0, (s,))
        k_ring.release(step)
        s = problem.masked(s, first_row, (blocks - 1) * BLOCK_N, layout)
        m = gl.max(s, 1)
        e = gl.exp2(s * problem.c - gl.where(m == float("-inf"), 0.0, m * problem.c)[:, None])
        l = gl.sum(e, 1)
        if D == 64:
            e = e.to(q.dtype)
        acc = gl.zeros((ROWS, D), gl.float32, o_layout)
        step += 1
        # Blocks before `whole` need no mask.
        whole = problem.Lk // BLOCK_N
        if problem.CAUSAL:
            whole = min(whole, max(first_row + 1 + problem.Lk - problem.Lq, 0) // BLOCK_N)
        whole = min(whole, blocks - 1)
        if problem.CAUSAL:  # without a causal mask, only the last block may need a mask
            for i in range(whole, blocks - 1):
                key = (whole + blocks - 2 - i) * BLOCK_N
                e, m, l, acc = next_block(
                    q,
                    k_ring,
                    v_ring,
                    mine,
                    others,
                    step,
                    rounds,
                    e,
                    m,
                    l,
                    acc,
                    first_row,
                    key,
                    problem,
                    True,
                    BY_TURNS,
                    layout,
                    o_layout,
                )
                step += 1
                rounds += 1
        for _ in range(0, whole):
            e, m, l, acc = next_block(
                q,
                k_ring,
                v_ring,
                mine,
                others,
                step,
                rounds,
                e,
                m,
                l,
                acc,
                first_row,
                0,
                problem,
                False,
                BY_TURNS,
                layout,
                o_layout,
            )
            step += 1
            rounds += 1
        mbarrier.arrive(q_empty.index(slot), count=1)
        p = gl.convert_layout(e.to(q.dtype), gl.DotOperandLayout(0, o_layout, 2))
        v_ring.wait_full(step - 1)
        acc = warpgroup_mma(p, v_ring.buffer(step - 1), acc, is_async=True)
        acc = warpgroup_mma_wait(0, (acc,))
        v_ring.release(step - 1)
        rows = first_row + gl.arange(0, ROWS, gl.SliceLayout(1, layout))
        lse = gl.where(l == 0.0, float("-inf"), m * (problem.c * LN_2) + gl.log(l))
        gl.store(lse_ptr + gl.cast(place, gl.int64) * problem.Lq + rows, lse, mask=rows < problem.Lq)
        inverse = gl.convert_layout(1.0 / gl.where(l == 0.0, 1.0, l), gl.SliceLayout(1, o_layout))
        tma.store_wait(0)  # the previous tile has been stored
        o_buffers.index(me).reshape([ROWS, D]).store((acc * inverse[:, None]).to(q.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(
            o_desc, [place // problem.heads, place % problem.heads, first_row, 0], o_buffers.index(me)
        )
        tile = queue.take(turn)
        turn += 1
    tma.store_wait(0)


@gluon.jit
def consume_0(
    o_desc,
    lse_ptr,
    q_buffers,
    q_full,
    q_empty,
    k_ring,
    v_ring,
    o_buffers,
    turns,
    queue,
    problem,
    BY_TURNS: gl.constexpr,
):
    consume(0, o_desc, lse_ptr, q_buffers, q_full, q_empty, k_ring, v_ring, o_buffers, turns, queue, problem, BY_TURNS)


@gluon.jit
def consume_1(
    o_desc,
    lse_ptr,
    q_buffers,
    q_full,
    q_empty,
    k_ring,
    v_ring,
    o_buffers,
    turns,
    queue,
    problem,
    BY_TURNS: gl.constexpr,
):
    consume(1, o_desc, lse_ptr, q_buffers, q_full, q_empty, k_ring, v_ring, o_buffers, turns, queue, problem, BY_TURNS)


@gluon.jit
def consume_2(
    o_desc,
    lse_ptr,
    q_buffers,
    q_full,
    q_empty,
    k_ring,
    v_ring,
    o_buffers,
    turns,
    queue,
    problem,
    BY_TURNS: gl.constexpr,
):
    consume(2, o_desc, lse_ptr, q_buffers, q_full, q_empty, k_ring, v_ring, o_buffers, turns, queue, problem, BY_TURNS)


SIZES = ["heads", "group_size", "Lq", "Lk", "tiles_m", "all_heads", "head_group"]


@gluon.jit(do_not_specialize=SIZES)  # keeps a size of 1 a run-time value, which a Problem can hold
def hopper_forward_kernel(
    q_desc,
    k_desc,
    v_desc,
    o_desc,
    lse_ptr,
    counter_ptr,
    heads,
    group_size,
    Lq,
    Lk,
    tiles_m,
    all_heads,
    head_group,
    c,
    CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr,
    CAUSAL: gl.constexpr,
    BY_TURNS: gl.constexpr,
    Q_BUFFERS: gl.constexpr,
    DRAWN: gl.constexpr,
    PER_SM: gl.constexpr,
):
    """Compute o and lse for all tiles; arguments are descriptors of (B, H, L, D) tensors.

    q and o have blocks of 64 rows, K and V blocks of BLOCK_N. lse: (B, H, Lq) float32. counter: one int32, 0 at launch
    and again at the end; without DRAWN the kernel does not use it, and a program's tiles are num_programs apart. See
    Problem for the sizes. Launch with num_warps=4, at most one program per SM and one per tile of CONSUMERS · 64 rows.
    """
    problem = Problem(heads, group_size, Lq, Lk, tiles_m, all_heads, head_group, c, CAUSAL)
    q_shape: gl.constexpr = [Q_BUFFERS * CONSUMERS] + q_desc.block_type.shape
    o_shape: gl.constexpr = [CONSUMERS] + q_desc.block_type.shape
    q_buffers = gl.allocate_shared_memory(q_desc.dtype, q_shape, q_desc.layout)
    o_buffers = gl.allocate_shared_memory(o_desc.dtype, o_shape, o_desc.layout)
    q_full, q_empty = barriers(Q_BUFFERS, 1), barriers(Q_BUFFERS, CONSUMERS)
    k_ring, v_ring = ring_of(k_desc, STAGES, CONSUMERS), ring_of(v_desc, STAGES, CONSUMERS)
    slots = gl.allocate_shared_memory(gl.int32, [2 * Q_BUFFERS, 1], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    queue = Queue(slots, barriers(2 * Q_BUFFERS, 1))
    turns = barriers(CONSUMERS, 1)
    if BY_TURNS:
        mbarrier.arrive(turns.index(0), count=1)
    # The first role runs on the launch's four warps; the lists give the warps and registers per thread of the others.
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (
                    consume_0,
                    (
                        o_desc,
                        lse_ptr,
                        q_buffers,
                        q_full,
                        q_empty,
                        k_ring,
                        v_ring,
                        o_buffers,
                        turns,
                        queue,
                        problem,
                        BY_TURNS,
                    ),
                ),
                (
                    consume_1,
                    (
                        o_desc,
                        lse_ptr,
                        q_buffers,
                        q_full,
                        q_empty,
                        k_ring,
                        v_ring,
                        o_buffers,
                        turns,
                        queue,
                        problem,
                        BY_TURNS,
                    ),
                ),
                (
                    load,
                    (
                        q_desc,
                        k_desc,
                        v_desc,
                        counter_ptr,
                        q_buffers,
                        q_full,
                        q_empty,
                        k_ring,
                        v_ring,
                        queue,
                        problem,
                        DRAWN,
                    ),
                ),
            ],
            [4, 1],
            [240, 24] if PER_SM == 1 else [104, 24],
        )
    else:
        gl.warp_specialize(
            [
                (
                    consume_0,
                    (
                        o_desc,
                        lse_ptr,
                        q_buffers,
                        q_full,
                        q_empty,
                        k_ring,
                        v_ring,
                        o_buffers,
                        turns,
                        queue,
                        problem,
                        BY_TURNS,
                    ),
                ),
                (
                    consume_1,
                    (
                        o_desc,
                        lse_ptr,
                        q_buffers,
                        q_full,
                        q_empty,
                        k_ring,
                        v_ring,
                        o_buffers,
                        turns,
                        queue,
                        problem,
                        BY_TURNS,
                    ),
                ),
                (
                    consume_2,
                    (
                        o_desc,
                        lse_ptr,
                        q_buffers,
                        q_full,
                        q_empty,
                        k_ring,
                        v_ring,
                        o_buffers,
                        turns,
                        queue,
                        problem,
                        BY_TURNS,
                    ),
                ),
                (
                    load,
                    (
                        q_desc,
                        k_desc,
                        v_desc,
                        counter_ptr,
                        q_buffers,
                        q_full,
                        q_empty,
                        k_ring,
                        v_ring,
                        queue,
                        problem,
                        DRAWN,
                    ),
                ),
            ],
            [4, 4, 1],
            [160, 160, 24],
        )
