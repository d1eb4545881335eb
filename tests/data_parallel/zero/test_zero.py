"""Test ZeRO's stages on four ranks and groups of them; one start runs all cases, which return errors and counts."""

from functools import partial

import cloudpickle
import pytest

from labs_helpers.planner.accounting import states
from tests import real_ranks
from tests.data_parallel.zero import cases, odd_cases, state_cases, unit_cases
from tests.tensor_parallel import ranks as on_ranks

STAGES = ("1", "1 all_reduce", "2", "2 all_reduce", "3", "3 kept")
EVERYTHING = [("3", 1), ("2", 2), *((stage, 3) for stage in STAGES), ("1", 4), ("2", 4), ("3", 4)]
EXACT = [(s, o, n) for s in ("1", "2", "3") for o, n in (("AdamW", 1), ("SGD", 2), ("AdamW", 2), ("NAdam", 2))]
RESUMED = [("1", "3", "AdamW"), ("2", "1", "NAdam"), ("3", "2", "SGD")]
MASTER = [(stage, *c) for stage in ("1", "2", "3") for c in (("AdamW", 2), ("SGD", 4))]
MEMORY = [(s, layout, size) for s in ("1", "2", "3") for layout, size in (("float32", 4), ("bf16", 3))]
TRANSFORMERS = [
    ("1", True, (), {"overlap_gather": True}),
    ("2", False, (), {"overlap_gather": True}),
    ("2", True, (2, 1), {}),
    ("3", True, (), {}),
    ("3", False, (2, 1), {}),
    ("3 kept", True, (2, 1), {}),
    ("3", False, (1, 1, 1), {"prefetch": False}),
    ("3", True, (), {"offload": "parameters"}),
]
LAYOUTS = {"float32": "autocast over float32", "bf16": "bf16 with float32 master"}
FORMULAS = {"1": "ZeRO-1", "2": "ZeRO-2", "3": "ZeRO-3"}


@pytest.fixture(scope="module")
def results():
    for module in (cases, state_cases, unit_cases, odd_cases):
        cloudpickle.register_pickle_by_value(module)
    several = {("everything", *c): partial(cases.everything, *c) for c in EVERYTHING}
    several |= {("exact", *c): partial(cases.exact, *c) for c in EXACT}
    several |= {("resumed", *c): partial(state_cases.resumed, *c) for c in RESUMED}
    several |= {("master", *c): partial(state_cases.master_weights, *c) for c in MASTER}
    several |= {("added", stage): partial(state_cases.added_later, stage) for stage in ("1", "2", "3")}
    several |= {("transformer", i): partial(unit_cases.transformer, *t[:3], **t[3]) for i, t in enumerate(TRANSFORMERS)}
    several |= {("memory", *c): partial(unit_cases.memory, *c) for c in MEMORY}
    several |= {("sent", stage): partial(unit_cases.sent, stage) for stage in STAGES}
    several |= {("differs", stage): partial(unit_cases.one_rank_differs, stage) for stage in ("1", "2", "3", "3 kept")}
    several |= {("odd", kept): partial(odd_cases.odd_units, kept) for kept in (False, True)}
    several |= {("removed", stage): partial(odd_cases.removed, stage) for stage in ("1", "2", "3")}
    several |= {("freed", stage): partial(odd_cases.freed, stage) for stage in STAGES}
    several |= {
        "peers": state_cases.peers,
        "several passes": unit_cases.several_passes,
        "refusals": odd_cases.refusals,
    }
    return real_ranks.run(on_ranks.run_cases, 4, several)


def found(results, *name):
    """What each rank that took part has found."""
    several = [of_rank[name if len(name) > 1 else name[0]] for of_rank in results]
    for one in several:
        assert not isinstance(one, str), one
    return [one for one in several if one is not None]


@pytest.mark.parametrize("stage, size", EVERYTHING)
def test_all_at_once_as_in_one_process(results, stage, size):
    """Groups, clipping, accumulation, tied and frozen weights, a part that one step does not use; in float64."""
    several = found(results, "everything", stage, size)
    assert len(several) == size
    for one in several:
        assert max(one["weights"], one["states"], one["norms"]) < 1e-12
        assert one["groups"] and one["clipped"] == 4 and one["left"] == []
        assert one["reductions"] == (one["buckets"] if size > 1 else 0)


@pytest.mark.parametrize("stage, optimizer, size", EXACT)
def test_bit_for_bit_where_the_order_of_sums_is_one(results, stage, optimizer, size):
    assert found(results, "exact", stage, optimizer, size) == [(0.0, 0.0)] * size


def test_as_torch_s_zero_redundancy_optimizer_and_fully_shard_bit_for_bit(results):
    for errors in found(results, "peers"):
        assert len(errors) == 6 and set(errors.values()) == {0.0}


@pytest.mark.parametrize("before, after, optimizer", RESUMED)
def test_a_checkpoint_goes_on_with_another_number_of_ranks_and_in_one_process(results, before, after, optimizer):
    several = found(results, "resumed", before, after, optimizer)
    # The plain optimizer's load_state_dict gives NAdam's float32 factor the parameter's float64.
    bound = 1e-8 if optimizer == "NAdam" else 1e-12
    assert all(max(errors.values()) < bound for errors in several)
    assert {1, 2, 3} < several[0].keys()


@pytest.mark.parametrize("stage, optimizer, size", MASTER)
def test_bfloat16_with_master_weights(results, stage, optimizer, size):
    for one in found(results, "master", stage, optimizer, size):
        assert one["dtypes"] == ["torch.bfloat16", "torch.float32"]
        if size == 2:
            assert one["master"] == one["loss"] == 0.0
        else:  # four numbers of eight bits, added up in another order
            assert one["master"] < 1e-2 and one["loss"] < 2e-2


