"""Test the tuning cache with several processes and damaged files, and that it replaces entries only for a real gain."""

import json
import sys
from subprocess import DEVNULL, Popen

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.gemm import Config
from labs_helpers.gemm.tuning.cache import TuningCache
from labs_helpers.measure.results import ROOT

configs = st.builds(
    Config, *[st.sampled_from(values) for values in ((64, 128), (64, 256), (32, 64), (1, 8), (4, 8), (2, 5))]
)
puts = st.lists(st.tuples(st.text(max_size=4), configs, st.floats(1e-3, 1e3)), max_size=12)


@settings(max_examples=60)
@given(puts)
def test_it_keeps_the_fastest_by_more_than_one_percent(tmp_path_factory, sequence):
    path, model = tmp_path_factory.mktemp("cache") / "tuned.json", {}
    for key, config, ms in sequence:
        gained = key not in model or ms < 0.99 * model[key][1]
        assert TuningCache(path).put(key, config, ms) is gained
        if gained:
            model[key] = (config, ms)
    survived = TuningCache(path)
    assert {key: survived.get(key) for key in model} == {key: config for key, (config, _) in model.items()}
    assert {key: entry["ms"] for key, entry in survived.entries().items()} == {k: ms for k, (_, ms) in model.items()}


scalars = st.none() | st.booleans() | st.floats(allow_nan=False) | st.text()
no_cache = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner, min_size=1))


@settings(max_examples=60)
@given(st.binary(min_size=1) | no_cache.map(lambda value: json.dumps(value).encode()))
def test_a_damaged_file_is_put_aside_with_a_warning_and_nothing_is_lost(tmp_path_factory, data):
    if data.strip() == b"{}":
        return
    path = tmp_path_factory.mktemp("cache") / "tuned.json"
    path.write_bytes(data)
    cache = TuningCache(path)
    with pytest.warns(UserWarning, match="damaged"):
        assert cache.put("a", Config(64, 64, 32), 1.0)
    assert cache.get("a") == Config(64, 64, 32)
    assert path.with_name("tuned.json.damaged").read_bytes() == data


@pytest.mark.parametrize(
    "entry",
    [
        {"config": {"BLOCK_M": 64}, "ms": 1.0},
        {"config": Config(64, 64, 32).keywords(), "ms": -1.0},
        {"config": Config(64, 64, 32).keywords() | {"BLOCK_K": "32"}, "ms": 1.0},
        {"config": Config(64, 64, 32).keywords()},
        [64, 64, 32],
        None,
    ],
)
def test_an_entry_that_is_no_configuration_is_damage(tmp_path, entry):
    path = tmp_path / "tuned.json"
    path.write_text(json.dumps({"key": entry}))
    with pytest.warns(UserWarning, match="'key' is not a configuration"):
        assert TuningCache(path).get("key") is None


def test_damage_twice_keeps_both(tmp_path):
    path = tmp_path / "tuned.json"
    for text in ("one", "two"):
        path.write_text(text)
        with pytest.warns(UserWarning, match="damaged"):
            TuningCache(path).entries()
    assert {file.read_text() for file in tmp_path.glob("*.damaged*")} == {"one", "two"}


def test_two_processes_lose_nothing(tmp_path):
    path = tmp_path / "tuned.json"
    code = (
        "import sys; from labs_helpers.gemm.configs import Config; "
        "from labs_helpers.gemm.tuning.cache import TuningCache\n"
        "cache, who = TuningCache(sys.argv[1]), int(sys.argv[2])\n"
        "for i in range(60):\n"
        "    cache.put(f'{who}-{i}', Config(64, 64, 32), 1.0)\n"
        "    cache.put('shared', Config(64, 64, 32, num_stages=2 + who), 1000 / (2 * i + who + 1) ** 2)\n"
    )
    processes = [
        Popen([sys.executable, "-W", "error", "-c", code, str(path), str(who)], cwd=ROOT, stdout=DEVNULL)
        for who in range(2)
    ]
    try:
        assert [process.wait(timeout=100) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    entries = TuningCache(path).entries()
    assert set(entries) == {f"{who}-{i}" for who in range(2) for i in range(60)} | {"shared"}
    assert entries["shared"] == {"config": Config(64, 64, 32, num_stages=3).keywords(), "ms": 1000 / 120**2}
    assert {file.name for file in tmp_path.iterdir()} - {"tuned.json.lock"} == {"tuned.json"}


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    cache = TuningCache(tmp_path / "tuned.json")
    cache.put("a", Config(64, 64, 32), 1.0)
    monkeypatch.setattr("labs_helpers.gemm.tuning.cache.json.dump", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cache.put("b", Config(64, 64, 32), 1.0)
    assert set(cache.entries()) == {"a"} and not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize(
    ("config", "ms", "error"),
    [
        (Config(64, 64, 32), float("nan"), ValueError),
        (Config(64, 64, 32), float("inf"), ValueError),
        (Config(64, 64, 32), 0.0, ValueError),
        ({"BLOCK_M": 64}, 1.0, TypeError),
        (None, 1.0, TypeError),
    ],
)
def test_what_cannot_be_remembered_is_refused(tmp_path, config, ms, error):
    with pytest.raises(error):
        TuningCache(tmp_path / "tuned.json").put("a", config, ms)
    assert TuningCache(tmp_path / "tuned.json").entries() == {}
