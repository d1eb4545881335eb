"""Test which rank a watch names, with a store in this process, through which the other rank speaks."""

import json
from queue import Queue

import pytest
import torch.distributed as dist

from labs_helpers.launch import watch as module
from labs_helpers.launch.watch import Watch

FOREVER, SHORT = 3600.0, 0.15


@pytest.fixture
def told(monkeypatch):
    """told(beat of rank 1, …): what rank 0, at collective 7 of the wrappers, hears of rank 1."""
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    running = []

    def told(beat=None, timeout=FOREVER, limit=FOREVER, silence=FOREVER, **keys):
        store, words = dist.HashStore(), Queue()
        if beat is not None:
            store.set("rank 1", json.dumps(beat))
        for key, value in keys.items():
            store.set(key.replace("_", " "), value)
        watch = Watch(store, 0, 2, lambda: {"0": 7}, timeout, limit, silence=silence, end=words.put)
        running.append(watch)
        watch.start()
        watch.note("wrappers")
        return words.get(timeout=20)

    yield told
    for watch in running:
        watch.done.set()


def test_a_silent_rank_is_named_with_what_it_had_begun(told):
    said = told([12, "running", {"0": 6}], silence=SHORT, at_1="wrappers")
    assert said == "rank 1 does not answer (killed, or stopped) since wrappers, collective 6. Rank 0 ends."


def test_a_rank_that_has_never_spoken_has_not_arrived(told):
    said = told(timeout=SHORT)
    assert said == "rank 1 has not arrived within 0.15 s (killed, stopped or never started). Rank 0 ends."


def test_a_rank_that_has_begun_fewer_collectives_is_named(told, monkeypatch):
    monkeypatch.setattr(Watch, "_is_quiet", lambda watch, one: False)
    said = told([12, "running", {"0": 6}], timeout=SHORT, at_1="buckets")
    assert said == "no rank has gone on for 0.15 s: rank 1 is stuck since buckets, collective 6. Rank 0 ends."


def test_only_groups_that_a_rank_is_in_count(told, monkeypatch):
    monkeypatch.setattr(Watch, "_is_quiet", lambda watch, one: False)
    said = told([12, "running", {"0": 7, "1": 3}], timeout=SHORT)
    assert said == (
        "no rank has gone on for 0.15 s: rank 0 is at wrappers, collective 7; rank 1 is at its start, collective 7. "
        "Rank 0 ends."
    )


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


def test_without_its_store_a_rank_ends():
    class Gone:
        def set(self, key, value):
            raise dist.DistNetworkError("Connection reset by peer")

    words = Queue()
    Watch(Gone(), 1, 2, dict, FOREVER, FOREVER, end=words.put).start()
    assert words.get(timeout=20) == "rank 0, which keeps the store, does not answer (killed, or stopped). Rank 1 ends."
