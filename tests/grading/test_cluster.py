"""Test grading with students spread over local threads, and over the engines of an ipyparallel cluster."""

import os
import threading
import time
from contextlib import closing
from datetime import UTC, datetime

import ipyparallel
import pytest

from labs_helpers.grading import cluster as on_cluster
from labs_helpers.grading.cluster import NoEngines, graded_on
from labs_helpers.grading.pool import graded_here
from labs_helpers.grading.reading.inbox import HandedIn
from labs_helpers.grading.results.gradebook import ERROR, GRADED, Record
from labs_helpers.launch.cluster import HEARTBEAT
from labs_helpers.launch.process import end_marked, put_mark
from tests.grading import on_engines


def handed_in(folder, **what):
    """A student per word, whose file says what becomes of grading it."""
    for student, text in what.items():
        (folder / student).write_text(text)
    return [HandedIn(student, folder / student, datetime.now(UTC)) for student in what]


def test_here_records_come_as_they_are_ready(tmp_path):
    ready = threading.Event()

    def grade_one(one, over):
        if one.student == "slow":
            assert ready.wait(100)
        return Record(one.student, GRADED)

    found = []
    for record in graded_here(2, handed_in(tmp_path, slow="", ada="", bob=""), grade_one):
        found.append(record.student)
        if len(found) == 2:
            ready.set()
    assert sorted(found[:2]) == ["ada", "bob"] and found[2] == "slow"


def test_here_what_runs_is_ended_when_nobody_wants_more(tmp_path):
    ended = []

    def grade_one(one, over):
        while one.student == "slow" and not over():
            time.sleep(0.01)
        ended.append(one.student)
        return Record(one.student, GRADED)

    with closing(graded_here(2, handed_in(tmp_path, slow="", ada=""), grade_one)) as records:
        assert next(records).student == "ada"
    assert ended == ["ada", "slow"]


def test_a_profile_without_a_cluster_says_how_to_start_one(monkeypatch, tmp_path):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setattr(on_cluster, "CONNECT_S", 0.01)
    with pytest.raises(NoEngines, match="ipcluster start --profile=slurm -n 8"):
        next(graded_on("slurm", handed_in(tmp_path, ada=""), on_engines.grade, on_engines.works))


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """The name of a profile with four engines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        marked = {}
        mark = put_mark(marked)
        for name, value in marked.items():
            patch.setenv(name, value)
        cluster = ipyparallel.Cluster(
            profile="slurm", cluster_id="", n=4, engines="local", controller_args=HEARTBEAT, delay=0, log_level=50,
            shutdown_atexit=False,
        )  # fmt: skip
        try:
            cluster.start_cluster_sync()
            with cluster.connect_client_sync() as client:
                client.wait_for_engines(4, timeout=60, interactive=False)
            yield "slurm"
        finally:
            end_marked(mark)


@pytest.mark.soak
def test_engines_without_a_jail_grade_nobody(profile, tmp_path, capfd):
    with pytest.raises(NoEngines, match=r"no engine to grade on\n(.*\n)*  engine 3: .*: bwrap is not installed"):
        list(graded_on(profile, handed_in(tmp_path, ada=""), on_engines.grade, on_engines.has_no_jail, wait_s=0.1))
    assert "engine 0 grades nobody" in capfd.readouterr().err


@pytest.mark.soak
def test_an_interrupt_ends_what_runs_on_the_engines(profile, tmp_path):
    todo = handed_in(tmp_path, eve="endless", ada="")
    with closing(graded_on(profile, todo, on_engines.grade, on_engines.works)) as records:
        assert next(records).student == "ada"
        while not os.path.exists(tmp_path / "eve.began"):
            time.sleep(0.01)
    assert os.path.exists(tmp_path / "eve.interrupted")


@pytest.mark.soak
def test_an_engine_that_dies_costs_nobody_else(profile, tmp_path):
    """The last one: of the four engines it leaves one."""
    names = [f"student{i}" for i in range(8)]
    todo = handed_in(tmp_path, eve="die", bob="die once", fay="fail", **dict.fromkeys(names, "fine"))
    found = {one.student: one for one in graded_on(profile, todo, on_engines.grade, on_engines.works)}
    assert len(found) == len(todo)
    assert found.pop("eve") == Record("eve", ERROR, reason="two engines died while they graded this one")
    assert found.pop("fay") == Record("fay", ERROR, reason="ValueError: it failed")
    assert {one.status for one in found.values()} == {GRADED}
    assert str(os.getpid()) not in {one.digest for one in found.values()}
