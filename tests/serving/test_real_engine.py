"""Test the server with the real engine on a small model, and the program that serves one until a signal."""

import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest
import torch

from labs_helpers.labs import ROOT
from labs_helpers.serving.__main__ import main
from labs_helpers.serving.engine import Engine
from labs_helpers.serving.request import SamplingParameters
from tests.processes import eventually, started
from tests.serving.served import is_refused, served
from tests.serving.workloads import BYTES, model_of

PROMPTS = [[7, 9, 11], [7, 9, 12, 200], [5], [7, 9, 11, 3, 3, 3, 3, 3, 3, 3, 3]]


def engine(**options):
    return Engine(model_of(BYTES), **{"blocks": 64, "block_size": 4, "slots": 3, "budget": 8, **options})


def alone(prompt, count, seed):
    """The text of a request that has an engine of its own."""
    own = engine()
    own.add(prompt, SamplingParameters(count, temperature=0.9, seed=seed))
    text = ""
    while own.has_work():
        text += "".join(output.text for output in own.step())
    return text


def test_many_clients_get_the_texts_that_each_gets_alone():
    with served(engine()) as server, ThreadPoolExecutor(12) as pool:
        cases = [(prompt, 5 + 2 * index, index) for index, prompt in enumerate(3 * PROMPTS)]

        def ask(prompt, count, seed):
            stream = server.complete(prompt, count, temperature=0.9, seed=seed, stream=seed % 2 == 0)
            return "".join(piece.choices[0].text for piece in stream) if seed % 2 == 0 else stream.choices[0].text

        assert list(pool.map(lambda case: ask(*case), cases)) == [alone(*case) for case in cases]
        assert server.metric("engine_generated_tokens_total") == sum(count for _, count, _ in cases)


def test_a_client_that_leaves_frees_its_blocks():
    with served(engine(ahead=False)) as server:
        stream = server.complete([1, 2, 3], 25, stream=True)
        next(stream)
        stream.close()
        assert eventually(lambda: server.metric("engine_running") == 0)
        assert server.metric("engine_blocks_used") == 0


def test_the_engine_s_own_limits_are_errors_of_the_client():
    with served(engine(blocks=3)) as server:
        with pytest.raises(openai.BadRequestError, match="the cache has 3") as raised:
            server.complete([1] * 10, 9)
        assert raised.value.code == "context_length_exceeded"
        with pytest.raises(openai.BadRequestError, match="tokens of the context"):
            server.complete([1] * 10, 2**40)


@pytest.mark.parametrize("stop, status", [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)])
def test_the_program_serves_until_a_signal(stop, status):
    torch.manual_seed(0)
    command = [sys.executable, "-m", "labs_helpers.serving", "--port", "0", "--size", "tiny", "--slots", "2"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        line = process.stdout.readline()
        address = re.search(r"at (http://127\.0\.0\.1:\d+/v1)", line)
        assert address, line
        with openai.OpenAI(base_url=address[1], api_key="none") as client:
            stream = client.completions.create(model="tiny", prompt="x", max_tokens=200, stream=True, seed=1)
            text = next(stream).choices[0].text
            process.send_signal(stop)
            text += "".join(piece.choices[0].text for piece in stream)
        assert len(text) > 20  # it finished within the grace time
        assert process.wait(60) == status
        assert ("Stopped." in process.stdout.read()) == (stop == signal.SIGINT)


def test_a_port_that_does_not_exist_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["--port", "65536"])
    assert "65536 is not a number from 0 to 65535" in capsys.readouterr().err


def test_a_second_ctrl_c_ends_the_grace_time():
    command = [sys.executable, "-m", "labs_helpers.serving", "--port", "0", "--size", "tiny", "--grace", "1000"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        port = int(re.search(r":(\d+)/v1", process.stdout.readline())[1])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Content-Length: 9\r\n\r\n{")  # fmt: skip
            with httpx.Client(base_url=f"http://127.0.0.1:{port}") as other:
                assert eventually(lambda: "serving_open_requests 1" in other.get("/metrics").text)
            process.send_signal(signal.SIGINT)
            assert eventually(lambda: is_refused(port))
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        lines = process.stdout.read().splitlines()
        assert lines[-1] == "Stopped." and "Traceback" not in lines
        assert "Open requests: 1. They may take 1000 s more; Ctrl-C ends them now." in lines
