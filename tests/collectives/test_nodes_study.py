"""Test that the bytes counted on a node's cable are those that its ranks send, and that tables label measured and
predicted times."""

import math

import numpy as np
import pytest

from labs_helpers.collectives import nodes_study as study
from labs_helpers.collectives.cost_model import Costs
from labs_helpers.collectives.cost_model import terms as terms_of
from labs_helpers.collectives.counting import CountingComm
from labs_helpers.collectives.interface import allreduce
from labs_helpers.collectives.nodes_study import costs_between, predict, table, terms
from labs_helpers.collectives.race.records import costs_of
from labs_helpers.launch.pretend_nodes import Link, can_pretend
from labs_helpers.measure.records import frame
from labs_helpers.practice.ranks import practice

LAYOUTS = [(4, 2), (2, 4), (1, 4), (2, 2), (4, 4)]  # ranks per node, nodes


class Leaving(CountingComm):
    """Counts what leaves the rank's node."""

    def __init__(self, comm, ranks_per_node):
        super().__init__(comm)
        self.ranks_per_node = ranks_per_node

    def _count(self, buf, dest):
        if dest // self.ranks_per_node != self.comm.Get_rank() // self.ranks_per_node:
            super()._count(buf, dest)


@pytest.mark.parametrize("ranks_per_node, nodes", LAYOUTS)
@pytest.mark.parametrize("algorithm", study.FLAT)
def test_what_leaves_a_node(algorithm, ranks_per_node, nodes):
    ranks = ranks_per_node * nodes
    n = 12 * ranks

    def one_rank(comm):
        counting = Leaving(comm, ranks_per_node)
        allreduce(counting, np.zeros(n, np.uint8), np.empty(n, np.uint8), None, algorithm, False)
        return counting.messages_sent, counting.bytes_sent

    left = np.array(practice(one_rank, ranks).results).reshape(nodes, ranks_per_node, 2)
    inside, between = terms(algorithm, ranks_per_node, nodes)
    assert left[:, :, 1].sum(axis=1).tolist() == pytest.approx([between.sent * n] * nodes)
    assert left[:, :, 0].max() == between.messages
    whole = terms_of("allreduce", algorithm, ranks)
    assert inside.messages + between.messages == whole.messages
    assert (inside.reduced, inside.copied) == (whole.reduced, whole.copied)


@pytest.mark.parametrize("ranks_per_node, nodes", LAYOUTS)
def test_leaders_send_as_if_they_were_alone(ranks_per_node, nodes):
    inside, between = terms("hierarchical", ranks_per_node, nodes)
    assert between == terms("rabenseifner", 1, nodes)[1]
    assert inside.sent == 0 and inside.messages == 3


def test_one_node_is_the_old_model():
    assert terms("shared_memory", 8, 1) == (terms_of("allreduce", "shared_memory", 8), (0, 0, 0, 0))


@pytest.mark.parametrize("algorithm, layout, said", [
    ("rabenseifner", (3, 2), "2 nodes of 3 ranks: both have to be powers of two"),
    ("naive", (4, 2), "no model of naive between nodes"),
    ("native", (4, 2), "no cost model of allreduce native"),
])  # fmt: skip
def test_what_has_no_model_is_refused(algorithm, layout, said):
    with pytest.raises(ValueError, match=said):
        terms(algorithm, *layout)


INSIDE, CABLE = Costs(1e-6, 1e-10, 1.5e-10, 8e-11), Costs(1e-5, 8e-9)


def invented():
    """Records of two nodes and one that keep exactly to these costs."""
    sizes = [8 * 4**i for i in range(11)]
    link = Link(CABLE.alpha, CABLE.beta, 1 / CABLE.beta, {8: CABLE.alpha, 2**21: CABLE.alpha + 2**21 * CABLE.beta})
    records = []
    for name, nodes in (("1 Gb/s", 2), ("shared memory", 1)):
        new = [{"kind": "ping_pong", "ranks": 8, "together": True, "bytes": n,
                "median_us": 1e6 * (INSIDE.alpha + n * INSIDE.beta)} for n in sizes]  # fmt: skip
        for operation, rate in (("reduce", INSIDE.gamma), ("copy", INSIDE.copy)):
            new += [{"kind": "local", "ranks": 8, "operation": operation, "bytes": n, "median_us": 1e6 * n * rate}
                    for n in sizes]  # fmt: skip
        new += [{"kind": "race", "function": "allreduce", "algorithm": algorithm, "ranks": 8, "bytes": 2**20,
                 "median_us": us} for algorithm, us in (("ring", 15500.0), ("native", 12345.0))]  # fmt: skip
        new += [link.record()] if nodes == 2 else []
        records += [{"link": name, "nodes": nodes, "ranks_per_node": 8 // nodes} | record for record in new]
    return frame(records)


def test_predictions_have_an_alpha_and_beta_for_each_kind_of_link():
    rows, n = invented(), 2**20
    cable = costs_between(rows)
    assert (cable.alpha, cable.beta) == pytest.approx((CABLE.alpha, CABLE.beta))
    ring = 14 * CABLE.alpha + n * (14 / 8 * CABLE.beta + 7 / 8 * INSIDE.gamma + INSIDE.copy)
    assert predict(rows, "1 Gb/s", "ring", n) == pytest.approx(ring)
    doubling = 2 * INSIDE.alpha + CABLE.alpha + n * (2 * INSIDE.beta + 4 * CABLE.beta + 3 * INSIDE.gamma + INSIDE.copy)
    assert predict(rows, "1 Gb/s", "recursive_doubling", n) == pytest.approx(doubling)
    alone = costs_of(rows[rows["link"] == "shared memory"], 8).seconds(terms_of("allreduce", "ring", 8), n)
    assert predict(rows, "shared memory", "ring", n) == pytest.approx(alone)
    shown = table(rows, "1 Gb/s")
    assert f"1.55e+04 ({1e6 * ring:.4g})" in shown and "1.234e+04" in shown and shown.startswith("1 Gb/s, 2 nodes")


@pytest.mark.skipif(bool(can_pretend()), reason=f"no nodes can be pretended here: {can_pretend()}")
def test_a_race_over_a_link(monkeypatch):
    monkeypatch.setattr(study, "RANKS_PER_NODE", 2)
    rows = frame(study.measure("1gbit", sizes=(8, 2**16)))
    race = rows[rows["kind"] == "race"]
    assert sorted(race["algorithm"].unique()) == sorted([*study.FLAT, "hierarchical", "native"])
    assert set(race["nodes"]) == {2} and set(race["ranks"]) == {4} and set(rows["asked"]) == {"1gbit"}
    (link,) = rows["link"].unique()
    assert 0 < float(link.removesuffix(" Gb/s")) <= 1.15
    assert all(math.isfinite(predict(rows, link, name, 8)) for name in study.FLAT)
