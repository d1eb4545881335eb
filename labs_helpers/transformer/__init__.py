"""A LLaMA-style decoder: `model.Transformer`, the attentions it takes, text to train on, training, and formulas."""
