import json

import pytest

from labs_helpers.collectives import choose as module
from labs_helpers.collectives.choose import choose, load
from labs_helpers.collectives.interface import IMPLEMENTATIONS, MPI_ONLY


def record(up_to_bytes, algorithm, **changes):
    return {
        "function": "allreduce",
        "ranks": 8,
        "nodes": 1,
        "up_to_bytes": up_to_bytes,
        "algorithm": algorithm,
    } | changes


@pytest.fixture
def table(tmp_path, monkeypatch):
    def use(*records):
        path = tmp_path / "auto.json"
        path.write_text(json.dumps(records))
        monkeypatch.setattr(module, "TABLE", path)
        module._table.cache_clear()
        module._rows.cache_clear()

    yield use
    module._table.cache_clear()
    module._rows.cache_clear()


def test_the_first_limit_that_is_large_enough_counts(table):
    table(record(None, "ring"), record(4096, "naive"), record(64, "recursive_doubling"))
    assert [choose("allreduce", 8, nbytes) for nbytes in (0, 64, 65, 4096, 4097)] == [
        "recursive_doubling",
        "recursive_doubling",
        "naive",
        "naive",
        "ring",
    ]


def test_the_nearest_number_of_ranks_counts(table):
    table(record(None, "ring", ranks=2), record(None, "naive", ranks=8))
    assert [choose("allreduce", ranks, 9) for ranks in (1, 2, 4, 5, 6, 64)] == [
        "ring",
        "ring",
        "ring",
        "ring",
        "naive",
        "naive",
    ]


def test_one_node_and_many_are_apart(table):
    table(record(None, "ring"), record(None, "naive", nodes=4))
    assert [choose("allreduce", 8, 9, nodes) for nodes in (1, 2, 4)] == ["ring", "naive", "naive"]


def test_what_cannot_run_is_not_chosen(table):
    table(record(100, "shared_memory"), record(None, "ring"))
    assert choose("allreduce", 8, 9, 1, {"ring", "rabenseifner"}) == "ring"
    assert choose("allreduce", 8, 9, 1, {"rabenseifner"}) == "rabenseifner"


@pytest.mark.parametrize("nodes", [None, 1, 3])
@pytest.mark.parametrize("nbytes", [0, 8, 10**4, 10**9])
def test_there_is_always_a_rule(table, nodes, nbytes):
    table()
    for function, known in IMPLEMENTATIONS.items():
        algorithm = choose(function, 8, nbytes, nodes)
        assert algorithm in known
        assert nodes is not None or algorithm not in MPI_ONLY


def test_a_record_that_lacks_something_is_named(tmp_path):
    path = tmp_path / "auto.json"
    path.write_text(json.dumps([{"function": "allreduce", "ranks": 8, "nodes": 1, "algorithm": "ring"}]))
    with pytest.raises(ValueError, match="auto.json.*lacks up_to_bytes"):
        load(path)


def test_the_course_s_own_table_names_known_algorithms():
    for row in load(module.TABLE):
        assert row["algorithm"] in IMPLEMENTATIONS[row["function"]]
