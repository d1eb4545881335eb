"""Test which rank a watch names, with a store in this process, through which the other rank speaks."""

import json
import re
import signal
from queue import Queue
from threading import Event

import pytest
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.launch import watch as module
from labs_helpers.launch.watch import Watch
from labs_helpers.launch.worker import state_and_start, where_pids_mean_the_same
from tests.processes import eventually, started

FOREVER, SHORT = 3600.0, 0.15
HERE = where_pids_mean_the_same()


@pytest.fixture
def told(monkeypatch):
    """told(beat of rank 1, …): what rank 0, at collective 7 of the wrappers, hears of rank 1; told.kills: whom it then
    kills."""
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    monkeypatch.setattr(module, "STILL_S", SHORT)
    running = []

    def told(beat=None, timeout=FOREVER, limit=FOREVER, silence=FOREVER, **keys):
        store, words = dist.HashStore(), Queue()
        if beat is not None:
            store.set("rank 1", json.dumps(beat))
        for key, value in keys.items():
            store.set(key.replace("_", " "), value)
        end = lambda *given: words.put(given)  # noqa: E731
        watch = Watch(store, 0, 2, lambda: {"0": 7}, timeout, limit, silence=silence, by_torchrun=True, end=end)
        running.append(watch)
        watch.start()
        watch.note("wrappers")
        said, told.kills = words.get(timeout=20)
        return said

    yield told
    for watch in running:
        watch.done.set()


@pytest.mark.parametrize("state", ["running", "over"])
def test_a_silent_rank_is_named_with_what_it_had_begun(told, state):
    said = told([12, state, {"0": 6}, "", "wrappers"], silence=SHORT)
    assert said == "rank 1 does not answer (killed, or stopped) since wrappers, collective 6. Rank 0 ends."


@pytest.fixture
def ends_as(tmp_path):
    """ends_as(way): the number, start and place of a process that was killed (and waited for, or not) or stopped."""
    with started(["sleep", "1000"]) as process:

        def ends_as(way):
            number = str(process.pid)
            identity = [number, state_and_start(number)[1], HERE]
            process.send_signal(signal.SIGSTOP if way == "T" else signal.SIGKILL)
            if way == "X":
                process.wait()
            assert eventually(lambda: state_and_start(number)[0] == way)
            return identity

        yield ends_as


@pytest.mark.parametrize("way", "TZX")
def test_a_dead_or_stopped_process_is_named_long_before_silence(told, ends_as, way):
    process = ends_as(way)
    said = told([12, "running", {"0": 6}, "", "wrappers", "", process])
    assert said == "rank 1 does not answer (killed, or stopped) since wrappers, collective 6. Rank 0 ends."
    assert told.kills == [int(process[0])] * (way == "T")


NAMED = {  # at 0.5 s a look, after more than 20 s without a heartbeat, or 4 s in which its process is dead or stopped
    ("5", "7", HERE): "[^b]{41}|[TZX]{9}",
    ("5", "6", HERE): "[^b]{41}|X{9}",  # another process has its number now
    ("5", "7", "elsewhere"): "[^b]{41}",
}
LOOKS = st.lists(st.sampled_from([*"bRSTZX", "T" * 7, "X" * 8, "S" * 20]), max_size=12).map("".join)


@given(LOOKS, st.sampled_from([*NAMED]))
def test_a_rank_is_named_by_what_is_seen_of_it_look_by_look(looks, process):
    """Each look finds a new heartbeat (b), or none and the process in this state; the time between looks is nothing."""
    store, life, named = dist.HashStore(), "", False
    watch = Watch(store, 0, 2, dict, FOREVER, FOREVER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "state_and_start", lambda number: (life, "" if life == "X" else "7"))
        for number, life in enumerate("b" + looks):
            if life == "b":
                store.set("rank 1", json.dumps([number, "running", {}, "", "wrappers", "", process]))
            watch._beat()
            watch._look()
            named = named or watch._conclude().startswith("rank 1 does not answer")
    assert named == bool(re.search(NAMED[process], looks))


