"""The sizes of a transformer: by name, or your own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TransformerConfig:
    """A decoder's shape. Another size: `TransformerConfig(…)`, or `dataclasses.replace(SIZES["small"], layers=6)`.

    ValueError names the field that does not fit.
    """

    vocabulary: int  # V, number of tokens
    layers: int
    width: int  # of the residual stream
    heads: int  # H, of the queries
    hidden: int  # width inside SwiGLU
    kv_heads: int | None = None  # Hkv, of keys and values, a divisor of heads; None: as many as heads
    context: int = 1024  # longest sequence, in tokens
    rope_theta: float = 10_000.0  # base of the rotary embedding's wavelengths
    norm_eps: float = 1e-5  # added to the mean square in RMSNorm
    tied: bool = True  # the output uses the embedding's weight

    def __post_init__(self) -> None:
        if self.kv_heads is None:
            object.__setattr__(self, "kv_heads", self.heads)
        for name in ("vocabulary", "layers", "width", "heads", "hidden", "kv_heads", "context"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}, not an integer of 1 or more")
        for name in ("rope_theta", "norm_eps"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}; it has to be positive")
        if self.width % self.heads:
            raise ValueError(f"width is {self.width}, no multiple of the {self.heads} heads")
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.width} / {self.heads} = {self.head_dim}; rotary embedding turns pairs")
        if self.heads % self.key_value_heads:
            raise ValueError(f"heads is {self.heads}, no multiple of the {self.kv_heads} kv_heads")

    @property
    def head_dim(self) -> int:
        """D, the width of one head."""
        return self.width // self.heads

    @property
    def key_value_heads(self) -> int:
        """The number of key and value heads, Hkv."""
        return self.heads if self.kv_heads is None else self.kv_heads


def _gpt2(layers: int, width: int, heads: int) -> TransformerConfig:
    # GPT-2's vocabulary, and SwiGLU's 8/3 of the width, are rounded up to a multiple of 64 (Shazeer, 2020: three
    # matrices of 8/3 have the parameters of two of 4). Rotary embedding has no parameters; GPT-2 has a table instead.
    hidden = -(-8 * width // (3 * 64)) * 64
    return TransformerConfig(50_304, layers, width, heads, hidden)


SIZES = {
    "tiny": TransformerConfig(256, layers=2, width=128, heads=4, hidden=384, context=256),  # bytes, for CPUs
    "bytes": TransformerConfig(
        256, layers=6, width=384, heads=6, hidden=1024
    ),  # `quantization.byte_model` ships it, trained
    "small": _gpt2(12, 768, 12),
    "medium": _gpt2(24, 1024, 16),
    "large": _gpt2(36, 1280, 20),
    "xl": _gpt2(48, 1600, 25),
    "1b": TransformerConfig(32_000, layers=16, width=2048, heads=16, hidden=5632, context=4096, tied=False),
}
