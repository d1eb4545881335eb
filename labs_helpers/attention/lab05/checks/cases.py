"""Operands for the checks of lab 05, surrounded by NaN, and their exact gradients."""

from dataclasses import dataclass, field

import torch

from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass
from labs_helpers.course.verdict import numbers, surrounded

SCALE = 0.3  # differs from every other factor in the formulas


@dataclass(frozen=True)
class Case:
    """One set of operands, contiguous and surrounded by NaN, on this machine's device.

    near: the level of the scores. dp: the level of dP and delta, far from 0, where 16 bits are coarse. steep: a factor
    for every fifth key, so that its scores are far above or below the cap.
    """

    name: str
    Lq: int
    Lk: int
    causal: bool = False
    dtype: torch.dtype = torch.float32
    near: float = 0.0
    cap: float | None = None
    blocks: dict[str, int] = field(default_factory=dict)
    D: int = 16
    dp: float = 0.0
    steep: float = 1.0

    def operands(self, H: int = 2) -> tuple[dict, BackwardPass]:
        """Return q, k, v, do, lse, delta and scale by name, and the exact gradients."""
        q, k, v, do = random_operands(self.Lq, self.Lk, self.D, H)
        scale = SCALE
        if self.near:
            q[..., 0], k[..., 0] = 10.0, self.near / 10 / scale
        if self.dp:
            do[..., 0], v[..., 0] = 50.0, self.dp / 50
        k[:, :, ::5] *= self.steep
        q, k, v, do = (_between_nan(x.to(self.dtype)) for x in (q, k, v, do))
        exact = BackwardPass(q, k, v, do, scale, self.causal, self.cap)
        stored_o = exact.o.to(self.dtype).double()  # delta is computed from the stored, rounded O
        exact = exact.but(delta=(stored_o * exact.do).sum(-1, keepdim=True))
        lse, delta = (_between_nan(x.squeeze(-1).float().to(q.device)) for x in (exact.lse, exact.delta))
        return {"q": q, "k": k, "v": v, "do": do, "lse": lse, "delta": delta, "scale": scale}, exact


# For exercises 2 and 3. At these sizes, every bound that is off by a row or by a tile changes a result.
CASES = (
    Case("128 queries, 128 keys", 128, 128),
    Case(
        "50 queries, 40 keys, heads of 32", 50, 40, D=32
    ),  # small scores: values past the end show only if they are NaN
    Case("100 queries, 127 keys, scores near −200", 100, 127, near=-200.0),
    Case("192 queries, 192 keys, causal", 192, 192, causal=True),
    Case("70 queries, 150 keys, causal, float16, dP near 2000", 70, 150, causal=True, dtype=torch.float16, dp=2000.0),
    Case("130 queries, 70 keys, causal: 60 queries see no key", 130, 70, causal=True),
    Case("100 queries, 133 keys, causal, BLOCK_M=32, BLOCK_N=64", 100, 133, True, blocks=dict(BLOCK_M=32, BLOCK_N=64)),
    Case("70 queries, 100 keys, causal, BLOCK_M=64, BLOCK_N=32", 70, 100, True, blocks=dict(BLOCK_M=64, BLOCK_N=32)),
)


def random_operands(Lq: int, Lk: int, D: int, H: int = 2) -> list[torch.Tensor]:
    """Return [q, k, v, do] in float32."""
    return [numbers(1, H, L, D, seed=seed) for seed, L in enumerate((Lq, Lk, Lk, Lq))]


def _between_nan(x: torch.Tensor) -> torch.Tensor:
    return surrounded(x.flatten()).view(x.shape)