@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_groups_that_are_added_later_and_frozen_parameters_that_thaw(results, stage):
    for weights, entries, groups in found(results, "added", stage):
        assert weights < 1e-12 and entries < 1e-12 and groups


@pytest.mark.parametrize("number", range(len(TRANSFORMERS)), ids=[str(t) for t in TRANSFORMERS])
def test_lab_01_s_transformer(results, number):
    for weights, loss in found(results, "transformer", number):
        assert weights < 1e-12 and loss < 1e-12


@pytest.mark.parametrize("stage", ["1", "2", "3", "3 kept"])
def test_ranks_that_use_different_layers(results, stage):
    for error, same_states in found(results, "differs", stage):
        assert error < 1e-12 and same_states


def test_several_backward_passes_before_a_step(results):
    for errors in found(results, "several passes"):
        assert errors.pop("1").startswith("a second backward pass since zero_grad()")
        assert len(errors) == 5 and max(errors.values()) < 1e-12


@pytest.mark.parametrize("stage, layout, size", MEMORY)
def test_memory_is_what_the_formula_says(results, stage, layout, size):
    several = found(results, "memory", stage, layout, size)
    assert (several[0]["counted"] > 0) == (size == 4)
    for one in several:
        formula = {part.name: part.bytes for part in states(one["padded"], FORMULAS[stage[0]], size, LAYOUTS[layout])}
        held = one["after backward"]
        assert held["parameters"] == formula["parameters"] and held["gradients"] == formula["gradients"]
        # Less what the states do not have for padding, and more for Adam's step of each parameter.
        assert abs(held["optimizer"] - formula["optimizer"]) <= 8 * (one["padded"] - one["count"]) + 4 * 16
        assert one["after step"] == held | {"gradients": 0}
        assert one["padded"] < 1.01 * one["count"]
        if one["counted"]:  # the tensors alive, found without asking anybody; the input and the like come on top
            assert 0 <= one["counted"] - sum(held.values()) < 4096
        if stage == "3":
            assert one["most"] == one["root"] + 2 * one["unit"]


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_sent(results, stage):
    """Once the gradients and once the parameters; stage 3 gathers what is in units a second time."""
    for one in found(results, "sent", stage):
        n = one["buckets"]
        reduction = "all_reduce" if "all_reduce" in stage else "reduce_scatter"
        gathers, payload = (2 * n - 1, 2 - one["root"]) if stage == "3" else (n, 1)
        assert one["calls"] == {reduction: n, "all_gather": gathers}
        assert one["payload"] == {reduction: 1, "all_gather": pytest.approx(payload)}
        assert n > 4
        if stage[0] != "3":  # the first layer's gradients are in the last two buckets
            assert one["in backward"] == [n - 2, n]


def test_units_are_whole_one_at_a_time_and_the_next_is_on_its_way(results):
    units = range(6)
    turns = [*units, *reversed(units)]
    after = [*range(1, 6), None, *range(4, -1, -1), None]
    for one in found(results, "sent", "3"):
        assert one["whole"] == [[unit == turn for unit in units] for turn in turns]
        assert one["ahead"] == [[unit == following for unit in units] for following in after]
    for one in found(results, "sent", "3 kept"):
        assert one["whole"][5] == [True] * 6 and one["whole"][-1] == [True] + [False] * 5


@pytest.mark.parametrize("kept", [False, True])
def test_outputs_that_autograd_does_not_see_and_passes_without_backward(results, kept):
    for error, freed in found(results, "odd", kept):
        assert error < 1e-12 and all(freed)


@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_removed_the_model_is_plain(results, stage):
    for plain, noticed, words, again in found(results, "removed", stage):
        assert plain and not noticed and words.startswith("these gradients are averaged already") and again


@pytest.mark.parametrize("stage", STAGES)
def test_an_optimizer_that_is_dropped_takes_its_model_along(results, stage):
    for left, works in found(results, "freed", stage):
        # Stage 3's model needs its optimizer to gather it, so that the two hold each other until a search for garbage.
        assert all(after == 0 and (before == 0 or stage[0] == "3") for before, after in left.values()), left
        assert works


@pytest.mark.parametrize(
    "what, words",
    [
        ("model", "rank 0: parameter 'weight' (3, 3)"),
        ("arrangement", "bucket_mb=0.2"),
        ("reduction", "reduction is 'ring'; it must be one of"),
        ("offload", "offload is 'all'; it must be None"),
        ("offload of parameters", "before stage 3"),
        ("nothing", "no parameters to optimize"),
        ("foreign", "shape (3,) is not a parameter of the model"),
        ("set", "pass a list"),
        ("set in a group", "pass a list"),
        ("twice", "output.bias is in two groups"),
        ("shared", "output.weight is a parameter of two units, the model itself and output"),
        ("no such unit", "the model contains no Conv2d"),
        ("not inside", "not inside the model: Linear"),
        ("list", "blocks is a list of modules"),
        ("order of units", "first at collective 1 of this pass:\n  rank 0: gather 0\n  rank 1: gather 1"),
        ("unsent 1", "outside no_sync()"),
        ("unsent 3", "outside no_sync()"),
        ("thawed 1", "blocks.1.down.weight was frozen"),
        ("thawed 3", "blocks.1.down.weight was frozen"),
    ],
)
def test_refused_in_words(results, what, words):
    for said in found(results, "refusals"):
        assert words in said[what]
