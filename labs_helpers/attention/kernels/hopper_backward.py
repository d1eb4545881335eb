"""FlashAttention backward for Hopper in Gluon: one kernel with five matrix products per tile.

A program takes a tile of 128 keys of one K/V head and loops over the queries that see them, in all query heads of the
group, or in a part of them if there would be too few programs. One warp loads tiles of q and dO with their rows'
statistics by TMA. Two warpgroups compute 64 keys each and keep dK and dV in registers. All products are transposed, so
the registers that hold P and dS after one product are those from which the next product reads them:

    Sᵀ = K·qᵀ      dPᵀ = V·dOᵀ      dV += Pᵀ·dO      dK += dSᵀ·q      dQ += dS·K

Only dS goes through shared memory, because dQ is a sum over all 128 keys; each warpgroup computes half of its columns.
TMA adds the result to dQ in memory, in float32, while the next products run.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
from triton.language.core import _aggregate as aggregate

from labs_helpers.attention.kernels.hopper_ring import Ring, add_shared_to_global, barriers, ring_of


@aggregate
class Problem:
    """Sizes, and the keys of this program; c = scale · log2(e).

    Programs are numbered in groups of `head_group` K/V heads, whose q, dO and dQ fit into L2 together. Within a group,
    the first keys, which most queries see, come first. If a group of query heads is divided into `parts`, each part
    counts as a K/V head with its own dK and dV, and reads K and V of head // parts.
    """

    kv_heads: gl.tensor  # per batch entry; each part counts as one
    group_size: gl.tensor  # query heads per K/V head
    Lq: gl.tensor
    Lk: gl.tensor
    q_blocks: gl.tensor  # blocks of BLOCK_M queries per head
    tiles_n: gl.tensor  # tiles of BLOCK_N keys per head
    all_kv_heads: gl.tensor  # of the whole batch
    head_group: gl.tensor
    parts: gl.tensor
    c: gl.tensor
    scale: gl.tensor
    CAUSAL: gl.constexpr
    RAGGED: gl.constexpr  # the last key tile extends past Lk

    @gluon.constexpr_function
    def __init__(
        self,
        kv_heads,
        group_size,
        Lq,
        Lk,
        q_blocks,
        tiles_n,
        all_kv_heads,
        head_group,
        parts,
        c,
        scale,
        CAUSAL,
        RAGGED,
    ):
        self.kv_heads, self.group_size, self.Lq, self.Lk, self.q_blocks = kv_heads, group_size, Lq, Lk, q_blocks
        self.tiles_n, self.all_kv_heads, self.head_group, self.parts = tiles_n, all_kv_heads, head_group, parts
        self.c, self.scale = c, scale
        self.CAUSAL, self.RAGGED = gl.constexpr(CAUSAL), gl.constexpr(RAGGED)

    @gluon.jit
    def place(self):
        """Return (key tile, K/V head in the whole batch) of this program."""
        program = gl.program_id(0)
        group = program // (self.head_group * self.tiles_n)
        first = group * self.head_group
        size = min(self.all_kv_heads - first, self.head_group)
        rest = program - first * self.tiles_n
        return rest // size, first + rest % size

    @gluon.jit
    def first_block(self, first_key, BLOCK_M: gl.constexpr):
        """Return the first block of queries that sees first_key or a later key."""
        first = 0
        if self.CAUSAL:
            first = max(first_key - (self.Lk - self.Lq), 0) // BLOCK_M
        return min(first, self.q_blocks)

    @gluon.jit
    def first_whole_block(self, first_key, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
        """Return the first block of queries that sees all keys of the tile; none if the tile extends past Lk."""
        first = self.first_block(first_key + BLOCK_N - 1 + BLOCK_M - 1, BLOCK_M)
        if self.RAGGED:
            if first_key + BLOCK_N > self.Lk:
                first = self.q_blocks
        return first

    @gluon.jit
    def block(self, turn, tile):
        """Return the block of queries in the turn-th turn.

        Without a mask, key tiles start at different blocks so that they seldom add to the same rows of dQ at the same
        time. With a mask they start at different blocks anyway.
        """
        if not self.CAUSAL:
            turn = (turn + 2 * tile) % self.q_blocks
        return turn

    @gluon.jit
    def masked(self, x, first_key, first_row, layout: gl.constexpr):
        """Return xᵀ, (keys, queries), with −inf where the query does not see the key."""
        ROWS: gl.constexpr = x.type.shape[0]
        BLOCK_M: gl.constexpr = x.type.shape[1]
        keys = first_key + gl.arange(0, ROWS, gl.SliceLayout(1, layout))
        rows = first_row + gl.arange(0, BLOCK_M, gl.SliceLayout(0, layout))
        last = gl.full_like(rows, self.Lk - 1)
        if self.CAUSAL:
            last = gl.minimum(rows + self.Lk - self.Lq, self.Lk - 1)
        return gl.where(keys[:, None] <= last[None, :], x, float("-inf"))


@aggregate
class Shared:
    """Shared memory of the warps: K and V of the tile, rings of q and dO with their statistics, two dS buffers, dQ."""

    k: gl.shared_memory_descriptor
    v: gl.shared_memory_descriptor
    kv_full: gl.shared_memory_descriptor
    q_ring: Ring
    do_ring: Ring
    lse: gl.shared_memory_descriptor
    delta: gl.shared_memory_descriptor
    ds: gl.shared_memory_descriptor
    ds_full: gl.shared_memory_descriptor
    dq: gl.shared_memory_descriptor

    @gluon.constexpr_function
    def __init__(self, k, v, kv_full, q_ring, do_ring, lse, delta, ds, ds_full, dq):
        self.k, self.v, self.kv_full, self.q_ring, self.do_ring = k, v, kv_full, q_ring, do_ring
        self.lse, self.delta, self.ds, self.ds_full, self.dq = lse, delta, ds, ds_full, dq


@gluon.jit
def load(q_desc, do_desc, stats_desc, k_desc, v_desc, shared, problem, first_delta):
    """Run the loading warp: load K and V once, then q with −lse/scale and dO with −delta, block by block."""
    BLOCK_M: gl.constexpr = q_desc.block_type.shape[2]
    D: gl.constexpr = q_desc.block_type.shape[3]
    CONSUMERS: gl.constexpr = shared.k.type.shape[0]
    ROWS: gl.constexpr = k_desc.block_type.shape[2]
    BLOCK_N: gl.constexpr = ROWS * CONSUMERS
    BYTES: gl.constexpr = BLOCK_M * D * 2 + BLOCK_M * 4
    tile, place = problem.place()
    batch, kv_head = place // problem.kv_heads, place % problem.kv_heads
    mbarrier.expect(shared.kv_full.index(0), 2 * BLOCK_N * D * 2)
    read = kv_head // problem.parts
    for i in gl.static_range(CONSUMERS):
        key = tile * BLOCK_N + i * ROWS
        tma.async_copy_global_to_shared(k_desc, [batch, read, key, 0], shared.kv_full.index(0), shared.k.index(i))
        tma.async_copy_global_to_shared(v_desc, [batch, read, key, 0], shared.kv_full.index(0), shared.v.index(i))
    first = problem.first_block(tile * BLOCK_N, BLOCK_M)
    step = 0
    for i in range(0, problem.group_size):
        head = kv_head * problem.group_size + i
        stats = (batch * problem.kv_heads * problem.group_size + head) * problem.q_blocks
        for turn in range(first, problem.q_blocks):
            block = problem.block(turn, tile)
            stage = shared.q_ring.stage(step)
            full = shared.q_ring.wait_empty(step, BYTES)
            tma.async_copy_global_to_shared(
                q_desc, [batch, head, block * BLOCK_M, 0], full, shared.q_ring.buffers.index(stage)
            )
            tma.async_copy_global_to_shared(stats_desc, [stats + block, 0], full, shared.lse.index(stage))
            full = shared.do_ring.wait_empty(step, BYTES)
            tma.async_copy_global_to_shared(
                do_desc, [batch, head, block * BLOCK_M, 0], full, shared.do_ring.buffers.index(stage)
            )
            tma.async_copy_global_to_shared(
                stats_desc, [first_delta + stats + block, 0], full, shared.delta.index(stage)
            )
            step += 1


@gluon.jit
def one_block(
    me: gl.constexpr,
    dk,
    dv,
    step,
    block,
    first_key,
    dq_desc,
    dq_row,
    shared,
    problem,
    MASK: gl.constexpr,
    layout: gl.constexpr,
    acc_layout: gl.constexpr,
    dq_layout: gl.constexpr,
):
    """Compute all five products of one block of queries and this warpgroup's keys."""
    CONSUMERS: gl.constexpr = shared.k.type.shape[0]
    ROWS: gl.constexpr = shared.k.type.shape[3]
    D: gl.constexpr = shared.k.type.shape[4]
    BLOCK_M: gl.constexpr = shared.q_ring.buffers.type.shape[3]
    COLUMNS: gl.constexpr = D // CONSUMERS
    operand: gl.constexpr = gl.DotOperandLayout(0, acc_layout, 2)
    stage = shared.q_ring.stage(step)
    q, do = shared.q_ring.buffer(step), shared.do_ring.buffer(step)
    k, v = shared.k.index(me).reshape([ROWS, D]), shared.v.index(me).reshape([ROWS, D])
    # Accumulators start at −lse/scale and −delta, so the products below give S − lse/scale and dP − delta.
    shared.q_ring.wait_full(step)
    s = shared.lse.index(stage).reshape([BLOCK_M]).load(gl.SliceLayout(0, layout))
    shared.do_ring.wait_full(step)
    dp = shared.delta.index(stage).reshape([BLOCK_M]).load(gl.SliceLayout(0, layout))
    s = warpgroup_mma(k, q.permute((1, 0)), s[None, :].broadcast_to([ROWS, BLOCK_M]), is_async=True)
    dp = warpgroup_mma(v, do.permute((1, 0)), dp[None, :].broadcast_to([ROWS, BLOCK_M]), is_async=True)
    s = warpgroup_mma_wait(1, (s,))
    x = s * problem.c
    if MASK:
        x = problem.masked(x, first_key, block * BLOCK_M, layout)
    p = gl.exp2(x)
    p_operand = gl.convert_layout(p.to(q.dtype), operand)
    dv = warpgroup_mma(p_operand, do, dv, is_async=True)
    dp = warpgroup_mma_wait(1, (dp,))
    ds = (p * dp).to(q.dtype)
    # dS has two buffers: a warpgroup that is one block ahead must not overwrite data that the other still reads.
    half = (step & 1) * CONSUMERS
    shared.ds.index(half + me).store(ds)
    fence_async_shared()
    mbarrier.arrive(shared.ds_full.index(0), count=1)
    ds_operand = gl.convert_layout(ds, operand)
    dk = warpgroup_mma(ds_operand, q, dk, is_async=True)
    mbarrier.wait(shared.ds_full.index(0), step & 1)
    dq = warpgroup_mma_init(gl.zeros((BLOCK_M, COLUMNS), gl.float32, dq_layout))
    for i in gl.static_range(CONSUMERS):
        columns = shared.k.index(i).reshape([ROWS, D]).slice(me * COLUMNS, COLUMNS, dim=1)
        dq = warpgroup_mma(shared.ds.index(half + i).permute((1, 0)), columns, dq, use_acc=i > 0, is_async=True)
    dk, dv, dq, p_operand, ds_operand = warpgroup_mma_wait(0, (dk, dv, dq, p_operand, ds_operand))
    shared.q_ring.release(step)
    shared.do_ring.release(step)
    tma.store_wait(0)  # TMA has read the previous block from the buffer
    shared.dq.index(me).store(dq)
    fence_async_shared()
    add_shared_to_global(dq_desc, [dq_row + block * BLOCK_M, me * COLUMNS], shared.dq.index(me))
    return dk, dv


