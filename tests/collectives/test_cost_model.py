"""Test that the cost formulas match the paper, that the fit recovers known costs, and that crossovers are where
costs are equal."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from labs_helpers.collectives import cost_model, interface
from labs_helpers.collectives.cost_model import Costs, cost, crossover, fit, terms

POWERS = (2, 4, 8, 64)
MODELS = sorted(cost_model._MODELS)


@pytest.mark.parametrize("p", POWERS)
def test_powers_of_two_cost_what_thakur_rabenseifner_and_gropp_say(p):
    log, share = math.log2(p), (p - 1) / p
    said = {
        ("allreduce", "ring"): (2 * (p - 1), 2 * share, share),
        ("allreduce", "recursive_doubling"): (log, log, log),
        ("allreduce", "rabenseifner"): (2 * log, 2 * share, share),
        ("reduce_scatter", "ring"): (p - 1, share, share),
        ("reduce_scatter", "recursive_halving"): (log, share, share),
        ("allgather", "ring"): (p - 1, share, 0),
        ("broadcast", "binomial"): (log, log, 0),
        ("alltoall", "pairwise"): (p - 1, share, 0),
    }
    for (function, algorithm), path in said.items():
        assert terms(function, algorithm, p)[:3] == pytest.approx(path), (function, algorithm)


@pytest.mark.parametrize("ranks", [3, 5, 7])
def test_ranks_beyond_a_power_of_two_add_two_messages_of_the_whole_vector(ranks):
    power = 2 ** int(math.log2(ranks))
    for algorithm in ("recursive_doubling", "rabenseifner"):
        extra, even = terms("allreduce", algorithm, ranks), terms("allreduce", algorithm, power)
        assert [a - b for a, b in zip(extra, even, strict=True)] == pytest.approx([2, 2, 1, 0])


@pytest.mark.parametrize("function, algorithm", MODELS)
def test_every_cost_grows_with_the_bytes_and_one_rank_sends_nothing(function, algorithm):
    costs = Costs(1e-6, 1e-10, 1e-10, 1e-10)
    assert terms(function, algorithm, 1)[:3] == (0, 0, 0)
    for ranks in (2, 3, 5, 8):
        times = [cost(function, algorithm, ranks, size, costs) for size in (0, 8, 1e4, 1e8)]
        assert times == sorted(times) and times[0] > 0 and times[-1] > times[0]


def test_no_allreduce_moves_fewer_bytes_than_the_ring():
    for ranks in range(2, 17):
        least = terms("allreduce", "ring", ranks).sent
        assert least == pytest.approx(cost_model.BUS_FACTOR["allreduce"](ranks))
        for algorithm in ("naive", "recursive_doubling", "rabenseifner"):
            assert terms("allreduce", algorithm, ranks).sent >= least - 1e-12


def test_several_nodes_add_the_messages_between_them():
    assert terms("allreduce", "hierarchical", 8)[1:] == terms("allreduce", "shared_memory", 8)[1:]
    assert terms("allreduce", "hierarchical", 8, nodes=2).sent == 1
    assert terms("allreduce", "hierarchical", 4, nodes=4).sent == terms("allreduce", "rabenseifner", 4).sent


@given(alpha=st.floats(1e-8, 1e-3), beta=st.floats(1e-12, 1e-7))
def test_the_fit_finds_the_numbers_that_made_the_times(alpha, beta):
    sizes = [8 * 4**i for i in range(12)]
    assume(alpha < 1e5 * sizes[-1] * beta and sizes[0] * beta < 1e5 * alpha)
    assert fit(sizes, [alpha + n * beta for n in sizes]) == pytest.approx((alpha, beta), rel=1e-4)


def test_the_fit_weighs_small_messages_like_large_ones():
    sizes = [8, 80, 800, 8e6, 8e7]
    times = [1e-6 + n * 1e-10 for n in sizes]
    times[-1] *= 1.3  # far more than all of α
    alpha, beta = fit(sizes, times)
    assert alpha == pytest.approx(1e-6, rel=0.01) and 1e-10 < beta < 1.3e-10


def test_neither_number_is_negative():
    assert fit([1, 100], [1e-6, 1e-3])[0] == 0 and fit([1, 100], [1e-6, 0.5e-6])[1] == 0
    alpha, beta = fit([1, 100], [2e-6, 1e-6])
    assert 1e-6 < alpha < 2e-6 and beta == 0


@pytest.mark.parametrize("sizes, seconds, word", [
    ([8], [1e-6], "two sizes or more"), ([8, 8], [1e-6, 1e-6], "two sizes or more"),
    ([8, 16], [1e-6], "2 sizes, 1 times"), ([8, 16], [1e-6, 0], "positive"),
])  # fmt: skip
def test_a_fit_of_too_little_says_so(sizes, seconds, word):
    with pytest.raises(ValueError, match=word):
        fit(sizes, seconds)


@given(ranks=st.integers(3, 64), alpha=st.floats(1e-8, 1e-3), beta=st.floats(1e-12, 1e-7), gamma=st.floats(0, 1e-8))
def test_at_the_crossover_both_take_the_same_time_and_beyond_it_fewer_bytes_win(ranks, alpha, beta, gamma):
    costs = Costs(alpha, beta, gamma)
    pair = ("recursive_doubling", "ring")
    at = crossover("allreduce", *pair, ranks, costs)
    if ranks == 3:  # the fold makes recursive doubling as slow to start as 3 of the ring's 4 messages
        assert terms("allreduce", pair[0], 3).messages == 3
    few, ring = (cost("allreduce", name, ranks, at, costs) for name in pair)
    assert few == pytest.approx(ring, rel=1e-6)
    few, ring = (cost("allreduce", name, ranks, 2 * at, costs) for name in pair)
    assert ring < few


def test_costs_that_never_cross_have_no_crossover():
    costs = Costs(1e-6, 1e-10)
    assert crossover("allreduce", "rabenseifner", "ring", 8, costs) is None  # the same bytes, more messages
    assert crossover("allreduce", "ring", "rabenseifner", 8, costs) == 0
    assert crossover("allreduce", "ring", "naive", 3, costs) is None


@pytest.mark.parametrize("arguments, word", [
    (("allreduce", "native", 4), "no cost model of allreduce native; there is one of allreduce naive"),
    (("allreduce", "ring", 0), "ranks = 0"), (("allreduce", "hierarchical", 5, 2), "as many ranks on every node"),
])  # fmt: skip
def test_what_has_no_model_is_named(arguments, word):
    with pytest.raises(ValueError, match=word):
        terms(*arguments)


def test_every_algorithm_has_a_model_and_busbw_a_factor():
    named = {(function, name) for function, names in interface.ALGORITHMS.items() for name in names}
    wanted = {pair for pair in named if pair[1] not in ("native", "auto")}
    assert wanted == set(MODELS), "each of interface.IMPLEMENTATIONS has its line in cost_model's table of models"
    assert set(cost_model.BUS_FACTOR) == set(interface.ALGORITHMS)
    assert str(Costs(1e-6, 1e-10)) == "α 1 µs, 1/β 10 GB/s, 1/γ –, copies –"
