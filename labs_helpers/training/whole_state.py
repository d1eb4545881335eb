"""Gather a model's parameters and moments from the ranks of any layout, and load them on those of any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from labs_helpers.tensor_parallel.state import gather_state, slice_state
from labs_helpers.training.datasets import Array
from labs_helpers.training.model_part import cut
from labs_helpers.training.trainer import Trainer
from labs_helpers.training.updates import MOMENTS
from labs_helpers.transformer import Transformer

PARTS = ("model", *MOMENTS)  # the parts of a checkpoint


def gather_whole_state(trainer: Trainer) -> dict[str, Array]:
    """Return the whole model's parameters and AdamW moments, by names such as "exp_avg/norm.weight".

    Only the first rank of the pipeline and of tensor parallelism gets them; the others get {}. The ranks of one copy of
    the model call this together, with ZeRO those of all copies; otherwise other copies need not wait.
    """
    whole: dict[str, Array] = {}
    for part in PARTS:
        mine, full = _tensors(trainer, part), dict[str, Tensor]()
        if trainer.dp.rank:
            continue
        for stage in trainer.part.stages.values():
            ours = {name: mine[name] for name, _ in stage.model.named_parameters()}
            full |= gather_state(stage.model, ours, trainer.tp)
        for name, (owner, shape) in owners(trainer).items() if trainer.tp.rank == 0 else ():
            tensor = _moved(trainer, full.get(name), owner, shape)
            if tensor is not None:
                whole[f"{part}/{name}"] = tensor.cpu().numpy()
    return whole


def load_whole_state(trainer: Trainer, step: int, names: Iterable[str], whole: Callable[[str], Array]) -> None:
    """Load a state after `step` steps. whole(name) returns that array of `gather_whole_state`, and is called for all
    names in order, one part after the other."""
    held, names = trainer.part.parameters, list(names)
    for part in PARTS:
        full: dict[str, Tensor] = {}
        for name in (name for name in names if name.startswith(f"{part}/")):
            array, key = whole(name), name.partition("/")[2]
            if key in held:
                full[key] = torch.tensor(array)
        mine: dict[str, Tensor] = {}
        for stage in trainer.part.stages.values():
            ours = {name: full[name] for name, _ in stage.model.named_parameters() if name in full}
            mine |= slice_state(stage.model, ours, trainer.tp)
        if part == "model":
            with torch.no_grad():
                for name, p in held.items():
                    p.copy_(mine[name])
        else:
            trainer.update.load_moments(part, mine)
    trainer.update.set_step(step)
    trainer.step = step


def owners(trainer: Trainer) -> dict[str, tuple[int, torch.Size]]:
    """Return, by parameter of the whole model, the rank of the pipeline whose value counts, and the whole shape."""
    config, rank_of, spans = trainer.settings.config, trainer.part.rank_of, cut(trainer.settings)
    with torch.device("meta"):
        model = Transformer(config)
    last = config.layers + 1  # the number of the part with the output
    places = {"embedding": 0, "norm": last, "output": last} | {f"blocks.{i}": i + 1 for i in range(config.layers)}
    found = {}
    for name, p in model.named_parameters():
        number = next(at for prefix, at in places.items() if name.startswith(f"{prefix}."))
        stage = next(stage for stage, (start, stop) in enumerate(spans) if start <= number < stop)
        found[name] = rank_of[stage], p.shape
    return found


def _tensors(trainer: Trainer, part: str) -> dict[str, Tensor]:
    if part == "model":
        return {name: p.detach() for name, p in trainer.part.parameters.items()}
    return trainer.update.moments(part)


def _moved(trainer: Trainer, tensor: Tensor | None, owner: int, shape: torch.Size) -> Tensor | None:
    """Send a tensor from the rank of the pipeline that owns it to the first rank; return it there."""
    pp = trainer.pp
    if pp.rank == 0 and owner:
        tensor = torch.empty(shape, dtype=trainer.pipeline.dtype, device=trainer.place.device)
        pp.receive(tensor, owner)
    elif pp.rank and pp.rank == owner:
        assert tensor is not None
        pp.send(tensor, 0)
    return None if pp.rank else tensor
