"""Compute the numbers in lab 08's text from the records."""

from torch.distributed.constants import default_pg_timeout

from labs_helpers.data_parallel.charts.recorded import machines
from labs_helpers.data_parallel.study.records import load, select
from labs_helpers.data_parallel.study.tables import fits, gradient_bytes, scaling_table, threshold_table
from labs_helpers.measure.datasheet import DATASHEET
from labs_helpers.planner.step_time import amdahl
from tests.claims.table import Claim, Given, Table

CPU, GPU = "4-core-cpu", "nvidia-h200"
SLOW, FAST = "0.985 Gb/s", "31.2 Gb/s"
KB = 1000


def rates() -> dict[str, float]:
    """Gb/s of the two pretended links, as their names say them."""
    return {name: float(name.split()[0]) for name in fits(machines("all_reduce")[CPU])["link"] if "Gb/s" in name}


def slow_sizes() -> list[float]:
    """The smallest and the largest all-reduce below 1 MB, in kB, that takes longer than one of 1 MB, over it."""
    calls = select(load(CPU), "all_reduce", link=FAST, ranks=2)
    whole = calls.loc[calls["bytes"] >= 1e6, "call_ms"].iloc[0]
    slower = calls.loc[(calls["bytes"] < 1e6) & (calls["call_ms"] > whole), "bytes"]
    return [slower.min() / KB, slower.max() / KB]


def hidden() -> list[float]:
    table = threshold_table(load(CPU))
    return [100 * one for one in table.loc[table["link"] == SLOW, "hidden"]]


def efficiency() -> dict[str, list[float]]:
    """Of each mode with the most GPUs: efficiency, and without communication, in %."""
    table = scaling_table(load(GPU))
    last = table[table["ranks"] == table["ranks"].max()].set_index("mode")
    return {mode: [100 * row["efficiency"], 100 * row["alone"]] for mode, row in last.iterrows()}


def data_parallel_over_processes() -> dict[int, float]:
    steps = select(load(GPU), "data_parallel").pivot_table("step_ms", "ranks", "way")
    return dict(steps["DataParallel"] / steps["DistributedDataParallel"])


def above_the_mean(hook: str, optimizer: str = "AdamW") -> list[float]:
    """By how many percent a hook's loss at the end is above the mean's: with error feedback, and without."""
    found = select(load(CPU), "loss_curve", optimizer=optimizer)
    loss = found.set_index(["hook", "error_feedback"])["validation"]
    return [100 * (loss[hook, feedback] / loss["mean", False] - 1) for feedback in (True, False)]


def faster_than_the_mean() -> float:
    """The link's rate, if no compression is faster than the mean over it."""
    steps = select(load(CPU), "compression", link=FAST).set_index("hook")["step_ms"]
    return rates()[FAST] if (steps.drop("mean") > steps["mean"]).all() else 0.0


def tiny_gradients(limit: int) -> int:
    """The bytes of the first bucket of lab 01's tiny model."""
    sizes = gradient_bytes(select(load(CPU), "loss_curve").iloc[0])
    return sizes[0] if sum(sizes[:2]) > limit else sum(sizes[:2])


TABLE = Table(
    claims=(
        Claim("which carries 31.2 Gb/s", lambda: rates()[FAST]),
        Claim("a cable limited to 1 Gb/s", lambda: rates()[SLOW], within=0.02),
        Claim("two nodes, at 1 Gb/s", lambda: rates()[SLOW], within=0.02),
        Claim("Over the CPUs' 1 Gb/s cable", lambda: rates()[SLOW], within=0.02),
        Claim("Over 31.2 Gb/s the naive way", lambda: rates()[FAST]),
        Claim(
            "all-reduce of 16 to 256 kB takes longer there than one of 1 MB", lambda: [*slow_sizes(), 1], within=0.06
        ),
        Claim("holds 512 bytes, too few", lambda: tiny_gradients(64 * 1024)),
        Claim(
            "an s of at least 0.23, and a third if 30%",
            lambda: [1 - 1 / 1.3, 100 * (1 - (1 - 1 / 1.3) * 3)],
            within=0.03,
        ),
        Claim("a peak of 989 TFLOP/s", lambda: 1e-12 * DATASHEET["H200"].fp16_flops),
        Claim("a bus bandwidth of 349 GB/s", lambda: fits(load(GPU))["busbw_GBps"].max()),
        Claim("doubles from 39% to 81%", hidden),
        Claim("four H200s keep 91% in weak", lambda: efficiency()["weak"][0]),
        Claim("they keep 76%, and would keep 81%", lambda: efficiency()["strong"]),
        Claim("takes 1.9 times as long", lambda: data_parallel_over_processes()[2]),
        Claim("and 3.9 times as long on four", lambda: data_parallel_over_processes()[4]),
        Claim("Over 31.2 Gb/s no compression", faster_than_the_mean),
        Claim(
            "10% of the entries, the loss is 17% higher with error feedback (explained below) and 19% higher without",
            lambda: [10, *above_the_mean("top-k 10%")],
        ),
        Claim("sends 1%, the loss is 43% and 32% higher", lambda: [1, *above_the_mean("top-k 1%")]),
        Claim("PowerSGD's loss is 21% higher with feedback and 37% without", lambda: above_the_mean("PowerSGD")),
        Claim("10% with feedback is within 1% of", lambda: [10, max(1, above_the_mean("top-k 10%", "SGD")[0])]),
        Claim("training 1.3 times as fast", lambda: amdahl(1 - 1 / 1.3)),
        Claim("(gloo 30 minutes", lambda: default_pg_timeout.total_seconds() / 60),
    ),
    given=(
        Given("About 240 minutes", "the lab's own time"),
        Given("all-reduce of 1 MiB (2²⁰ bytes)", "the size that the question asks for"),
        Given("has room for 100 bytes", "an example in a hint"),
        Given("rest of its 64 KiB", "an argument of the cell above"),
        Given("take 0.9 times as long", "the cell below it chooses the link so"),
        Given("the middle 60%", "what every record's spread is"),
        Given("same time for 2 ms", "an example in a hint"),
        Given("calls of up to 100 MiB", "an argument of the candidate"),
        Given("costs 4 FLOPs per parameter", "two products per weight in the backward pass, of 2 FLOPs each"),
        Given("at an MFU of 40%", "the question's assumption"),
        Given("400 Gb/s per GPU", "a common network card's rate"),
        Given("first bucket at 1 MiB and every other one at 25 MiB", "PyTorch's defaults"),
    ),
)
