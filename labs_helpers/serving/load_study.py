"""Measure latency against the arrival rate: in-flight beside static batching, on the engine itself or through HTTP.

    python -m labs_helpers.serving.load_study                               # the engine itself
    python -m labs_helpers.serving.load_study --through engine http --policies in-flight --rates 0 \\
        --requests 64 --slots 64 --prompts 100 100 --outputs 1000 1000      # what HTTP costs 64 streams

Through HTTP, the server runs in this process, and the clients in another. A GPU runs lab 01's 1B model with random
weights, a CPU the byte model. `charts.draw_latency` draws the records.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from labs_helpers.labs import ROOT
from labs_helpers.launch import program
from labs_helpers.launch.process import run
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.options import count
from labs_helpers.measure.study import Record, Study
from labs_helpers.quantization.model import SCHEMES
from labs_helpers.serving.engine_thread import INTERVAL_S
from labs_helpers.serving.listen import running
from labs_helpers.serving.load import add_options, arrivals, lengths_of, over_engine, per_second, summary
from labs_helpers.serving.load_clients import Arrival
from labs_helpers.serving.server import Completions
from labs_helpers.transformer.config import SIZES

if TYPE_CHECKING:
    import pandas

STUDY = Study("serving-load", "python -m labs_helpers.serving.load_study")
load = STUDY.load
IN_FLIGHT, STATIC = "in-flight", "static"
CLIENT_S = 600.0


def through_engine(engine: Any, work: list[Arrival]) -> dict[str, Any]:
    """Return the summary of a run in a thread of its own, as the server's: on a CPU, OpenMP makes a difference."""
    with ThreadPoolExecutor(1) as pool:
        return summary(pool.submit(over_engine, engine, work).result())


def through_http(engine: Any, rate: float, about: Record, vocabulary: int, interval: float) -> dict[str, Any]:
    """Return the summary of clients in another process; in one, they and the server would wait for each other."""
    options = ["--rate", rate, "--vocabulary", vocabulary]
    for name in ("requests", "prompts", "outputs", "seed"):
        value = about[name]
        options += [f"--{name}", *(value if isinstance(value, list) else [value])]
    with running(Completions(engine, interval_s=interval)) as url:
        command = [sys.executable, "-m", "labs_helpers.serving.load", url, *map(str, options)]
        return json.loads(run(command, timeout=CLIENT_S, cwd=ROOT).splitlines()[-1])


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per run."""
    columns = ["through", "policy", "rate", "requests", "errors", "tokens_per_s"]
    columns += [f"{name}_p{percent}_ms" for name in ("first", "gap") for percent in (50, 95)]
    return rows[[column for column in columns if column in rows]]


def main(arguments: list[str] | None = None) -> None:
    on_gpu = this_machine().device == "cuda"
    parser = STUDY.parser(__doc__, limit=1800)
    add_options(parser, *((256, (100, 1000), (16, 1024)) if on_gpu else (16,)))
    rates = [12.0, 20.0, 28.0, 36.0, 44.0, 52.0] if on_gpu else [1.0, 4.0]
    told = f"requests per second; 0: all at the beginning; default: {' '.join(f'{rate:g}' for rate in rates)}"
    parser.add_argument("--rates", type=per_second, nargs="+", default=rates, metavar="R", help=told)
    parser.add_argument("--policies", nargs="+", choices=[IN_FLIGHT, STATIC], default=[IN_FLIGHT, STATIC],
                        help="default: both")  # fmt: skip
    parser.add_argument("--through", nargs="+", choices=["engine", "http"], default=["engine"],
                        help="default: engine")  # fmt: skip
    parser.add_argument(
        "--slots", type=count, default=32, help="requests in the engine at a time; default: %(default)s"
    )
    told = "seconds from one output of a stream to the next, through HTTP; default: %(default)s"
    parser.add_argument("--interval", type=float, default=INTERVAL_S, metavar="S", help=told)
    size = "1b" if on_gpu else "bytes"
    parser.add_argument("--size", default=size, choices=list(SIZES), help="of the model; default: %(default)s")
    parser.add_argument("--weights", default="bf16", choices=["bf16", *SCHEMES], help="default: %(default)s")
    given = parser.parse_args(arguments)
    prepare_triton()  # before the engine imports it
    from labs_helpers.serving.build import build, warm_up

    work = lengths_of(given, parser)
    about: Record = {name: getattr(given, name) for name in ("size", "weights", "slots", "requests", "seed")}
    about |= {"prompts": list(given.prompts), "outputs": list(given.outputs)}
    found: list[Record] = []
    for policy in given.policies:
        static = policy == STATIC
        engine = build(given.size, given.weights, slots=given.slots, static=static, sharing=False)  # prompts come again
        warm_up(engine)
        vocabulary = engine.model.config.vocabulary
        for rate in given.rates:
            for through in given.through:
                if through == "http":
                    measured = {"interval_s": given.interval}
                    measured |= through_http(engine, rate, about, vocabulary, given.interval)
                else:
                    measured = through_engine(engine, arrivals(work, rate, given.seed, vocabulary))
                if measured["errors"] == given.requests:
                    parser.error(f"no request was answered: {measured['error']}")
                record = {"study": STUDY.name, "kind": "load", "through": through, "policy": policy, "rate": rate}
                found.append(record | about | measured)
                print(policy, rate, through, f"{measured.get('tokens_per_s', 0):.0f} tokens per second", flush=True)
    STUDY.keep(found, given.out, table=table)


if __name__ == "__main__":
    program.run(main)
