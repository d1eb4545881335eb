"""Exercise 1 of lab 04: compare the bytes moved and the extra bytes with counted ones."""

from functools import partial
from itertools import product

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

# A GPU counts its peak in steps of 512 bytes, and each tensor is a multiple of that. S has 3/8 of Q's size, so that a
# small number of one is never as large as a small number of the other.
B, H, L, D, BLOCK_M = 3, 8, 48, 128, 16
TENSOR, SCORES, ROWS = 4 * B * H * L * D, 4 * B * H * L * L, 4 * B * H * L  # bytes in float32
TILES = L // BLOCK_M
LSE = "the log-sum-exp is one float32 per row of every head and batch, and it stays in memory"
# For each result: how many tensors of Q's size, matrices of S's size and log-sum-exps it counts, and why.
COUNTS = {
    "plain_bytes": (
        (4, "Q, K and V are read once each, and O is written once"),
        (4, "S is written and read, and P is written and read"),
        (0, "only the tiled kernel writes a log-sum-exp"),
    ),
    "plain_extra": (
        (0, "Q, K, V and O are not extra"),
        (2, "S and P are both alive while the softmax runs, each once"),
        (0, "plain attention keeps no log-sum-exp"),
    ),
    "tiled_bytes": (
        (
            2 + 2 * TILES,
            f"Q is read and O written once; each of a head's L / BLOCK_M = {TILES} programs reads K and V",
        ),
        (0, "S and P stay on the chip"),
        (1, LSE),
    ),
    "tiled_extra": (
        (0, "O is not extra"),
        (0, "there is no L×L matrix; tiles of S stay on the chip"),
        (1, LSE),
    ),
}
SIZES = (TENSOR, SCORES, ROWS)
UNITS = ("× Q's size (B·H·L·D)", "× S's size (B·H·L·L)", "× the log-sum-exp (B·H·L float32)")
RIGHT = {name: sum(n * size for (n, _), size in zip(counts, SIZES, strict=True)) for name, counts in COUNTS.items()}


@exercise("04/1", "bytes", points=5, minutes=10, reference=exercises.attention_costs)
def attention_costs(student):
    answer = dict(zip(RIGHT, expect_tuple("", student(B, H, L, D, 4, BLOCK_M), *RIGHT), strict=True))
    possible = {name: causes(name, answer) for name in RIGHT}
    q, k, v = (numbers(B, H, L, D, seed=seed) for seed in range(3))

    plain = partial(plain_attention, scale=1)
    with TorchTraffic() as traffic:
        plain(q, k, v)
    operations = ", ".join(f"{operation.name} {operation.bytes:,}" for operation in traffic.operations)
    expect_number("", "plain_bytes", answer["plain_bytes"], traffic.bytes, possible["plain_bytes"])
    yield f"plain: {traffic.bytes:,} bytes moved, counted in PyTorch: {operations}"
    extra = peak_memory(plain, q, k, v)[1] - TENSOR
    expect_number("", "plain_extra", answer["plain_extra"], extra, possible["plain_extra"])
    yield f"plain: {extra:,} extra bytes at the peak"

    moved, extra = _tiled(q, k, v)
    expect_number("", "tiled_bytes", answer["tiled_bytes"], moved, possible["tiled_bytes"])
    yield f"tiled: {moved:,} bytes moved, " + (
        "counted by the meter" if this_machine().interpreted else "by the formula"
    )
    expect_number("", "tiled_extra", answer["tiled_extra"], extra, possible["tiled_extra"])
    yield f"tiled: {extra:,} extra bytes at the peak"

    for other in ((1, 1, 16, 128, 2, 16), (4, 16, 4096, 64, 2, 128), (1, 32, 16384, 128, 2, 64)):
        if (got := tuple(student(*other))) != (right := exercises.attention_costs(*other)):
            raise Wrong(
                f"B, H, L, D, itemsize, BLOCK_M = {other}",
                f"returned {got}, expected {right}",
                cause="some bytes are counted with the wrong itemsize (the log-sum-exp is float32 whatever Q is), or "
                "two of the sizes are swapped.",
            )
    yield "other shapes and item sizes"


def causes(name: str, answer: dict) -> Candidates:
    """Yield the mistakes that explain `name`; only a wrong order if the answer's numbers are otherwise right."""
    order = f"the order is wrong; return ({', '.join(RIGHT)})"
    if not all(map(is_number, answer.values())):
        return ()
    elsewhere = [right for other, right in RIGHT.items() if other != name and answer[other] != right]
    if sorted(answer.values()) == sorted(RIGHT.values()):
        return [(order, answer[name])]
    swapped = [(order, right) for right in elsewhere if RIGHT[name] in answer.values()]
    if any(answer[name] == right for _, right in swapped):
        return swapped
    return [(said, answer[name]) for said in _counted(name, answer[name])]


def _counted(name: str, number: float) -> list[str]:
    """Explain `number` by the counts that differ least from COUNTS: one explanation, two close ones, or none."""
    heads = B * H
    factors = {"": 1, "bytes are elements times itemsize": 4, "bits are counted, not bytes": 1 / 8}
    factors |= {f"count all heads of all batches, B·H·L; {x} is left out": n for x, n in (("H", H), ("B", B))}
    factors |= {"count all heads of all batches, B·H·L; one head is counted": heads}
    matrices = (*range(7), 4 / heads) if name.startswith("plain") else (0, 2, 4)
    counts = ((*range(40), 2 + 2 * L, 2 + 2 * TILES * heads), matrices, (0, 1, 2, 1 / 4, 1 / heads))
    found = []
    for (text, factor), some in product(factors.items(), product(*counts)):
        if abs(sum(n * size for n, size in zip(some, SIZES, strict=True)) - number * factor) < 1e-3:
            pairs = zip(some, UNITS, COUNTS[name], strict=True)
            wrong = [(n, unit, right, why) for n, unit, (right, why) in pairs if n != right]
            said = [f"you count {n:.3g} {unit}, not {right}: {why}" for n, unit, right, why in wrong]
            far = sum(1 + abs(n - right) / 10 for n, _, right, _ in wrong)
            found.append((far + 1.2 * bool(text), "; ".join(filter(None, (text, *said)))))
    return [said for far, said in sorted(found)[:2] if far < min(found)[0] + 0.2]


def _tiled(q, k, v) -> tuple[int, int]:
    """Return (bytes moved, extra bytes) of the tiled kernel; on a GPU, bytes moved come from the formula."""
    tiled = partial(portable.forward, causal=False, scale=1.0, config=Config(BLOCK_M, 64))
    _, peak = peak_memory(tiled, q, k, v)
    if not this_machine().interpreted:
        return RIGHT["tiled_bytes"], peak - TENSOR
    with metered() as meter:
        tiled(q, k, v)
    return meter.bytes_moved, peak - TENSOR
