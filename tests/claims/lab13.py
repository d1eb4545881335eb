"""Compute the numbers in lab 13's text from the library's formats, and from the lab's cells."""

import re

import torch

from labs_helpers.course import own_copies
from labs_helpers.labs import lab
from labs_helpers.serving import load_study, study
from labs_helpers.serving.lab13 import stepwise
from labs_helpers.serving.load_study import IN_FLIGHT, STATIC
from labs_helpers.transformer.config import SIZES
from tests.claims.table import Claim, Given, Table


def in_code(pattern: str) -> float:
    """Return the number that the pattern's group matches in the lab's code, where it occurs once or with one value."""
    cells = [cell.source for cell in own_copies.read(lab("13").path).cells if cell.cell_type == "code"]
    (found,) = set(re.findall(pattern, "\n".join(cells)))
    return float(found)


def attention_ratio(batch: int, used: int, size: int) -> float:
    """Return the recorded time of the attention kernel with blocks of `size`, over that without blocks."""
    rows = study.STUDY.load()
    rows = rows[(rows["kind"] == "attention") & (rows["batch"] == batch) & (rows["used"] == used)]
    return float(rows[rows["name"] == f"blocks of {size}"]["ratio"].iloc[-1])


def recorded_load(column: str, rate: float, policy: str = IN_FLIGHT, through: str = "engine", slots: int = 32) -> float:
    rows = load_study.load()
    rows = rows[(rows["rate"] == rate) & (rows["policy"] == policy) & (rows["through"] == through)]
    return float(rows[rows["slots"] == slots][column].iloc[-1])


def first_tokens() -> list[float]:
    rates = load_study.load()["rate"]
    lowest = rates[rates > 0].min()
    return [lowest, *(recorded_load("first_p50_ms", lowest, policy) for policy in (STATIC, IN_FLIGHT))]


def batching() -> list[float]:
    rows = study.STUDY.load()
    row = rows[rows["kind"] == "batching"].iloc[-1]
    return [float(row[name]) for name in ("requests", "slots", "predicted_ratio", "ratio")]


def most_static() -> float:
    """Return the requests per second that the fastest run with static batching ended."""
    rows = load_study.load()
    rows = rows[rows["policy"] == STATIC]
    return float((rows["requests"] / rows["seconds"]).max())


def through_http() -> list[float]:
    http, engine = (recorded_load("tokens_per_s", 0, through=way, slots=64) for way in ("http", "engine"))
    return [64, 100 * http / engine]


TABLE = Table(
    claims=(
        Claim("cached numbers of 2 bytes", lambda: torch.bfloat16.itemsize),
        Claim("on a GPU with 141 GB", lambda: in_code(r"953_223_168, (\d+) \* 10\*\*9")),
        Claim("room for 4,096 positions each", lambda: SIZES["1b"].context),
        Claim("a cache of 8,192 positions", lambda: in_code(r"draw_occupancy\(uses, (\d+)\)")),
        Claim(
            "256 requests in 32 slots; by the number of steps, static batching should take 2.9 times as long, and it "
            "took 2.1 times as long",
            batching,
        ),
        Claim("blocks of 16 make it 2% slower", lambda: [16, 100 * (attention_ratio(64, 1000, 16) - 1)]),
        Claim(
            "the record of 12 requests per second, the median first token takes 543 ms, and 7 ms in flight",
            first_tokens,
        ),
        Claim("never ends more than 19 requests per second", most_static),
        Claim("64 streams through HTTP get 98% of the tokens", through_http),
        Claim("together, every 10 ms", lambda: 1e3 * recorded_load("interval_s", 0, through="http", slots=64)),
        Claim("Twelve requests generate 2 to 24 tokens", lambda: [min(stepwise.OUTPUTS), max(stepwise.OUTPUTS)]),
    ),
    given=(Given("an acceptance rate of 90%", "a question's assumption"),),
)
