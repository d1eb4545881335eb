"""Measure lab 02's SiLU kernel at two layers of a LLaMA-7B, for the record behind lab 03's transfer exercise.

python -m tests.gemm.lab03.silu_sweep       # on a GPU; --record: for the lab
"""

import torch

from labs_helpers.gemm.tuning.recorded import STUDY
from labs_helpers.gemm.tuning.sweep import measure_sweep
from tests.gemm.lab02.exercises.ex7_silu_matmul import silu_matmul_kernel

SHAPES = ((4096, 11008, 4096), (4096, 4096, 11008))


def silu_matmul(a, b, c, config):
    """Compute SiLU(A·B + bias), with the first row of C as the bias."""
    (M, K), N = a.shape, b.shape[1]
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (-(-M // config.BLOCK_M), -(-N // config.BLOCK_N))
    silu_matmul_kernel[grid](a, b, c[0], d, M, N, K, *a.stride(), *b.stride(), *d.stride(), **config.without_order())
    return d


def formula(a, b, c):
    return torch.nn.functional.silu(a @ b + c[0])


if __name__ == "__main__":
    given = STUDY.parser(__doc__).parse_args()
    STUDY.keep(measure_sweep(SHAPES, kernel=silu_matmul, name="silu_matmul", formula=formula), given.out)
