"""Test that answers to exercises 7, 8 and 10 give the same results on real ranks as the checks expect on practice
ranks."""

import sys

import cloudpickle
import pytest

from tests import real_ranks
from tests.tensor_parallel import ranks as on_ranks
from tests.tensor_parallel.lab07.exercises import ex10_parallel_cross_entropy as ex10

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the ranks do not know the tests' folders
cloudpickle.register_pickle_by_value(ex10)
RANKS = 2


def of_rank(tree, rank):
    """Of lists with a tensor for each rank this rank's."""
    return [one[rank] for one in tree]


def layers(comm):
    """{exercise: whether out and the gradients are right}."""
    from labs_helpers.communication import connect
    from labs_helpers.course.verdict.trees import Comparison
    from labs_helpers.tensor_parallel.lab07 import exercises
    from labs_helpers.tensor_parallel.lab07.checks import ex7_column_parallel_linear, ex8_row_parallel_linear
    from labs_helpers.tensor_parallel.lab07.checks.linear_cases import layers_of, operands_of
    from labs_helpers.tensor_parallel.lab07.checks.linear_layers import BOUND

    found, group = {}, connect("mpi", comm)
    for checked in (ex7_column_parallel_linear, ex8_row_parallel_linear):
        name = checked.__name__.rpartition(".")[2].partition("_")[2]
        case = next(case for case in checked.CASES if case.ranks == RANKS)
        ((layer,),) = layers_of(case, checked.SCHEME.cut)
        operands, grad_outs = operands_of(case, layer, comm.rank)
        out, backward = getattr(exercises, name)(*operands, group)
        right = of_rank(layer.results[0].values(), comm.rank)
        found[name] = Comparison("", bound=BOUND).same([out, *backward(grad_outs[0])], right)
    return found


def cross_entropy(comm):
    """Whether loss and gradient are right."""
    from labs_helpers.communication import connect
    from labs_helpers.course.verdict.trees import Comparison
    from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_cases import tokens_of
    from labs_helpers.tensor_parallel.lab07.checks.ex10_parallel_cross_entropy import CASES

    tokens = tokens_of(next(case for case in CASES if case.ranks == RANKS), 0)
    results = ex10.parallel_cross_entropy(tokens.logits[comm.rank], tokens.targets, connect("mpi", comm))
    bounds = [tokens.loss_bound, tokens.gradient_bounds[comm.rank]]
    return Comparison("", bound=bounds).same(list(results), [tokens.loss, tokens.gradients[comm.rank]])


@pytest.fixture(scope="module")
def results():
    cases = {"layers": layers, "cross_entropy": cross_entropy}
    return real_ranks.run(on_ranks.run_cases, RANKS, cases)


def test_the_layers(results):
    for one in results:
        assert one["layers"] == {"column_parallel_linear": True, "row_parallel_linear": True}, one["layers"]


def test_cross_entropy(results):
    assert all(one["cross_entropy"] for one in results)
