"""Test that practice ranks return the same bits as gloo, and refuse the same calls."""

import pytest
import torch

from labs_helpers.practice.process_groups import practice_process_groups
from tests import real_ranks
from tests.practice.process_groups import gloo_cases

pytestmark = pytest.mark.filterwarnings("ignore:`torch.distributed:FutureWarning")


@pytest.fixture(scope="module")
def gloo():
    return real_ranks.run(gloo_cases.on_gloo, 3)


def differences(mine, theirs):
    assert mine.keys() == theirs.keys()
    return {
        case: (mine[case], expected)
        for case, expected in theirs.items()
        if (mine[case] != expected if not isinstance(expected, list) else _differ(mine[case], expected))
    }


def _differ(mine, expected):
    return not isinstance(mine, list) or any(
        x.dtype != y.dtype or not torch.equal(x, y) for x, y in zip(mine, expected, strict=True)
    )


def test_three_ranks_in_every_dtype_and_operation(gloo):
    mine = practice_process_groups(gloo_cases.values, 3, True).results
    for rank in range(3):
        assert differences(mine[rank], gloo[rank][0]) == {}


def test_two_ranks_with_fractions(gloo):
    mine = practice_process_groups(gloo_cases.values, 2, False).results
    for rank in range(2):
        assert differences(mine[rank], gloo[rank][1]) == {}


def test_what_is_refused(gloo):
    for mine, theirs in zip(practice_process_groups(gloo_cases.refused, 3).results, gloo, strict=True):
        assert mine == theirs[2] and mine[0] == mine[1]
