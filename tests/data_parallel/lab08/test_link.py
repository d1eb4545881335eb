"""Test lab 08's link: gloo's sums arrive after α + nβ, one message at a time; and the lab's steps run over it."""

import cloudpickle
import pytest

from labs_helpers.data_parallel.lab08.pictures import draw_links, told_steps
from labs_helpers.data_parallel.lab08.ways import WAYS
from labs_helpers.data_parallel.study.records import ALONE, select
from labs_helpers.measure.records import frame
from tests import real_ranks
from tests.data_parallel.lab08 import link_cases
from tests.data_parallel.lab08.link_cases import ALPHA, BETA
from tests.tensor_parallel import ranks as on_ranks

for module in (on_ranks, link_cases):
    cloudpickle.register_pickle_by_value(module)


@pytest.fixture(scope="module")
def results():
    by_rank = real_ranks.run(on_ranks.run_cases, 2, {"sent": link_cases.sent, "raced": link_cases.raced})
    for of_rank in by_rank:
        for name, result in of_rank.items():
            assert not isinstance(result, str), f"{name}: {result}"
    return by_rank


def test_sums_are_gloos_and_messages_take_turns(results):
    for of_rank in results:
        sums, early, notes, free, size = of_rank["sent"]
        assert sums == [[3.0]] * 3 + [[2.0]] and not early and free == 1 and size == 2
        assert [nbytes for _, _, nbytes in notes] == [4000, 40, 2000]
        for start, end, nbytes in notes:
            assert end - start >= ALPHA + BETA * nbytes - 1e-9
        assert (
            notes[1][0] >= notes[0][0] + ALPHA + BETA * 4000 - 1e-9
        )  # sent at once, on its way when the first is through


def test_every_way_is_raced_and_drawn(results):
    rows = frame(results[0]["raced"])
    wrappers, lanes = select(rows, "wrapper"), select(rows, "timeline")
    assert list(wrappers["wrapper"]) == list(WAYS) == list(lanes["wrapper"])
    messages = {row["wrapper"]: sum(i[0] == "communication" for i in row["intervals"]) for _, row in lanes.iterrows()}
    assert messages[ALONE] == 0 and messages["flat"] == 1 and messages["naive"] == messages["overlapped"] == 20
    assert 1 < messages["bucketed"] < 20
    fig = draw_links(rows, {"a link": (1e-4, 1e-10)})
    assert len(fig.axes) == 1 and len(draw_links(rows, {"a link": None}).axes) == 1


def test_theory_orders_the_ways_where_backward_is_long(results):
    alone = select(frame(results[0]["raced"]), "wrapper", wrapper=ALONE).iloc[0].copy()
    alone["backward_ms"] = 1000.0
    nbytes = alone["gradient_bytes"]
    told = told_steps(alone, 0.5, 0.3 / 20, 0.5 / nbytes)
    assert told["naive"] > told["flat"] > told["bucketed"] > told["overlapped"] > 1e-3 * alone["step_ms"]
    assert told["naive"] - 1e-3 * alone["step_ms"] == pytest.approx(0.8)
