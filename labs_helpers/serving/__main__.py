"""Serve a model over the OpenAI API, until Ctrl-C.

    python -m labs_helpers.serving                          # the byte model, on http://127.0.0.1:8000
    python -m labs_helpers.serving --size 1b --port 8001    # random weights, to measure a larger model

Nobody has to log in: with another --host, everybody who reaches this machine can use it.
"""

from __future__ import annotations

import argparse

from labs_helpers.launch import program
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.options import count
from labs_helpers.quantization.model import SCHEMES
from labs_helpers.serving.listen import GRACE_S, bind, serve, url
from labs_helpers.serving.server import Completions, Limits
from labs_helpers.transformer.config import SIZES

DAY = 24 * program.HOUR


def port(text: str) -> int:
    """Parse an option's value: the number of a port."""
    if not 0 <= (number := int(text)) < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 65535")
    return number


def main(arguments: list[str] | None = None) -> None:
    first = (__doc__ or "").split("\n")[0]
    parser = program.Parser(prog="python -m labs_helpers.serving", description=first, limit=DAY)
    told = "address to listen on; with another one, everybody who reaches it can use the server; default: %(default)s"
    parser.add_argument("--host", default="127.0.0.1", help=told)
    parser.add_argument("--port", type=port, default=8000, help="0 takes a free one; default: %(default)s")
    parser.add_argument("--size", default="bytes", choices=list(SIZES), help="of the model; default: %(default)s")
    parser.add_argument("--weights", default="bf16", choices=["bf16", *SCHEMES], help="default: %(default)s")
    parser.add_argument(
        "--slots", type=count, default=32, help="requests that generate at a time; default: %(default)s"
    )
    parser.add_argument("--requests", type=count, default=512, help="that may be open; default: %(default)s")
    told = "seconds for open requests after Ctrl-C; a second one skips them; default: %(default)g"
    parser.add_argument("--grace", type=program.seconds, default=GRACE_S, metavar="S", help=told)
    given = parser.parse_args(arguments)
    with bind(given.host, given.port) as bound:  # a port that is taken is said before the model is loaded
        prepare_triton()  # before the engine imports it
        from labs_helpers.serving.build import build, warm_up

        engine = build(given.size, given.weights, slots=given.slots)
        warm_up(engine)
        completions = Completions(engine, given.size, Limits(requests=given.requests))
        bound.listen()  # from now on, a client waits instead of being refused
        print(f"Serving {given.size!r} on {this_machine().label} at {url(bound)}/v1; Ctrl-C ends it. For example:")
        print(f"""curl {url(bound)}/v1/completions -H 'Content-Type: application/json' \\
  -d '{{"model": "{given.size}", "prompt": "The ", "max_tokens": 100, "stream": true}}'""", flush=True)  # fmt: skip
        try:
            serve(completions, bound, given.grace, lambda text: print(text, flush=True))
        except KeyboardInterrupt:
            print("Stopped.")


if __name__ == "__main__":
    program.run(main, watched=False)
