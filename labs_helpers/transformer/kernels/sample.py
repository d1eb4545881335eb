"""Launch the sampling kernel."""

from __future__ import annotations

from torch import Tensor

from labs_helpers.compile.dependent_launch import can_depend, dependent_options
from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.transformer.kernels.sample_kernel import sample_kernel
from labs_helpers.transformer.sampling import Sampling

MOST_TOKENS = 2**17  # one program keeps a row of logits in registers


class SampleLaunch:
    """Append a token to every sequence, in one launch, for logits (B, vocabulary); arguments of the calls as for
    `sampling.sample`. ValueError for a larger vocabulary than MOST_TOKENS."""

    def __init__(self, vocabulary: int, how: Sampling, dependent: bool | None = None) -> None:
        if vocabulary > MOST_TOKENS:
            raise ValueError(f"the vocabulary has {vocabulary:,} tokens; the sampling kernel takes {MOST_TOKENS:,}")
        dependent = can_depend() if dependent is None else dependent
        block = max(128, 1 << (vocabulary - 1).bit_length())
        limited = how.top_k is not None and how.top_k < vocabulary
        self.numbers = (vocabulary, how.top_k or 0, 1 / how.temperature if how.temperature else 1.0)
        self.constants = {
            "GREEDY": how.temperature == 0,
            "LIMITED": limited,
            "BLOCK_V": block,
            "DEPENDENT": dependent,
        }
        self.options = {"num_warps": min(32, max(4, block // 1024))} | dependent_options(dependent)
        self.launches: dict[tuple[int, int, int], TensorLaunch] = {}

    def __call__(self, logits: Tensor, seed: Tensor, lengths: Tensor, tokens: Tensor, current: Tensor) -> None:
        strides = (logits.shape[0], logits.stride(0), tokens.stride(0))
        if (launch := self.launches.get(strides)) is None:
            numbers = (*self.numbers, *strides[1:])
            launch = TensorLaunch(sample_kernel, logits.shape[0], numbers, self.constants, self.options)
            self.launches[strides] = launch
        launch(logits, seed, lengths, tokens, current)
