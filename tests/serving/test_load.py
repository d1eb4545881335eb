"""Test the load generator: its arrivals, its clock, its numbers, its clients, and the study with its figure."""

import json
import math
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from labs_helpers.measure import records, results
from labs_helpers.serving import charts, load, load_study
from labs_helpers.serving.counting import workload
from labs_helpers.serving.load import Observed, arrivals, over_engine, over_http, summary
from labs_helpers.serving.server import Limits
from tests.serving.fake_engine import FakeEngine
from tests.serving.served import served


class Clock:
    """A clock that only `wait` moves."""

    def __init__(self):
        self.time = 100.0

    def now(self):
        return self.time

    def wait(self, seconds=1.0):
        self.time += seconds


def test_arrivals_are_a_poisson_process_whose_gaps_scale_with_the_rate():
    lengths = [(3, 4)] * 4000
    slow, fast = arrivals(lengths, 2.0), arrivals(lengths, 8.0)
    gaps = np.diff([arrival.at for arrival in slow])
    assert np.mean(gaps) == pytest.approx(0.5, rel=0.05) and np.std(gaps) == pytest.approx(0.5, rel=0.05)
    assert np.mean(gaps > 0.5 * math.log(2)) == pytest.approx(0.5, abs=0.03)  # the median of an exponential
    assert [arrival.at for arrival in fast] == pytest.approx([arrival.at / 4 for arrival in slow])
    assert [arrival.prompt for arrival in fast] == [arrival.prompt for arrival in slow]
    assert arrivals(lengths, 2.0, seed=1)[0] != slow[0] and {arrival.at for arrival in arrivals(lengths, 0)} == {0.0}


def test_lengths_and_tokens_are_those_asked_for():
    lengths = workload(50, (3, 9), (2, 5), seed=4)
    work = arrivals(lengths, 1.0, vocabulary=7)
    assert [(len(arrival.prompt), arrival.how.max_tokens) for arrival in work] == lengths
    assert {token for arrival in work for token in arrival.prompt} == set(range(7))


def test_an_engine_is_timed_from_the_moment_a_request_is_due():
    clock = Clock()
    engine = FakeEngine(slots=1, wait=clock.wait)  # a step takes a second
    work = [load.Arrival(at, (1,), load.SamplingParameters(2)) for at in (0.0, 0.5, 10.0)]
    observed = over_engine(engine, work, clock.now, clock.wait)
    assert [each.times for each in observed] == [[1.0, 2.0], [3.0, 4.0], [11.0, 12.0]]
    found = summary(observed)
    assert (found["errors"], found["output_tokens"], found["seconds"], found["tokens_per_s"]) == (0, 6, 12.0, 0.5)
    assert (found["first_p50_ms"], found["gap_p50_ms"], found["whole_p50_ms"]) == (1000, 1000, 2000)
    assert found["first_p95_ms"] == pytest.approx(1000 + 0.9 * 1500)


def test_what_an_engine_refuses_is_an_error_and_the_rest_goes_on():
    clock = Clock()
    work = [load.Arrival(0.0, (1,), load.SamplingParameters(count)) for count in (1, 5000, 2, 3)]
    observed = over_engine(FakeEngine(slots=1, most_waiting=2, wait=clock.wait), work, clock.now, clock.wait)
    assert [bool(each.error) for each in observed] == [False, True, False, True]
    found = summary(observed)
    assert found["errors"] == 2 and "too long" in found["error"] and "2 requests wait" in found["error"]


def test_without_an_answer_there_are_only_errors():
    assert summary([Observed(0.0, error="refused")]) == {"errors": 1, "error": "refused"}
    many = summary([Observed(0.0, error=letter) for letter in "abcdeea"])
    assert many == {"errors": 7, "error": "a; b; c; 2 other errors"}


def test_clients_read_streams_and_tell_errors():
    with served(limits=Limits(prompt=5)) as server:
        work = arrivals([(3, 7), (9, 7), (5, 40)], 1000.0)
        observed = over_http(server.url, "bytes", work)
        assert [each.tokens for each in observed] == [7, 0, 40]
        assert "prompt has 9 tokens; at most 5" in observed[1].error and not observed[0].error
        for each in (observed[0], observed[2]):
            assert each.times == sorted(each.times) and each.times[0] > each.due
        assert "other" in over_http(server.url, "other", work[:1])[0].error
        assert over_http(f"{server.url}/v1", "bytes", work[:1])[0].tokens == 7
    assert over_http(server.url, "bytes", work[:1])[0].error == f"{server.url}: connection refused"