def test_a_rank_tells_the_others_which_process_it_is():
    watch = Watch(dist.HashStore(), 0, 1, dict, FOREVER, FOREVER)
    watch._beat()
    watch._look()
    assert watch._life(watch.heard[0]) in [*"RSD"]


def test_a_rank_that_has_never_spoken_has_not_arrived(told):
    said = told(timeout=SHORT)
    assert said == "rank 1 has not arrived within 0.15 s (killed, stopped or never started). Rank 0 ends."


def test_a_rank_that_has_begun_fewer_collectives_is_named(told, monkeypatch):
    monkeypatch.setattr(Watch, "_is_quiet", lambda watch, one: False)
    said = told([12, "running", {"0": 6}, "", "buckets", "in shift, line 3 of cell [5]"], timeout=SHORT)
    assert said == (
        "no rank has gone on for 0.15 s: rank 1 is stuck since buckets, collective 6, in shift, line 3 of cell [5]. "
        "Rank 0 ends."
    )


def test_only_groups_that_a_rank_is_in_count(told, monkeypatch):
    monkeypatch.setattr(Watch, "_is_quiet", lambda watch, one: False)
    said = told([12, "running", {"0": 7, "1": 3}], timeout=SHORT)
    assert re.fullmatch(
        r"no rank has gone on for 0\.15 s: rank 0 is at wrappers, collective 7, in told, line \d+ of test_watch\.py; "
        r"rank 1 is at its start, collective 7\. Rank 0 ends\.", said,
    ), said  # fmt: skip


def test_a_run_that_takes_too_long_ends_with_the_rank_that_is_behind(told, monkeypatch):
    monkeypatch.setattr(Watch, "_is_quiet", lambda watch, one: False)
    said = told([12, "running", {"0": 5}], limit=SHORT)
    assert said == "the run has not ended within 0.15 s: rank 1 is stuck since its start, collective 5. Rank 0 ends."


def test_a_rank_that_has_failed_is_named_with_its_error(told):
    said = told([12, "failed", {}, "ValueError: no such size"], first="1")
    assert said == "rank 1 failed: ValueError: no such size. Rank 0 ends."


def test_the_verdict_of_another_rank_is_this_ranks(told):
    assert told([12, "running", {}], verdict="rank 2 failed: OSError.") == "rank 2 failed: OSError. Rank 0 ends."


def test_a_rank_that_has_left_is_not_missed(told):
    said = told([12, "gone", {}], silence=SHORT, timeout=4 * SHORT)
    assert said.startswith("no rank has gone on")


def test_a_rank_that_dies_when_its_work_is_over_is_not_missed(told, ends_as):
    said = told([12, "over", {}, "", "its end", "", ends_as("X")], silence=SHORT, timeout=4 * SHORT)
    assert said.startswith("no rank has gone on")


def test_the_rank_that_keeps_the_store_is_named_when_it_is_stopped(ends_as, monkeypatch):
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    monkeypatch.setattr(module, "STILL_S", SHORT)
    process, stopped, words = ends_as("T"), Event(), Queue()

    class Kept(dist.HashStore):
        def set(self, key, value):
            stopped.wait()

    store = Kept()
    dist.HashStore.set(store, "rank 0", json.dumps([3, "running", {"0": 6}, "", "wrappers", "", process]))
    Watch(store, 1, 2, dict, FOREVER, FOREVER, end=lambda *given: words.put(given)).start()
    try:
        assert words.get(timeout=20) == (
            "rank 0, which keeps the store, does not answer (killed, or stopped) since wrappers, collective 6. "
            "Rank 1 ends.", [int(process[0])],
        )  # fmt: skip
    finally:
        stopped.set()


def test_without_its_store_a_rank_ends():
    class Gone:
        def get(self, key):
            raise dist.DistNetworkError("Connection reset by peer")

    words = Queue()
    Watch(Gone(), 1, 2, dict, FOREVER, FOREVER, end=lambda told, stopped: words.put(told)).start()
    assert words.get(timeout=20) == "rank 0, which keeps the store, does not answer (killed, or stopped). Rank 1 ends."
