"""Generate load: requests with random lengths arrive at random times, and their waiting times are measured.

    python -m labs_helpers.serving.load http://127.0.0.1:8000 --rate 4     # requests per second

`over_http` sends them to a server and reads their streams; `over_engine` gives them to an engine directly. Times count
from the moment at which a request was due, so that a sender that falls behind hides nothing (Tene, How not to measure
latency, 2013).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from labs_helpers.launch import program
from labs_helpers.measure.options import count
from labs_helpers.serving.counting import Lengths, workload
from labs_helpers.serving.engine_thread import StepEngine
from labs_helpers.serving.load_clients import Arrival, Observed, over_http
from labs_helpers.serving.request import SamplingParameters
from labs_helpers.serving.status import QueueFull

MOST_ERRORS = 3  # texts in a summary
PRINTED = (
    "Prints one line of JSON. errors: requests without a whole answer. first, gap, whole: ms from the moment a request "
    "was due to its first output, from one output to the next, and to its last output; p50 and p95: median and 95th "
    "percentile. tokens_per_s: of all answers together. The exit status is 1 if no request was answered."
)


def arrivals(work: Sequence[Lengths], rate: float, seed: int = 0, vocabulary: int = 256) -> list[Arrival]:
    """Return requests with these lengths and random prompts, which arrive as a Poisson process.

    rate: requests per second; 0: all at the beginning. Equal seeds give equal prompts at every rate, and equal gaps
    up to the rate's factor.
    """
    gaps, tokens = random.Random(seed), np.random.default_rng(seed)
    found, at = [], 0.0
    for index, (prompt, output) in enumerate(work):
        at += gaps.expovariate(1.0) / rate if rate else 0.0
        how = SamplingParameters(output, temperature=0.8, seed=index)
        found.append(Arrival(at, tuple(tokens.integers(vocabulary, size=prompt).tolist()), how))
    return found


def over_engine(
    engine: StepEngine,
    work: Sequence[Arrival],
    now: Callable[[], float] = time.perf_counter,
    wait: Callable[[float], None] = time.sleep,
) -> list[Observed]:
    """Run the requests on an engine in this thread. now, wait: the clock."""
    began, due = now(), deque(work)
    observed, running = [Observed(arrival.at) for arrival in work], dict[int, Observed]()
    while due or engine.has_work():
        while due and due[0].at <= now() - began:
            arrival, mine = due.popleft(), observed[len(work) - len(due) - 1]
            try:
                running[engine.add(arrival.prompt, arrival.how)] = mine
            except (ValueError, QueueFull) as error:
                mine.error = str(error)
        if engine.has_work():
            outputs = engine.step()
            for output in outputs:
                running[output.request].times.append(now() - began)
                running[output.request].tokens = output.completion_tokens
        elif due:
            wait(max(0.0, due[0].at - (now() - began)))
    return observed


def summary(observed: Sequence[Observed]) -> dict[str, Any]:
    """Return the numbers of a run as a record's fields.

    first: from due to the first output; gap: from one output to the next, of all requests together; whole: from due to
    the last output; all in ms, median and 95th percentile. tokens_per_s: of all answers, from the first request's due
    time to the last output.
    """
    fine = [each for each in observed if not each.error]
    errors = sorted({each.error for each in observed if each.error})
    shown = [*errors[:MOST_ERRORS], *([f"{more} other errors"] if (more := len(errors) - MOST_ERRORS) > 0 else [])]
    found: dict[str, Any] = {"errors": len(observed) - len(fine), "error": "; ".join(shown)}
    if not fine:
        return found
    seconds = max(each.times[-1] for each in fine) - min(each.due for each in observed)
    tokens = sum(each.tokens for each in fine)
    found |= {"seconds": seconds, "output_tokens": tokens, "tokens_per_s": tokens / seconds}
    times = {
        "first": [each.times[0] - each.due for each in fine],
        "gap": [gap for each in fine for gap in np.diff(each.times).tolist()],
        "whole": [each.times[-1] - each.due for each in fine],
    }
    for name, values in times.items():
        for percent in (50, 95):
            found[f"{name}_p{percent}_ms"] = 1e3 * float(np.percentile(values, percent)) if values else None
    return found


def add_options(
    parser: program.Parser, requests: int = 64, prompts: Lengths = (20, 200), outputs: Lengths = (8, 128)
) -> None:
    """Add the options that describe a workload. The arguments are their defaults."""
    parser.add_argument("--requests", type=count, default=requests, help="default: %(default)s")
    for name, default in (("prompts", prompts), ("outputs", outputs)):
        told = f"fewest and most tokens of {name}; default: {default[0]} {default[1]}"
        parser.add_argument(f"--{name}", type=count, nargs=2, default=default, metavar=("LOW", "HIGH"), help=told)
    parser.add_argument("--seed", type=int, default=0, help="of lengths, prompts and arrivals; default: 0")


def lengths_of(given: argparse.Namespace, parser: program.Parser) -> list[Lengths]:
    """Return the lengths that the options of `add_options` describe; limits that do not fit end the program."""
    try:
        return workload(given.requests, tuple(given.prompts), tuple(given.outputs), given.seed)
    except ValueError as error:
        parser.error(str(error))


def per_second(text: str) -> float:
    """Parse an option's value: requests per second, or 0."""
    if not 0 <= (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a rate, which is 0 or more and finite")
    return number


def _address(text: str) -> str:
    try:
        if (parts := urlsplit(text)).hostname and parts.port != 0 and parts.scheme == "http":
            return text
    except ValueError:  # of the port
        pass
    raise argparse.ArgumentTypeError(f"{text} is no address such as http://127.0.0.1:8000")


def main(arguments: list[str] | None = None) -> int:
    parser = program.Parser(description=(__doc__ or "").split("\n")[0], epilog=PRINTED)
    parser.add_argument("url", type=_address, help="such as http://127.0.0.1:8000")
    parser.add_argument("--rate", type=per_second, default=0.0, help="requests per second; default: all at once")
    add_options(parser)
    parser.add_argument("--model", default="bytes", help="name in the API; default: %(default)s")
    parser.add_argument("--vocabulary", type=count, default=256, help="of the prompts' tokens; default: %(default)s")
    given = parser.parse_args(arguments)
    work = arrivals(lengths_of(given, parser), given.rate, given.seed, given.vocabulary)
    found = summary(over_http(given.url, given.model, work))
    print(json.dumps({name: round(value, 3) if isinstance(value, float) else value for name, value in found.items()}))
    return int(found["errors"] == len(work))


if __name__ == "__main__":
    program.run(main)
