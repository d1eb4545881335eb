"""Compare operators, layers and cross-entropy on two ranks with the values and gradients of whole ones."""

import pytest
import torch

from labs_helpers.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear, VocabularyParallelEmbedding
from labs_helpers.tensor_parallel.state import slice_state
from tests.tensor_parallel import layer_cases

CASES = {name: getattr(layer_cases, name) for name in ("operators", "layers", "cross_entropy")}


def test_operators_and_their_conjugates(results):
    for of_rank in results:
        errors = of_rank["operators"]
        assert len(errors) == 6 and all(max(pair) < 1e-14 for pair in errors.values()), errors


def test_layers_with_biases(results):
    for of_rank in results:
        errors = of_rank["layers"]
        assert len(errors) == 7 and all(error < 1e-13 for error in errors.values()), errors


def test_cross_entropy_never_gathers_the_logits(results):
    for of_rank in results:
        errors = of_rank["cross_entropy"]
        bounds = {"float64": 1e-14, "large": 1e-4, "shifted by 10⁴": 1e-12, "bfloat16": 1e-2}
        for name, bound in bounds.items():
            loss, gradient, unchanged, calls, payload = errors[name]
            assert loss < min(bound, 1e-4) and gradient < bound and unchanged, (name, loss, gradient)
            tokens, itemsize = {"shifted by 10⁴": 3}.get(name, 10), 8 if bound < 1e-10 else 4
            assert calls == {"all_reduce": 2} and payload == 3 * tokens * itemsize
        assert errors["too large"] == "tokens range from 12 to 12, but the vocabulary from 0 to 11"
        assert errors["negative"] == "tokens range from -1 to -1, but the vocabulary from 0 to 11"


class Two:
    rank, size = 1, 2


def test_what_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="out_dim is 5, which a group of 2 does not divide: 1 left over"):
        ColumnParallelLinear(4, 5, Two())
    with pytest.raises(ValueError, match="in_dim is 5"):
        RowParallelLinear(5, 4, Two())
    with pytest.raises(ValueError, match="vocabulary is 5"):
        VocabularyParallelEmbedding(5, 4, Two())
    with pytest.raises(IndexError, match="tokens range from 0 to 6, but the vocabulary from 0 to 5"):
        VocabularyParallelEmbedding(6, 4, Two())(torch.tensor([[0, 6]]))


def test_a_state_with_other_names_is_refused():
    layer = RowParallelLinear(4, 3, Two())
    with pytest.raises(ValueError, match="differ in bias, biass"):
        slice_state(layer, {"weight": torch.zeros(3, 4), "biass": torch.zeros(3)}, Two())
