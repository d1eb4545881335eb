"""Formulas for the parameters, FLOPs and bytes of a Transformer.

B batch, L length, V vocabulary, W width, F hidden, H heads of D, Hkv key and value heads. A FLOP is one addition or one
multiplication; only matrix products count.
"""

from labs_helpers.transformer.counts.activations import saved_activations
from labs_helpers.transformer.counts.flops import Flops, flops_per_token, forward_flops
from labs_helpers.transformer.counts.peaks import step_peak, step_peaks
from labs_helpers.transformer.counts.states import LAYOUTS, parameters, state_bytes

__all__ = [
    "LAYOUTS",
    "Flops",
    "flops_per_token",
    "forward_flops",
    "parameters",
    "saved_activations",
    "state_bytes",
    "step_peak",
    "step_peaks",
]
