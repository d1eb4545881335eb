"""A trained transformer of bytes, about 10 million parameters in bfloat16: `load_byte_model`.

`train_byte_model.py` trained it on `text`. A file holds its configuration, its weights, and facts about its training;
trained/LICENSE.md says under which terms the shipped one may be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from labs_helpers.transformer.attentions import AttentionFunction, sdpa
from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.model import Transformer

SHIPPED = Path(__file__).parent / "trained" / "bytes.pt"


def save_byte_model(path: Path, model: Transformer, about: Mapping[str, Any]) -> None:
    """Write the model with its weights in bfloat16. about: facts about its training, as numbers and texts.

    A writer that is killed leaves the previous file, if there is one.
    """
    weights = {name: weight.detach().to("cpu", torch.bfloat16) for name, weight in model.state_dict().items()}
    unfinished = path.with_name(path.name + ".part")
    torch.save({"config": asdict(model.config), "weights": weights, "about": dict(about)}, unfinished)
    unfinished.replace(path)


def load_byte_model(
    path: Path = SHIPPED,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.bfloat16,
    attention: AttentionFunction = sdpa,
) -> Transformer:
    """Return the trained model in eval mode; its parameters require gradients.

    FileNotFoundError for a missing file; RuntimeError or pickle.UnpicklingError for another kind of file.
    """
    content = torch.load(path, map_location=device, weights_only=True)
    with torch.device("meta"):  # nothing is drawn, and no memory taken, for weights that the file has
        model = Transformer(TransformerConfig(**content["config"]), attention)
    model.load_state_dict(content["weights"], assign=True)
    return model.to(dtype).eval().requires_grad_()
