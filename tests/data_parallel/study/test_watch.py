"""What a rank on a GPU is told of others by its watch: here with a store of this process, in which the others speak."""

from queue import Queue

import pytest
import torch.distributed as dist

from labs_helpers.data_parallel.study import watch as module
from labs_helpers.data_parallel.study.watch import Watch

FOREVER, SHORT = 60.0, 0.15


@pytest.fixture
def told(monkeypatch):
    """said(beat=…, silence=…, timeout=…): what rank 0, at collective 7 of the wrappers, hears of rank 1."""
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    running = []

    def said(store, silence=FOREVER, timeout=FOREVER):
        words = Queue()
        watch = Watch(store, 0, 2, lambda: (7, "wrappers"), timeout, silence, words.put)
        running.append(watch)
        watch.start()
        return words.get(timeout=100)

    yield said
    for watch in running:
        watch.stop()


def store_with(**keys):
    store = dist.HashStore()
    for key, value in keys.items():
        store.set(key.replace("_", " "), value)
    return store


def test_a_silent_rank_is_named_with_what_it_had_begun(told):
    said = told(store_with(beat_1="12|6|wrappers"), silence=SHORT)
    assert said == "rank 1 does not answer (killed, or stopped) since wrappers, collective 6. Rank 0 ends."


def test_a_rank_that_has_never_spoken_is_named(told):
    assert told(store_with(), silence=SHORT).startswith("rank 1 does not answer (killed, or stopped) since its start.")


def test_of_a_rank_without_a_beat_is_known_what_it_has_noted(told):
    said = told(store_with(at_1="wrappers"), silence=SHORT)
    assert said == "rank 1 does not answer (killed, or stopped) since wrappers. Rank 0 ends."


def test_a_rank_that_lives_but_does_not_join_is_named(told):
    said = told(store_with(beat_1="12|6|buckets"), timeout=SHORT)
    assert said == (
        "rank 1 is stuck since buckets, collective 6: the others wait in collective 7 for 0.15 s. Rank 0 ends."
    )


def test_where_all_have_come_as_far_nobody_is_blamed(told):
    said = told(store_with(beat_1="12|7|wrappers"), timeout=SHORT)
    assert said == "no rank has gone on for 0.15 s, since wrappers, collective 7. Rank 0 ends."


def test_a_rank_that_has_failed_is_named_with_its_error(told):
    said = told(store_with(beat_1="over", failed_1="ValueError: no such size"), silence=4 * SHORT)
    assert said == "rank 1 failed: ValueError: no such size. Rank 0 ends."


def test_a_rank_that_is_over_is_not_missed(told):
    said = told(store_with(beat_1="over"), silence=SHORT, timeout=3 * SHORT)
    assert said.startswith("no rank has gone on")


def test_without_its_store_a_rank_ends():
    class Gone:
        def set(self, key, value):
            raise dist.DistNetworkError("Connection reset by peer")

    words = Queue()
    Watch(Gone(), 1, 2, lambda: (0, "the beginning"), FOREVER, FOREVER, words.put).start()
    assert words.get(timeout=100) == "rank 0, which keeps the store, does not answer. Rank 1 ends."
