"""Peak rates and memory sizes from the vendors' documents, for the GPUs that the labs mention.

Every rate is the dense one. NVIDIA's sheets print twice as much for tensor cores, with a footnote on 2:4 sparsity,
which no lab uses.
"""

import re
from dataclasses import dataclass

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class Datasheet:
    """One GPU. Rates are peaks at the boost clock."""

    architecture: str  # 'sm_90', 'gfx942'
    fp16_flops: float  # FLOP/s of the tensor (matrix) cores, float16 in, dense
    fp32_flops: float  # FLOP/s in float32, outside the tensor cores
    bandwidth: float  # DRAM, bytes/s
    memory_bytes: int  # DRAM as the sheet states it, GB = 1e9; drivers report slightly more
    link_bandwidth: float  # bytes/s in one direction to the other GPUs of the node: NVLink, Infinity Fabric, else PCIe
    l2_bytes: int
    multiprocessors: int  # SMs; on AMD, compute units
    shared_bytes_per_sm: int  # on AMD, LDS
    shared_bytes_per_block: int  # the limit per block
    registers_per_sm: int  # of 32 bits
    warp_size: int  # on AMD, the wavefront
    source: str
    torch_name: str  # a regular expression that matches torch's name for the GPU
    l3_bytes: int = 0  # AMD's Infinity Cache

    @property
    def capability(self) -> int:
        """Return NVIDIA's compute capability times ten: 90 for sm_90; 0 on AMD."""
        return int(self.architecture.removeprefix("sm_")) if self.architecture.startswith("sm_") else 0

    @property
    def ridge(self) -> float:
        """Return the FLOP per byte above which a float16 matmul is bound by compute."""
        return self.fp16_flops / self.bandwidth


# Names are matched narrowly: the PCIe and NVL boards and the 40 GB A100 have other rates, and 'GH200'
# contains 'H200'.
DATASHEET = {
    "T4": Datasheet(
        architecture="sm_75", fp16_flops=65e12, fp32_flops=8.1e12, bandwidth=320e9,
        memory_bytes=int(16e9), link_bandwidth=16e9, l2_bytes=4 * MIB,
        multiprocessors=40, shared_bytes_per_sm=64 * KIB, shared_bytes_per_block=64 * KIB,
        registers_per_sm=65536, warp_size=32, torch_name=r"\bT4\b",
        source="NVIDIA T4 Tensor Core GPU datasheet; NVIDIA Turing GPU Architecture whitepaper; "
        "CUDA C++ Programming Guide, compute capability 7.5",
    ),
    "A100": Datasheet(
        architecture="sm_80", fp16_flops=312e12, fp32_flops=19.5e12, bandwidth=2039e9,
        memory_bytes=int(80e9), link_bandwidth=300e9, l2_bytes=40 * MIB,
        multiprocessors=108, shared_bytes_per_sm=164 * KIB, shared_bytes_per_block=163 * KIB,
        registers_per_sm=65536, warp_size=32, torch_name=r"\bA100-SXM\d?-80GB\b",
        source="NVIDIA A100 80GB SXM datasheet; NVIDIA A100 Tensor Core GPU Architecture whitepaper; "
        "CUDA C++ Programming Guide, compute capability 8.0",
    ),
    "L4": Datasheet(
        architecture="sm_89", fp16_flops=121e12, fp32_flops=30.3e12, bandwidth=300e9,
        memory_bytes=int(24e9), link_bandwidth=32e9, l2_bytes=48 * MIB,
        multiprocessors=58, shared_bytes_per_sm=100 * KIB, shared_bytes_per_block=99 * KIB,
        registers_per_sm=65536, warp_size=32, torch_name=r"\bL4\b",
        source="NVIDIA L4 Tensor Core GPU datasheet; NVIDIA Ada GPU Architecture whitepaper; "
        "CUDA C++ Programming Guide, compute capability 8.9",
    ),
    "H100": Datasheet(
        architecture="sm_90", fp16_flops=989e12, fp32_flops=67e12, bandwidth=3350e9,
        memory_bytes=int(80e9), link_bandwidth=450e9, l2_bytes=50 * MIB,
        multiprocessors=132, shared_bytes_per_sm=228 * KIB, shared_bytes_per_block=227 * KIB,
        registers_per_sm=65536, warp_size=32, torch_name=r"\bH100 80GB HBM3\b",
        source="NVIDIA H100 SXM datasheet; NVIDIA H100 Tensor Core GPU Architecture whitepaper; "
        "CUDA C++ Programming Guide, compute capability 9.0",
    ),
    "H200": Datasheet(
        architecture="sm_90", fp16_flops=989e12, fp32_flops=67e12, bandwidth=4800e9,
        memory_bytes=int(141e9), link_bandwidth=450e9, l2_bytes=60 * MIB,
        multiprocessors=132, shared_bytes_per_sm=228 * KIB, shared_bytes_per_block=227 * KIB,
        registers_per_sm=65536, warp_size=32, torch_name=r"\bH200\b(?! NVL)",
        source="NVIDIA H200 SXM datasheet; NVIDIA H100 Tensor Core GPU Architecture whitepaper; "
        "CUDA C++ Programming Guide, compute capability 9.0; L2 as the CUDA driver reports it",
    ),
    "MI300X": Datasheet(
        architecture="gfx942", fp16_flops=1307.4e12, fp32_flops=163.4e12, bandwidth=5300e9,
        memory_bytes=int(192e9), link_bandwidth=7 * 64e9, l2_bytes=8 * 4 * MIB, l3_bytes=256 * MIB,
        multiprocessors=304, shared_bytes_per_sm=64 * KIB, shared_bytes_per_block=64 * KIB,
        registers_per_sm=131072, warp_size=64, torch_name=r"\bMI300X\b",
        source="AMD Instinct MI300X data sheet; AMD CDNA 3 Architecture white paper; "
        "AMD Instinct MI300 Instruction Set Architecture",
    ),
}  # fmt: skip


def lookup(gpu_name: str) -> Datasheet | None:
    """Return the entry for a key of DATASHEET or for a GPU's name as torch reports it; None for a GPU that is not
    listed."""
    if gpu_name in DATASHEET:
        return DATASHEET[gpu_name]
    return next((entry for entry in DATASHEET.values() if re.search(entry.torch_name, gpu_name)), None)
