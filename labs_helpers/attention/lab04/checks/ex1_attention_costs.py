"""Exercise 1 of lab 04: bytes moved and bytes alive, held against what is counted."""

from functools import partial

from labs_helpers.attention.baselines import plain_attention
from labs_helpers.attention.configs import Config
from labs_helpers.attention.kernels import portable
from labs_helpers.attention.lab04 import exercises
from labs_helpers.course.exercise import exercise
from labs_helpers.course.meter import metered
from labs_helpers.course.torch_traffic import TorchTraffic
from labs_helpers.course.verdict import Candidates, Wrong, expect_number, expect_tuple, is_number, numbers
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.peak_memory import peak_memory

# Each tensor is a multiple of 512 bytes, the steps in which a GPU's peak is counted.
B, H, L, D, BLOCK_M = 2, 3, 64, 16, 16
TENSOR, SCORES, ROWS = 4 * B * H * L * D, 4 * B * H * L * L, 4 * B * H * L  # bytes in float32
TILES = L // BLOCK_M
TILED = 2 * TENSOR + TILES * 2 * TENSOR + ROWS
ITEMSIZE = "bytes are elements times itemsize"
ONE_HEAD = "S and P are of one head of one batch"
ONE_HEAD_TILED = "B·H heads have L / BLOCK_M programs each, and B·H·L rows have a log-sum-exp: count all heads once"
RIGHT = {
    "plain_bytes": 4 * TENSOR + 4 * SCORES,
    "plain_extra": 2 * SCORES,
    "tiled_bytes": TILED,
    "tiled_extra": ROWS,
}
CAUSES = {
    "plain_bytes": (
        (ITEMSIZE, TENSOR + SCORES),
        (ONE_HEAD, 4 * TENSOR + 4 * SCORES // (B * H)),
        ("the softmax reads S as well as it writes P", 4 * TENSOR + 3 * SCORES),
        ("the softmax is a kernel of its own: it reads S and writes P", 4 * TENSOR + 2 * SCORES),
        ("S and P are never counted", 4 * TENSOR),
        ("P·V reads P and V; S is read by the softmax alone", 4 * TENSOR + 5 * SCORES),
        ("each kernel's result is written, too: S, P and O", 3 * TENSOR + 2 * SCORES),
        ("the first kernel reads Q and K, the third V: each once, and O is written once", 2 * TENSOR + 4 * SCORES),
        ("the first kernel reads Q and K, the third V: each once, and O is written once", 3 * TENSOR + 4 * SCORES),
        ("the first kernel reads Q and K, the third V: each once, and O is written once", 5 * TENSOR + 4 * SCORES),
        ("the log-sum-exp belongs to the tiled kernel alone", 4 * TENSOR + 4 * SCORES + ROWS),
    ),
    "plain_extra": (
        (ITEMSIZE, 2 * SCORES // 4),
        (ONE_HEAD, 2 * SCORES // (B * H)),
        ("while the softmax runs S and P are both alive", SCORES),
        ("O is not extra", 2 * SCORES + TENSOR),
        ("Q, K, V and O are not extra", 2 * SCORES + 4 * TENSOR),
        ("plain attention keeps no log-sum-exp", 2 * SCORES + ROWS),
        ("S and P are alive, each once", 3 * SCORES),
        ("S and P are alive, each once", 4 * SCORES),
    ),
    "tiled_bytes": (
        (ITEMSIZE, (TILED - ROWS) // 4 + ROWS),
        ("each program reads all of K and V of its head", 4 * TENSOR + ROWS),
        ("a program reads V as well as K", TILED - TILES * TENSOR),
        ("Q is read once: a program keeps its rows", TILED + (TILES - 1) * TENSOR),
        ("a program takes BLOCK_M rows, not one", 2 * TENSOR + L * 2 * TENSOR + ROWS),
        ("the log-sum-exp is written too", TILED - ROWS),
        ("the log-sum-exp is one number a row, not one an element of O", TILED - ROWS + TENSOR),
        ("S and P are not written", TILED + 4 * SCORES),
        ("each program writes its rows of O", TILED - TENSOR),
        ("each program reads its rows of Q", TILED - TENSOR),
        ("a program writes its own rows of O, not all of it", TILED + (TILES - 1) * TENSOR),
        (ONE_HEAD_TILED, 2 * TENSOR + TILES * 2 * TENSOR + ROWS // (B * H)),
        (ONE_HEAD_TILED, (TILED - ROWS) // (B * H) + ROWS),
        (ONE_HEAD_TILED, TILED // (B * H)),
        (ONE_HEAD_TILED, 2 * TENSOR + 2 * TENSOR * TILES // (B * H) + ROWS),
        (ONE_HEAD_TILED, 2 * TENSOR + B * H * 2 * TENSOR * TILES + ROWS),
        (
            "a head has L / BLOCK_M programs, each with one tile of Q and all of K and V",
            2 * TENSOR + 2 * TENSOR * BLOCK_M + ROWS,
        ),
    ),
    "tiled_extra": (
        ("the log-sum-exp is one number a row", TENSOR),
        ("the log-sum-exp stays in memory: the backward pass needs it", 0),
        ("a float32 has four bytes", ROWS // 4),
        ("there is no L×L matrix any more", 2 * SCORES),
        ("the log-sum-exp has a row for each query of every head of every batch", 4 * L),
        ("O is not extra", TENSOR + ROWS),
        ("a tile of S is on the chip, not in memory", ROWS + 4 * BLOCK_M * BLOCK_M),
        ("a tile of S is on the chip, not in memory", ROWS + 4 * BLOCK_M * L),
    ),
}


@exercise("04/1", "bytes", points=5, minutes=10, reference=exercises.attention_costs)
def attention_costs(student):
    answer = dict(zip(CAUSES, expect_tuple("", student(B, H, L, D, 4, BLOCK_M), *CAUSES), strict=True))
    possible = {name: causes(name, answer) for name in CAUSES}
    q, k, v = (numbers(B, H, L, D, seed=seed) for seed in range(3))

    plain = partial(plain_attention, scale=1)
    with TorchTraffic() as traffic:
        plain(q, k, v)
    operations = ", ".join(f"{operation.name} {operation.bytes:,}" for operation in traffic.operations)
    expect_number("", "plain_bytes", answer["plain_bytes"], traffic.bytes, possible["plain_bytes"])
    yield f"plain: {traffic.bytes:,} bytes, as counted in PyTorch: {operations}"
    extra = peak_memory(plain, q, k, v)[1] - TENSOR
    expect_number("", "plain_extra", answer["plain_extra"], extra, possible["plain_extra"])
    yield f"plain: at the peak {extra:,} bytes alive beside Q, K, V and O"

    moved, extra = _tiled(q, k, v)
    expect_number("", "tiled_bytes", answer["tiled_bytes"], moved, possible["tiled_bytes"])
    yield f"tiled: {moved:,} bytes, " + ("as the meter counts" if this_machine().interpreted else "by the formula")
    expect_number("", "tiled_extra", answer["tiled_extra"], extra, possible["tiled_extra"])
    yield f"tiled: at the peak {extra:,} bytes alive beside Q, K, V and O"

    for other in ((1, 1, 16, 128, 2, 16), (4, 16, 4096, 64, 2, 128), (1, 32, 16384, 128, 2, 64)):
        if (got := tuple(student(*other))) != (right := exercises.attention_costs(*other)):
            raise Wrong(
                f"B, H, L, D, itemsize, BLOCK_M = {other}",
                f"returned {got}, expected {right}",
                cause="an itemsize of 2 in one place and 4 in another (the log-sum-exp is float32 whatever Q is), or "
                "two of the sizes swapped.",
            )
    yield "other shapes and item sizes"


def causes(name: str, answer: dict) -> Candidates:
    """Of the mistakes in `name`; of another order alone where the answer's numbers are the right ones."""
    order = f"the order is another: ({', '.join(RIGHT)}) is asked for"
    if not all(map(is_number, answer.values())):
        return CAUSES[name]
    if sorted(answer.values()) == sorted(RIGHT.values()):
        return [(order, answer[name])]
    elsewhere = [right for other, right in RIGHT.items() if other != name and answer[other] != right]
    swapped = [(order, right) for right in elsewhere if RIGHT[name] in answer.values()]
    return [*CAUSES[name], *swapped]


def _tiled(q, k, v) -> tuple[int, int]:
    """(bytes moved, bytes alive beside Q, K, V and O) of the tiled kernel; on a GPU what is moved is the formula's."""
    tiled = partial(portable.forward, causal=False, scale=1.0, config=Config(BLOCK_M, 32))
    _, peak = peak_memory(tiled, q, k, v)
    if not this_machine().interpreted:
        return TILED, peak - TENSOR
    with metered() as meter:
        tiled(q, k, v)
    return meter.bytes_moved, peak - TENSOR
