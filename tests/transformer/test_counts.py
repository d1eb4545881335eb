"""Compare every formula with counts: parameters, FlopCounterMode, tensors that autograd saves."""

import dataclasses

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from labs_helpers.transformer import SIZES, Transformer, counts
from labs_helpers.transformer.attentions import ATTENTIONS
from labs_helpers.transformer.train import next_token_loss
from tests.planted import planted
from tests.transformer.independent import GROUPED

CONFIGS = {
    "tiny": SIZES["tiny"],
    "grouped, untied": GROUPED,
    "grouped, tied": dataclasses.replace(GROUPED, tied=True, layers=3),
}
config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def batch_of(config, batch, length):
    return torch.randint(config.vocabulary, (2, batch, length), generator=torch.Generator().manual_seed(0)).unbind()


def parameters_agree(config, parameters=counts.parameters):
    model = Transformer(config)
    assert sum(parameters(config).values()) == sum(p.numel() for p in model.parameters())
    part = parameters(config)
    assert part["mlp"] == sum(p.numel() for block in model.blocks for p in block.mlp.parameters())
    assert part["attention"] == sum(p.numel() for block in model.blocks for p in block.attention.parameters())


def flops_agree(config, flops_per_token=counts.flops_per_token):
    x, y = batch_of(config, 3, 32)
    model, expected = Transformer(config), flops_per_token(config, 32)
    with FlopCounterMode(display=False) as forward:
        loss = next_token_loss(model(x), y)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    assert forward.get_total_flops() == expected.forward * x.numel()
    assert backward.get_total_flops() == expected.backward * x.numel()


def saved_bytes(config, batch, length, dtype, attention):
    """Bytes of the storages that one forward pass keeps for the backward pass, parameters left out."""
    model = Transformer(config, ATTENTIONS[attention]).to(dtype)
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage  # held, so that no address is used twice
        return tensor

    x, y = batch_of(config, batch, length)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        next_token_loss(model(x), y)
    return sum(storage.nbytes() for address, storage in kept.items() if address not in own)


def activations_agree(
    config, batch=2, length=32, dtype=torch.float32, attention="plain", formula=counts.saved_activations
):
    expected = sum(formula(config, batch, length, dtype.itemsize, attention).values())
    assert abs(expected / saved_bytes(config, batch, length, dtype, attention) - 1) < 0.0002


@config
def test_parameters(config):
    parameters_agree(config)


@config
def test_flops(config):
    flops_agree(config)


@config
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("batch, length", [(1, 8), (3, 40)])
@pytest.mark.parametrize("attention", ["plain", "sdpa"])
def test_activations(config, batch, length, dtype, attention):
    activations_agree(config, batch, length, dtype, attention)


def test_activations_with_flash_attention():
    activations_agree(dataclasses.replace(SIZES["tiny"], kv_heads=2), 2, 32, attention="flash")


@config
def test_recomputation(config):
    x, y = batch_of(config, 2, 32)
    model = Transformer(config)
    for block in model.blocks:
        block.forward = _checkpointed(block.forward)
    flops = counts.flops_per_token(config, 32)
    loss = next_token_loss(model(x), y)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    assert backward.get_total_flops() == (flops.backward + flops.recomputation) * x.numel()


def _checkpointed(forward):
    # By default PyTorch stops before a block's last product, which no backward pass needs.
    return lambda *inputs: checkpoint(forward, *inputs, use_reentrant=False, early_stop=False)


def test_causal_scores_are_counted_one_by_one():
    L, layers, W = 7, GROUPED.layers, GROUPED.width
    pairs = sum(query + 1 for query in range(L))
    scores = counts.forward_flops(GROUPED, L, causal=True)["scores"]
    assert scores == pytest.approx(layers * 2 * 2 * W * pairs / L)
    assert counts.forward_flops(GROUPED, L)["scores"] == layers * 2 * 2 * W * L


def test_a_step_is_six_flops_a_parameter_and_twelve_a_score():
    big = SIZES["1b"]
    part = counts.parameters(big)
    multiplied = sum(part.values()) - part["embedding"] - part["norms"]
    expected = 6 * multiplied + 12 * big.layers * big.width * 1024
    assert counts.flops_per_token(big, 1024).step == expected


MISTAKES = {
    "tied weights counted twice": (
        "parameters",
        "0 if config.tied else config.vocabulary * W",
        "config.vocabulary * W",
    ),
    "k and v as wide as q": ("parameters", "2 * W * W + 2 * W * kv_width", "4 * W * W"),
    "two matrices in the MLP": ("parameters", "3 * W * config.hidden", "2 * W * config.hidden"),
    "the last norm forgotten": ("parameters", "2 * config.layers + 1) * W", "2 * config.layers) * W"),
    "a tied output multiplies nothing": (
        "flops_per_token",
        '"output": 2 * config.vocabulary * config.width',
        '"output": 2 * part["output"]',
    ),
    "the embedding multiplied": ("flops_per_token", '"output": 2 * config.voc', '"output": 4 * config.voc'),
    "only one product in attention": ("flops_per_token", "config.layers * 2 * 2 *", "config.layers * 2 *"),
    "backward as much as forward": ("flops_per_token", "forward, 2 * forward", "forward, forward"),
    "k and v not repeated": ("saved_activations", "3 * itemsize * stream", "2 * itemsize * stream"),
    "the mask forgotten": ("saved_activations", '"mask": config.layers', '"mask": 0'),
    "silu's output forgotten": ("saved_activations", "4 * itemsize * tokens", "3 * itemsize * tokens"),
    "scores without heads": ("saved_activations", "batch * heads * length", "batch * length"),
    "k and v repeated in one kernel": ("saved_activations", "heads * config.key_value_heads)", "1)"),
    "one kernel's own output forgotten": ("saved_activations", "outputs = 2", "outputs = 1"),
    "log-sum-exp forgotten": ("saved_activations", "config.layers * 4 * tokens * heads", "0"),
    "logits forgotten": ("saved_activations", "4 * tokens * config.vocabulary", "0"),
}
CHECKS = {
    "parameters": lambda config, formula: parameters_agree(config, formula),
    "flops_per_token": lambda config, formula: flops_agree(config, formula),
    "saved_activations": lambda config, formula: [
        activations_agree(config, attention=attention, formula=formula) for attention in ("plain", "sdpa")
    ],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake, tmp_path):
    name, *change = MISTAKES[mistake]
    wrong = planted(getattr(counts, name), tmp_path, tuple(change))
    with pytest.raises(AssertionError):
        CHECKS[name](CONFIGS["grouped, tied"], wrong)