def test_a_stream_that_the_server_breaks_off_is_an_error():
    with served(FakeEngine(fails_at=3)) as server:
        (observed,) = over_http(server.url, "bytes", arrivals([(1, 9)], 0))
        server.engine.requests.clear()
    assert observed.error == "The engine failed: RuntimeError."


@pytest.mark.parametrize("answer", [b"HTTP/1.1 501 No\r\n\r\n<html>", b"HTTP/1.1 200 OK\r\n\r\n<html>",
                                    b"HTTP/1.1 404 No\r\n\r\n{}", b"HTTP/1.1 200 OK\r\n" + 99_999 * b"x"])  # fmt: skip
def test_another_server_is_an_error(answer):
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        found = pool.submit(over_http, url, "bytes", arrivals([(1, 9)], 0))
        client, _ = listening.accept()
        with client:
            client.recv(100_000)
            client.sendall(answer)
        assert found.result()[0].error == f"{url} does not answer as the OpenAI API does"


@pytest.mark.parametrize("options, said", [
    (["nonsense"], "nonsense is no address such as http"), (["http://x:a"], "http://x:a is no address such as http"),
    (["https://x"], "https://x is no address such as http://"),
    (["http://x", "--outputs", "5", "2"], "no length lies between 5 and 2"),
    (["http://x", "--requests", "0"], "0 is not a number from 1 up"),
    (["http://x", "--rate", "-1"], "-1 is not a rate"), (["http://x", "--rate", "nan"], "nan is not a rate"),
])  # fmt: skip
def test_options_that_do_not_fit_are_named(options, said, capsys):
    with pytest.raises(SystemExit):
        load.main(options)
    assert said in capsys.readouterr().err


def test_the_command_prints_the_numbers(capsys):
    with served() as server:
        options = ["--requests", "5", "--prompts", "1", "4", "--outputs", "2", "3", "--rate", "500"]
        assert load.main([server.url, *options]) == 0
        found = json.loads(capsys.readouterr().out)
        assert load.main([server.url, *options, "--model", "other"]) == 1 and "'other'" in capsys.readouterr().out
    assert found["errors"] == 0 and 10 <= found["output_tokens"] <= 15


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The records of a small study, directly and through HTTP."""
    out = tmp_path_factory.mktemp("load") / "load.jsonl"
    options = "--size tiny --requests 4 --prompts 2 9 --outputs 2 6 --rates 50 200 --through engine http --slots 2"
    load_study.main([*options.split(), "--out", str(out)])
    return results.load(out)


def test_a_study_whose_requests_are_all_refused_records_nothing(tmp_path, capsys):
    out = tmp_path / "load.jsonl"
    with pytest.raises(SystemExit):
        load_study.main(["--size", "tiny", "--requests", "2", "--prompts", "9000", "9000", "--out", str(out)])
    assert "no request was answered: the prompt of 9000 tokens" in capsys.readouterr().err and not out.exists()


def test_the_study_has_a_record_per_policy_rate_and_way(rows):
    assert len(rows) == 8 == len(rows.drop_duplicates(["policy", "rate", "through"])) and not rows["errors"].any()
    assert rows["output_tokens"].nunique() == 1 and (rows["first_p50_ms"] > 0).all()
    assert len(load_study.table(rows)) == 8


def test_the_figure_s_title_is_its_finding(rows):
    fig = charts.draw_latency(rows)
    assert len(fig.axes) == 2 and "static batching waits" in fig.get_suptitle()
    made = [
        {"through": "engine", "policy": policy, "rate": rate, "size": "1b", "weights": "bf16", "slots": 32,
         "requests": 256, "first_p50_ms": first, "first_p95_ms": 3 * first, "gap_p50_ms": 4.0, "gap_p95_ms": 9.0}
        for policy, times in (("in-flight", (10, 20)), ("static", (15, 1000)))
        for rate, first in zip((2.0, 4.0), times, strict=True)
    ]  # fmt: skip
    found = records.frame(made)
    fig = charts.draw_latency(found)
    assert fig.get_suptitle() == "At 2 requests/s, static batching waits 1.5× as long"
    assert {label for label in fig.axes[0].get_legend_handles_labels()[1]} == {
        "in-flight", "in-flight, 95th percentile", "static", "static, 95th percentile",
    }  # fmt: skip
    alone = charts.draw_latency(found[found["policy"] == "static"])
    assert alone.get_suptitle() == "The first token waits 66.7× as long under load"
    assert charts.draw_latency(found[found["rate"] == 2.0]).empty
