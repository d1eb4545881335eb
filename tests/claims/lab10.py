"""Compute the numbers in lab 10's text from the course's own functions."""

from labs_helpers.pipeline.formulas import bubble_share
from labs_helpers.pipeline.lab10 import launches
from labs_helpers.pipeline.schedules import interleaved, one_f_one_b
from labs_helpers.pipeline.simulate import Times, simulate
from labs_helpers.pipeline.validate import peak_stashes
from labs_helpers.planner import Cluster, Model, Run, find_layouts
from labs_helpers.planner.published import predictions
from tests.claims.table import Claim, Given, Table

RANKS, MICRO_BATCHES = 4, 8
SCHEDULES = interleaved(RANKS, MICRO_BATCHES, 2), one_f_one_b(RANKS, MICRO_BATCHES)
TRANSFERS = (0.0, 0.4, 0.8, 1.2, 1.6, 3.2)  # of the notebook's table


def cuts() -> list[float]:
    return [schedule.stages - 1 for schedule in SCHEDULES]


def stashes() -> list[float]:
    return [peak_stashes(schedule)[0] for schedule in SCHEDULES]


def passes_waited() -> float:
    """Return for how many passes through half a stage, forward and backward, a rank of the first schedule waits."""
    step = simulate(SCHEDULES[0], Times(0.5, 0.5, 0.5))
    return (step.seconds - step.busy[0]) / 1.5


def gaining_and_losing() -> list[float]:
    """Return the longest message with which interleaving is faster than 1F1B, and the shortest with which it is not."""
    halved, whole = SCHEDULES

    def loses(transfer: float) -> bool:
        times = Times(0.5, 0.5, 0.5, transfer=transfer), Times(transfer=transfer)
        return simulate(halved, times[0]).seconds > simulate(whole, times[1]).seconds

    return [max(t for t in TRANSFERS if not loses(t)), next(filter(loses, TRANSFERS))]


def shorter() -> float:
    """Return by how many percent the planner's first layout is faster than the one of section 8."""
    found = find_layouts(Run(Model.of(175e9, multiple=8), batch=1536, length=2048), Cluster.of("H100", 1024))
    assert found.best is not None
    return 100 * (1 - found.best.time.step / found.at(dp=16, tp=8, pp=8).time.step)


def errors() -> list[float]:
    ratios = predictions()["ratio"]
    return [100 * (1 - ratios.min()), 100 * (ratios.max() - 1)]


def predicted_ms(host: int = 0) -> list[float]:
    found = launches.steps(host=host)
    return [1e3 * found["1F1B", graphs].seconds for graphs in (True, False)]


def split_shorter(graphs: bool, host: int) -> float:
    """Return by how many percent ZB-H1's predicted step is shorter than 1F1B's, with stages of equal cost."""
    found = launches.steps("equal cost", host)
    return 100 * (1 - found["ZB-H1", graphs].seconds / found["1F1B", graphs].seconds)


def tokens() -> list[float]:
    record = launches.recorded_passes()[True]
    return [record["batch"], record["length"]]


def micro_batches() -> int:
    return len({bar.action.micro for bar in launches.steps()["1F1B", True].bars})


def two_gpus(*names: str) -> list[float]:
    """Return the recorded ms per step of these candidates on two GPUs."""
    found = launches.recorded_race()
    return [found[name][0] for name in names]


def misses(micro_batches: int, graphs: bool) -> list[float]:
    """Return by how many percent the predictions are too long, for our schedules on two GPUs."""
    found = launches.recorded_race(micro_batches)
    return [100 * (p / ms - 1) for name, (ms, p) in found.items() if p > 0 and name.endswith("graphs") == graphs]


def share_of_pytorch() -> float:
    found = launches.recorded_race()
    theirs = min(ms for name, (ms, _) in found.items() if name.startswith("PyTorch"))
    return 100 * found["ours, 1F1B, CUDA graphs"][0] / theirs


def from_python() -> list[float]:
    """Return the shortest and longest step of the schedules that Python launches, without PyTorch's zero bubble."""
    found = launches.recorded_race()
    ms = [t for name, (t, _) in found.items() if not name.endswith(("graphs", "zero bubble"))]
    return [min(ms), max(ms)]


def slower_zero_bubble() -> float:
    split, whole = two_gpus("PyTorch, zero bubble", "PyTorch, 1F1B")
    return split / whole


TABLE = Table(
    claims=(
        Claim("27% of the step", lambda: 100 * bubble_share(RANKS, MICRO_BATCHES)),
        Claim("waits for 3 passes through", passes_waited),
        Claim("crosses 7 cuts instead of 3", cuts),
        Claim("11 stashes instead of 4", stashes),
        Claim("needs 5.5 / 4 of the memory", lambda: [stashes()[0] / 2, stashes()[1]]),
        Claim("gains at 1.2 and loses at 1.6", gaining_and_losing),
        Claim("their step to be 8% shorter", shorter),
        Claim("The errors range from −4% to +13%", errors),
        Claim("difference of 8% is a hint", shorter),
        Claim("1F1B's step takes 85 ms instead of 130", predicted_ms),
        Claim("it takes 85 ms instead of 150", lambda: predicted_ms(1)),
        Claim("micro-batches of 2 × 1024 tokens", tokens),
        Claim("two such GPUs and 4 micro-batches", micro_batches),
        Claim("step is 1.4% longer than 1F1B's on the first host", lambda: -split_shorter(False, 0)),
        Claim("and 8% shorter on the second", lambda: split_shorter(False, 1)),
        Claim("the simulator predicts, within 1%", lambda: max(1.0, *map(abs, misses(4, True)))),
        Claim("1F1B takes 59% of the time", share_of_pytorch),
        Claim("take between 144 and 159 ms", from_python),
        Claim("up to 27% too long here", lambda: max(misses(4, False))),
        Claim("up to 17% too short", lambda: -min(misses(8, False))),
        Claim("takes 1.8 times as long as its 1F1B", slower_zero_bubble),
        Claim("graphs it is 6% shorter on both", lambda: max(split_shorter(True, host) for host in (0, 1))),
    ),
    given=(Given("waits* for 15 ms per forward pass and 30 ms", "the stages of the measurement wait that long"),),
)
