"""Compare the wrappers on one to four gloo ranks with one process and with DistributedDataParallel."""

import functools

import cloudpickle
import pytest

from labs_helpers.launch.mpirun import RanksFailed, run_on_ranks
from tests import real_ranks
from tests.data_parallel import models, refusal_cases, wrapper_cases
from tests.data_parallel.wrapper_cases import DIVISIONS, WRAPPERS
from tests.tensor_parallel import ranks as on_ranks

for module in (on_ranks, models, wrapper_cases, refusal_cases):
    cloudpickle.register_pickle_by_value(module)


QUIET = on_ranks.YIELD | {
    "TORCH_CPP_LOG_LEVEL": "ERROR"
}  # torch warns of layers that find_unused_parameters never missed


@pytest.fixture(scope="module")
def results():
    cases = {"connect": wrapper_cases.connect}
    for division in DIVISIONS:
        cases["torch", division] = functools.partial(wrapper_cases.against_torch, division)
        for wrapper in WRAPPERS:
            cases["trained", division, wrapper] = functools.partial(wrapper_cases.trained, division, wrapper)
            cases["exact", division, wrapper] = functools.partial(wrapper_cases.exact, division, wrapper)
    cases["compressed"] = wrapper_cases.compressed
    for wrapper in WRAPPERS:
        cases["counted", wrapper] = functools.partial(wrapper_cases.counted, wrapper)
        cases["freed", wrapper] = functools.partial(wrapper_cases.freed, wrapper)
    by_rank = real_ranks.run(on_ranks.run_cases, 4, cases | refusal_cases.CASES)
    for rank, of_rank in enumerate(by_rank):
        for name, result in of_rank.items():
            assert not isinstance(result, str), f"rank {rank}, {name}: {result}"
    return by_rank


def in_groups(division):
    """Return (rank, the size of its group)."""
    return [(rank, len(members)) for members in DIVISIONS[division] for rank in members]


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_follows_the_run_on_one_process(results, wrapper, division):
    """Cover tied, frozen, unused, mixed and strided parameters; micro-batches, clipping and gradients kept in place."""
    for rank, size in in_groups(division):
        found = results[rank]["trained", division, wrapper]
        assert set(found) == set(wrapper_cases.trainings(wrapper, size))
        for case, (error, between_ranks) in found.items():
            # Two numbers have one sum; three may be added in three orders.
            assert error == 0 if size <= 2 else error < 1e-6, (case, error)
            assert between_ranks == 0, case


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_exact_means_of_integers_and_what_ranks_do_not_use(results, wrapper, division):
    for rank, size in in_groups(division):
        found = dict(results[rank]["exact", division, wrapper])
        error = found.pop("error")
        assert error == 0 if size != 3 else error < 1e-13  # a third is no binary fraction
        assert all(found.values()), found


@pytest.mark.parametrize("division", DIVISIONS)
def test_equals_torchs_distributed_data_parallel(results, division):
    for rank, size in in_groups(division):
        found = results[rank]["torch", division]
        assert len(found) == 2 * len(WRAPPERS)
        for case, error in found.items():
            assert error == 0 if size <= 2 else error < 1e-6, (case, error)


def test_compressed_gradients_are_the_same_on_all_ranks(results):
    for of_rank in results:
        for case, (between_ranks, change) in of_rank["compressed"].items():
            assert between_ranks == 0 and 1e-3 < change < 10, case
        assert of_rank["compressed"].keys() == results[0]["compressed"].keys()


LAYER = 8 * 8 * 4 + 8 * 4  # bytes of a Linear(8, 8)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_is_sent_and_when(results, wrapper):
    calls, early = {
        "naive": (8, 0),
        "flat": (1, 0),
        "overlapped": (8, 6),
        "coalesced": (4, 3),
        "bucketed": (5, 3),  # the first bucket holds the last bias
        "one bucket": (1, 0),
    }[wrapper]
    for of_rank in results:
        found = of_rank["counted", wrapper]
        assert found["calls"] == {"all_reduce": calls}
        assert found["payload"] == {"all_reduce": 4 * LAYER} and found["bytes sent"] == 4 * LAYER
        assert found["started early"] == early  # of three layers, when backward came to the first
        assert sum(found["sizes"]) == (0 if wrapper == "naive" else 4 * LAYER)
        assert found["kept in place"] == (wrapper in ("flat", "bucketed", "one bucket"))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_that_is_dropped_takes_its_model_along(results, wrapper):
    for of_rank in results:
        assert set(of_rank["freed", wrapper].values()) == {(0, 0)}, of_rank["freed", wrapper]


def test_models_that_differ_are_refused_everywhere_with_the_first_difference(results):
    expected = {
        "shape": "at tensor 3 of 5:\n  ranks 0-2: parameter 'second.weight' (6, 4) torch.float32, trained\n"
        "  rank 3: parameter 'second.weight' (7, 4) torch.float32, trained",
        "dtype": "  rank 3: parameter 'second.weight' (6, 4) torch.float16, trained",
        "frozen": "  rank 3: parameter 'second.weight' (6, 4) torch.float32, frozen",
        "number": "at tensor 5 of 7:\n  ranks 0-2: buffer 'flag' () torch.bool\n  rank 3: parameter 'third.weight'",
        "fewer": "at tensor 5 of 7:\n  ranks 0-2: parameter 'third.weight' (2, 2) torch.float32, trained\n"
        "  rank 3: buffer 'flag' () torch.bool",
        "name": "  rank 3: parameter 'other.weight' (6, 4) torch.float32, trained",
        "tied": "  rank 3: parameter 'second.bias' (4,) torch.float32, trained, tied to 'first.bias'",
        "strides": "  rank 3: parameter 'second.weight' (6, 4) torch.float32, strides (1, 6), trained",
        "buffer": "at tensor 5 of 5:\n  ranks 0-2: buffer 'flag' () torch.bool\n  rank 3: nothing more",
        "settings": "in its settings:\n  ranks 0-2: settings BucketedDDP(bucket_mb=25,",
        "wrapper": "  rank 3: settings NaiveDDP()",
        "two of four": "  ranks 0, 1: parameter 'second.weight' (5, 4) torch.float32, trained\n  ranks 2, 3: para",
        "nothing": "no error",
    }
    for of_rank in results:
        assert of_rank["refused"] == results[0]["refused"]
    assert results[0]["refused"].keys() == expected.keys()
    for name, part in expected.items():
        assert part in results[0]["refused"][name], name


def test_everybody_starts_from_rank_0_in_every_dtype_and_layout(results):
    for of_rank in results:
        assert of_rank["broadcast"] == ([], [])


def test_mistakes_are_told_and_a_module_can_be_wrapped_again(results):
    for of_rank in results:
        found = dict(of_rank["mistakes"])
        for wrapper in ("overlapped", "bucketed"):
            assert found.pop(wrapper).startswith("a gradient arrived twice: finish() each step")
            assert "averaged already: remove() the wrapper" in found.pop(("twice", wrapper))
        assert len(found) == 2 * len(WRAPPERS) and all(found.values()), found


def test_an_optimizer_per_bucket_takes_the_same_steps(results):
    for of_rank in results:
        difference, orders, buckets = of_rank["finished"]
        assert difference == 0 and orders == [list(range(buckets))] * 3 and buckets > 3


def test_a_rank_that_dies_ends_the_others_and_is_named():
    with pytest.raises(RanksFailed) as failed:
        run_on_ranks(refusal_cases.dies, 2, timeout=60, env=QUIET)
    assert failed.value.silent == [1]
    assert "rank 1 ended without a word: killed" in str(failed.value)
