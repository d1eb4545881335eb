"""The answers of exercises 7, 8 and 10 on real ranks give what their checks expect of practice ranks."""

import sys

import cloudpickle
import pytest

from tests import real_ranks
from tests.tensor_parallel import ranks as on_ranks
from tests.tensor_parallel.lab07.exercises import ex10_parallel_cross_entropy as ex10

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the ranks do not know the tests' folders
cloudpickle.register_pickle_by_value(ex10)
RANKS = 2


def excess(found, expected, bounds, rank):
    """How far the farthest element is beyond its bound: 0 where all are right."""
    from labs_helpers.tensor_parallel.lab07.checks.rank_tensors import off_by

    pairs = zip(found, expected, bounds, strict=True)
    return max(float(off_by(one, right[rank], bound[rank]).max()) for one, right, bound in pairs)


def layers(comm):
    """{exercise: the excess of out and of the gradients}."""
    from labs_helpers.communication import connect
    from labs_helpers.tensor_parallel.lab07 import exercises
    from labs_helpers.tensor_parallel.lab07.checks import ex7_column_parallel_linear, ex8_row_parallel_linear
    from labs_helpers.tensor_parallel.lab07.checks.linear_cases import GRADIENTS, layers_of, operands_of

    found, group = {}, connect("mpi", comm)
    for checked in (ex7_column_parallel_linear, ex8_row_parallel_linear):
        name = checked.__name__.rpartition(".")[2].partition("_")[2]
        case = next(case for case in checked.CASES if case.ranks == RANKS)
        ((layer,),) = layers_of(case, checked.CUT)
        operands, grad_outs = operands_of(case, layer, comm.rank)
        out, backward = getattr(exercises, name)(*operands, group)
        rights, bounds = ([one[0][part] for part in GRADIENTS] for one in (layer.gradients, layer.gradient_bounds))
        results = out, *backward(grad_outs[0])
        found[name] = excess(results, [layer.out, *rights], [layer.out_bounds, *bounds], comm.rank)
    return found


def cross_entropy(comm):
    """The excess of loss and gradient."""
    from labs_helpers.communication import connect
    from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_cases import tokens_of
    from labs_helpers.tensor_parallel.lab07.checks.ex10_parallel_cross_entropy import CASES

    tokens = tokens_of(next(case for case in CASES if case.ranks == RANKS), 0)
    results = ex10.parallel_cross_entropy(tokens.logits[comm.rank], tokens.targets, connect("mpi", comm))
    rights = [tokens.loss] * RANKS, tokens.gradients
    return excess(results, rights, ([tokens.loss_bound] * RANKS, tokens.gradient_bounds), comm.rank)


@pytest.fixture(scope="module")
def results():
    cases = {"layers": layers, "cross_entropy": cross_entropy}
    return real_ranks.run(on_ranks.run_cases, RANKS, cases)


def test_the_layers(results):
    for of_rank in results:
        assert of_rank["layers"] == {"column_parallel_linear": 0, "row_parallel_linear": 0}, of_rank["layers"]


def test_cross_entropy(results):
    assert [of_rank["cross_entropy"] for of_rank in results] == [0] * RANKS
