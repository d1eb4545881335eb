"""Compute the numbers in lab 00's text."""

from __future__ import annotations

import re

import torch

from labs_helpers.compile.ahead_of_time import compile_launch
from labs_helpers.compile.launches import record_launches
from labs_helpers.first_kernels.lab00 import in_flight, study
from labs_helpers.first_kernels.lab00.exercises import transpose_copy
from labs_helpers.measure.datasheet import DATASHEET, KIB
from tests.claims.table import Claim, Given, Table

H200 = DATASHEET["H200"]
FLOAT32 = torch.float32.itemsize
SECTOR = 32


def recorded(kind: str) -> list[dict]:
    """The records of the H200's last run of one kind; a reader's own are left out."""
    return next(iter(study.recorded(kind).values()))


def wave_us(per_sm: int) -> float:
    """µs of a grid of so many computing programs for each SM."""
    rows = {r["programs"]: r["median_ms"] for r in recorded("waves") if r["does"] == "computing"}
    return 1e3 * rows[per_sm * H200.multiprocessors]


def latency() -> float:
    """ns of a load from DRAM."""
    return next(r["latency_ns"] for r in recorded("latency") if r["name"] == "DRAM")


def bandwidth(warps: int | None = None) -> float:
    """Bytes per second of the read with so many warps on an SM and one load each; None: of the fastest read."""
    rows = [r for r in recorded("in flight") if warps is None or (r["warps"], r["stages"]) == (warps, 1)]
    return max(r["bytes"] / r["median_ms"] * 1e3 for r in rows)


def needed() -> float:
    """Warps on each SM, one load each, by Little's law."""
    return bandwidth() * latency() * 1e-9 / H200.multiprocessors / in_flight.bytes_in_flight(1, 1)


def enough() -> int:
    return in_flight.fewest_warps(recorded("in flight"))


def crowded_latency() -> float:
    """ns of a load with the fewest warps that are enough, by Little's law."""
    return 1e9 * H200.multiprocessors * in_flight.bytes_in_flight(enough(), 1) / bandwidth(enough())


def copied(tiles: str) -> float:
    """TB/s of the transposed copy."""
    return next(r["bytes"] / r["median_ms"] / 1e9 for r in recorded("transpose") if r["name"] == f"tiles of {tiles}")


def bytes_per_thread() -> int:
    """The bytes that each load from DRAM and each store to it moves in the compiled transposed copy."""
    with record_launches(run=False) as launches:
        transpose_copy(torch.zeros(64, 64))
    ptx = compile_launch(launches[0], "sm_90").assembly
    (elements,) = set(re.findall(r"(?:ld|st)\.global\.v(\d)\.b32", ptx))
    return int(elements) * FLOAT32


TABLE = Table(
    claims=(
        Claim(
            "a full wave of 16 takes 331 µs, and the 17th program adds 39 µs",
            lambda: (16, wave_us(16), wave_us(17) - wave_us(16)),
        ),
        Claim("A thread can ask for 16 bytes with one", lambda: in_flight.VECTOR),
        Claim("a warp for 512", lambda: in_flight.bytes_in_flight(1, 1)),
        Claim(
            "reads 1 GiB and adds it up, with 1 to 64 warps",
            lambda: (in_flight.READ_BYTES / 2**30, *(warps * n for warps, n in (in_flight.CROWDS[i] for i in (0, -1)))),
        ),
        Claim("law asks for 21 warps", needed),
        Claim("it takes 48", enough),
        Claim("335 ns become 786", lambda: (latency(), crowded_latency())),
        Claim("gets 4% of the bandwidth", lambda: 100 * bandwidth(1) / bandwidth()),
        Claim(
            "has 65,536 registers of 32 bits, and a warp takes 32 times",
            lambda: (H200.registers_per_sm, 32, H200.warp_size),
        ),
        Claim("228 KiB have room", lambda: H200.shared_bytes_per_sm / KIB),
        Claim("only the 4 bytes that", lambda: FLOAT32),
        Claim("move 16 bytes per thread", bytes_per_thread),
        Claim("only 4 of every 32 bytes read are useful", lambda: (FLOAT32, 8 * FLOAT32)),
        Claim("are at 22% and not at 12.5%", lambda: (100 * study.share_by_lines(8, FLOAT32, 32), 100 / 8)),
        Claim(
            "4 + 4 bytes per element at stride 1, 32 + 4 at stride 8",
            lambda: (FLOAT32, FLOAT32, 1, 8 * FLOAT32, FLOAT32, 8),
        ),
        Claim("add takes 12 bytes per element", lambda: 3 * FLOAT32),
        Claim("Two kernels move 24 bytes per element", lambda: 2 * 3 * FLOAT32),
        Claim("One kernel moves 16", lambda: 4 * FLOAT32),
        Claim(
            "uses 4 of each 32 bytes fetched. The other 28",
            lambda: (FLOAT32, SECTOR, SECTOR - FLOAT32),
        ),
        Claim("such tiles copy 0.42 TB/s", lambda: copied("32×1")),
        Claim("tiles of 32×32 3.86 TB/s", lambda: (32, 32, copied("32×32"))),
    ),
    given=(
        Given("to get 95%", "what counts as busy in the prediction"),
        Given("programs with 100 KiB each", "an example"),
        Given("of 32 bytes. Here X", "the size of a sector of NVIDIA's GPUs"),
        Given("lines of 32 and of 64 bytes", "the two sizes that the figure assumes"),
        Given("sectors of 32 bytes travel", "the size of a sector of NVIDIA's GPUs"),
        Given("a float16, 4096 times", "what the cell below does"),
    ),
)
