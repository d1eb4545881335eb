"""Test lab 01's stretch: a layer's tensors add up, ours is the best choice, and a wrong one is reported."""

from labs_helpers.transformer import SIZES
from labs_helpers.transformer.counts import saved_activations
from labs_helpers.transformer.lab01 import stretch

TENSORS = stretch.layer_tensors(SIZES["1b"], 4, 1024)


def test_a_layers_tensors_are_those_of_the_formula():
    config, once = SIZES["1b"], ("tokens and targets", "rotary cos and sin", "log-softmax of the logits")
    kept = saved_activations(config, 4, 1024, itemsize=2)
    layer = sum(nbytes for name, nbytes in kept.items() if name not in once) / config.layers
    ours = sum(tensor.nbytes for tensor in TENSORS.values())
    assert abs(ours / layer - 1) < 0.02  # the formula has the last norm, too


def test_ours_keeps_within_the_budget_and_all_of_it_leaves_nothing():
    whole = sum(tensor.nbytes for tensor in TENSORS.values())
    for budget in (0, whole // 3, whole // 2, whole):
        assert sum(TENSORS[name].nbytes for name in stretch.cheapest(TENSORS, budget)) <= budget
    assert stretch.again_us(TENSORS, stretch.cheapest(TENSORS, whole)) == 0
    half = stretch.again_us(TENSORS, stretch.cheapest(TENSORS, whole // 2))
    assert half < 0.5 * stretch.again_us(TENSORS, ())


def test_what_a_student_writes_is_drawn_or_told(capsys):
    assert len(stretch.draw_stretch(stretch.cheapest).axes[0].lines) == 3
    assert len(stretch.draw_stretch(lambda tensors, budget: None).axes[0].lines) == 2
    stretch.draw_stretch(lambda tensors, budget: list(tensors))
    stretch.draw_stretch(lambda tensors, budget: ["scores"])
    said = capsys.readouterr().out
    assert "still open" in said and "of a budget of 0.000" in said and "'scores': no tensor" in said
