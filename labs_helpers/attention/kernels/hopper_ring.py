"""Parts of both Hopper kernels: a ring of buffers between warps with different roles, and an addition by TMA."""

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.language.core import _aggregate as aggregate


@aggregate
class Ring:
    """STAGES buffers in shared memory that one warp fills and warpgroups read, step by step.

    full and empty hold one barrier per stage: `full` completes when a buffer's bytes have arrived, `empty` when every
    reader has released the buffer. A barrier's phase flips once per round.
    """

    buffers: gl.shared_memory_descriptor
    full: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor

    @gluon.constexpr_function
    def __init__(self, buffers, full, empty):
        self.buffers, self.full, self.empty = buffers, full, empty

    @gluon.jit
    def stage(self, step):
        return step % self.full.type.shape[0]

    @gluon.jit
    def phase(self, step):
        return (step // self.full.type.shape[0]) & 1

    @gluon.jit
    def wait_empty(self, step, bytes: gl.constexpr):
        """Wait until the step's buffer may be overwritten, expect `bytes`, and return the barrier for the copy."""
        mbarrier.wait(self.empty.index(self.stage(step)), self.phase(step) ^ 1)
        full = self.full.index(self.stage(step))
        mbarrier.expect(full, bytes)
        return full

    @gluon.jit
    def wait_full(self, step):
        mbarrier.wait(self.full.index(self.stage(step)), self.phase(step))

    @gluon.jit
    def release(self, step):
        mbarrier.arrive(self.empty.index(self.stage(step)), count=1)

    @gluon.jit
    def buffer(self, step):
        """Return the step's buffer, (1, 1, rows, D) in its descriptor, as a matrix (rows, D)."""
        ROWS: gl.constexpr = self.buffers.type.shape[3]
        D: gl.constexpr = self.buffers.type.shape[4]
        return self.buffers.index(self.stage(step)).reshape([ROWS, D])


@gluon.jit
def barriers(STAGES: gl.constexpr, arrivals: gl.constexpr):
    """Return STAGES barriers, each of which completes after `arrivals` arrivals."""
    made = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(made.index(i), count=arrivals)
    return made


@gluon.jit
def ring_of(desc, STAGES: gl.constexpr, readers: gl.constexpr):
    """Return a ring for the blocks of a descriptor; `readers` warpgroups release each buffer."""
    buffers = gl.allocate_shared_memory(desc.dtype, [STAGES] + desc.block_type.shape, desc.layout)
    return Ring(buffers, barriers(STAGES, 1), barriers(STAGES, readers))


@builtin
def add_shared_to_global(desc, coordinates, source, _semantic=None):
    """Add source to memory[coordinates] by TMA, atomically per element and asynchronously.

    Gluon wraps TMA's copies but not this instruction (cp.reduce.async.bulk.tensor), which its builder offers. Wait for
    it with `tma.store_wait`.
    """
    coordinates = _semantic._convert_to_ir_values(coordinates, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, desc.handle, coordinates, source.handle)