@gluon.jit
def consume(me: gl.constexpr, dk_desc, dv_desc, dq_desc, shared, problem):
    """Run warpgroup `me`: process its 64 keys and all queries that see them."""
    CONSUMERS: gl.constexpr = shared.k.type.shape[0]
    ROWS: gl.constexpr = shared.k.type.shape[3]
    D: gl.constexpr = shared.k.type.shape[4]
    BLOCK_M: gl.constexpr = shared.q_ring.buffers.type.shape[3]
    BLOCK_N: gl.constexpr = ROWS * CONSUMERS
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    acc_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    dq_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D // CONSUMERS, 16])
    tile, place = problem.place()
    batch, kv_head = place // problem.kv_heads, place % problem.kv_heads
    first_key = tile * BLOCK_N + me * ROWS
    first = problem.first_block(tile * BLOCK_N, BLOCK_M)
    whole = problem.first_whole_block(tile * BLOCK_N, BLOCK_M, BLOCK_N)
    dk = gl.zeros((ROWS, D), gl.float32, acc_layout)
    dv = gl.zeros((ROWS, D), gl.float32, acc_layout)
    mbarrier.wait(shared.kv_full.index(0), 0)
    step = 0
    for i in range(0, problem.group_size):
        head = (batch * problem.kv_heads + kv_head) * problem.group_size + i
        dq_row = head * problem.q_blocks * BLOCK_M
        if problem.CAUSAL or problem.RAGGED:  # even a loop that never runs would cost registers
            for turn in range(first, whole):
                dk, dv = one_block(
                    me,
                    dk,
                    dv,
                    step,
                    problem.block(turn, tile),
                    first_key,
                    dq_desc,
                    dq_row,
                    shared,
                    problem,
                    True,
                    layout,
                    acc_layout,
                    dq_layout,
                )
                step += 1
        for turn in range(whole, problem.q_blocks):
            dk, dv = one_block(
                me,
                dk,
                dv,
                step,
                problem.block(turn, tile),
                first_key,
                dq_desc,
                dq_row,
                shared,
                problem,
                False,
                layout,
                acc_layout,
                dq_layout,
            )
            step += 1
    tma.store_wait(0)
    # Only this warpgroup reads its part of V, and it has finished; dV and then dK are stored through this buffer.
    out = shared.v.index(me)
    out.reshape([ROWS, D]).store(dv.to(dv_desc.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(dv_desc, [batch, kv_head, first_key, 0], out)
    tma.store_wait(0)
    out.reshape([ROWS, D]).store((dk * problem.scale).to(dk_desc.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(dk_desc, [batch, kv_head, first_key, 0], out)
    tma.store_wait(0)


@gluon.jit
def consume_0(dk_desc, dv_desc, dq_desc, shared, problem):
    consume(0, dk_desc, dv_desc, dq_desc, shared, problem)


@gluon.jit
def consume_1(dk_desc, dv_desc, dq_desc, shared, problem):
    consume(1, dk_desc, dv_desc, dq_desc, shared, problem)


SIZES = ["kv_heads", "group_size", "Lq", "Lk", "q_blocks", "tiles_n", "all_kv_heads", "head_group", "parts"]
SIZES += ["first_delta"]


@gluon.jit(do_not_specialize=SIZES)  # keeps a size of 1 a run-time value, which a Problem can hold
def hopper_backward_kernel(
    q_desc,
    do_desc,
    stats_desc,
    k_desc,
    v_desc,
    dk_desc,
    dv_desc,
    dq_desc,
    kv_heads,
    group_size,
    Lq,
    Lk,
    q_blocks,
    tiles_n,
    all_kv_heads,
    head_group,
    parts,
    first_delta,
    c,
    scale,
    STAGES: gl.constexpr,
    CAUSAL: gl.constexpr,
    RAGGED: gl.constexpr,
):
    """Compute dK, dV and dQ/scale; arguments are descriptors of (B, H, L, D) tensors.

    q and dO have blocks of BLOCK_M rows, K, V, dK and dV blocks of 64. stats: float32, one row of BLOCK_M per block of
    queries: −lse/scale of all heads (−inf for a row without keys or past the end), then −delta from row first_delta on.
    dq: float32, one row per query, every head padded to whole blocks; 0 at launch, dQ/scale at the end. RAGGED: Lk is
    not a multiple of 128. See Problem for the sizes; dK and dV have kv_heads heads, K and V kv_heads // parts. Launch
    with num_warps=4 and one program per tile of 128 keys and head of dK.
    """
    CONSUMERS: gl.constexpr = 2
    BLOCK_M: gl.constexpr = q_desc.block_type.shape[2]
    ROWS: gl.constexpr = k_desc.block_type.shape[2]
    problem = Problem(
        kv_heads, group_size, Lq, Lk, q_blocks, tiles_n, all_kv_heads, head_group, parts, c, scale, CAUSAL, RAGGED
    )
    kv_shape: gl.constexpr = [CONSUMERS] + k_desc.block_type.shape
    ds_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, BLOCK_M], q_desc.dtype)
    shared = Shared(
        gl.allocate_shared_memory(k_desc.dtype, kv_shape, k_desc.layout),
        gl.allocate_shared_memory(v_desc.dtype, kv_shape, v_desc.layout),
        barriers(1, 1),
        ring_of(q_desc, STAGES, CONSUMERS),
        ring_of(do_desc, STAGES, CONSUMERS),
        gl.allocate_shared_memory(gl.float32, [STAGES, 1, BLOCK_M], stats_desc.layout),
        gl.allocate_shared_memory(gl.float32, [STAGES, 1, BLOCK_M], stats_desc.layout),
        gl.allocate_shared_memory(q_desc.dtype, [2 * CONSUMERS, ROWS, BLOCK_M], ds_layout),
        barriers(1, CONSUMERS),
        gl.allocate_shared_memory(gl.float32, [CONSUMERS] + dq_desc.block_type.shape, dq_desc.layout),
    )
    gl.warp_specialize(
        [
            (consume_0, (dk_desc, dv_desc, dq_desc, shared, problem)),
            (consume_1, (dk_desc, dv_desc, dq_desc, shared, problem)),
            (load, (q_desc, do_desc, stats_desc, k_desc, v_desc, shared, problem, first_delta)),
        ],
        [4, 1],
        [240, 24],
    )
