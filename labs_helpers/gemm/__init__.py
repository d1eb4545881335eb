"""The fused GEMM D = ReLU(A·B + C) of labs 02 and 03: `fused_matmul`, its kernels, its tuning and its studies."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.gemm.configs import Config
    from labs_helpers.gemm.fused import fused_matmul

__all__ = ["Config", "fused_matmul"]
__getattr__, __dir__ = lazily(__name__, {"Config": "configs", "fused_matmul": "fused"})
