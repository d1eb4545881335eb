"""A LLaMA-style decoder: `Transformer`, its attentions, text to train on, training, and formulas."""

from typing import TYPE_CHECKING

from labs_helpers.public import lazily

if TYPE_CHECKING:
    from labs_helpers.transformer.config import SIZES, TransformerConfig
    from labs_helpers.transformer.model import Transformer

__all__ = ["SIZES", "Transformer", "TransformerConfig"]
__getattr__, __dir__ = lazily(__name__, {"SIZES": "config", "Transformer": "model", "TransformerConfig": "config"})
