"""Launch the kernel that chooses tokens."""

from __future__ import annotations

from torch import Tensor

from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.serving.kernels.choose_kernel import choose_kernel
from labs_helpers.transformer.kernels.sample import MOST_TOKENS


class ChooseLaunch:
    """Choose a token per row in one launch, for logits (B, vocabulary) in contiguous rows. ValueError for a larger
    vocabulary than MOST_TOKENS."""

    def __init__(self, vocabulary: int) -> None:
        if vocabulary > MOST_TOKENS:
            raise ValueError(f"the vocabulary has {vocabulary:,} tokens; the sampling kernel takes {MOST_TOKENS:,}")
        self.vocabulary, self.block = vocabulary, max(128, 1 << (vocabulary - 1).bit_length())
        self.options = {"num_warps": min(32, max(4, self.block // 1024))}
        self.launches: dict[tuple[int, ...], TensorLaunch] = {}

    def __call__(
        self, logits: Tensor, u: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, chosen: Tensor
    ) -> None:
        """Store the tokens in `chosen`, (B,) of int64; the other arguments are as for `sampling.choose`."""
        tensors = (logits, u, temperature, top_k, top_p, chosen)
        like = (len(logits), logits.stride(0), *(tensor.data_ptr() % 16 for tensor in tensors))
        if (launch := self.launches.get(like)) is None:
            numbers, constants = (self.vocabulary, logits.stride(0)), {"BLOCK_V": self.block}
            launch = TensorLaunch(choose_kernel, len(logits), numbers, constants, self.options)
            self.launches[like] = launch
        launch(*tensors)
