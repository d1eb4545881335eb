"""Take lab 00's measurements: five operations on this machine's roofline, and the cost of a stride.

    python -m labs_helpers.first_kernels.lab00.study          # this machine
    python -m labs_helpers.first_kernels.lab00.study --kinds waves

Both use PyTorch's operations, which run at full speed on a CPU too. On a GPU, kernels also measure the latency of a
load, the bytes in flight, the cost of one more program, and tiles of a transposed copy; this takes about 30 s.
"""

from __future__ import annotations

from functools import partial

import torch

from labs_helpers.first_kernels.lab00.exercises.ex4_five_operations import five_operations
from labs_helpers.launch import program
from labs_helpers.measure import results
from labs_helpers.measure.machine import this_machine
from labs_helpers.measure.records import yours
from labs_helpers.measure.roofs import Roofs, measure_roofs
from labs_helpers.measure.study import Study
from labs_helpers.measure.timing import measure_rounds

STUDY = Study("first_kernels", "python -m labs_helpers.first_kernels.lab00.study")
KINDS = ("operation", "stride", "latency", "in flight", "waves", "transpose")
STRIDES = (1, 2, 4, 8, 16, 32)
ROUNDS = 3


def label(cores: int | None = None) -> str:
    """Return the label of this machine's measurements; on a CPU it names PyTorch and the number of cores."""
    here = this_machine()
    return here.name if here.device == "cuda" else f"{cores or here.cores}-core CPU, PyTorch"


def sizes() -> dict[str, int]:
    """Return n for each of the five operations: matrices larger than the caches, products small enough for a CPU."""
    on_gpu = this_machine().device == "cuda"
    n = dict.fromkeys(("X + Y", "row sums of X", "X · v", "X · V", "X · Y"), 8192)
    return n if on_gpu else {**n, "X · Y": 1024 if this_machine().cores <= 4 else 2048}


def measure_operations(roofs: Roofs, count=five_operations) -> list[dict]:
    """Return one record per operation, in this machine's dtype: FLOPs, bytes, times in ms, and the roofs.

    count: returns FLOPs, bytes and bound, like exercise 4. Results go to preallocated tensors, because for a new one
    the CPU must first get pages from the system.
    """
    here, n = this_machine(), sizes()
    timings = measure_rounds(_operations(n, here.device, here.dtype), rounds=ROUNDS, warmup_ms=10)
    records = []
    for name, timing in timings.items():
        flops, moved, bound = count(n[name], here.dtype.itemsize, roofs.flops, roofs.bandwidth)[name]
        records.append(
            {
                "study": STUDY.name,
                "kind": "operation",
                "name": name,
                "n": n[name],
                "dtype": str(here.dtype).removeprefix("torch."),
                "flops": flops,
                "bytes": moved,
                "bound": bound,
                **timing.record(),
                "roof_bandwidth": roofs.bandwidth,
                "roof_flops": roofs.flops,
            }
        )
    return records


def _operations(n: dict[str, int], device: str, dtype) -> dict:
    generator = torch.Generator(device).manual_seed(0)

    def numbers(*shape):
        return torch.randn(*shape, generator=generator, device=device, dtype=dtype)

    large = n["X + Y"]
    X, Y, out = numbers(large, large), numbers(large, large), torch.empty(large, large, device=device, dtype=dtype)
    v, V = numbers(large), numbers(large, 32)
    one, many = torch.empty_like(v), torch.empty_like(V)
    A, B = (m[: n["X · Y"], : n["X · Y"]].contiguous() for m in (X, Y))
    product = torch.empty_like(A)
    return {
        "X + Y": lambda: torch.add(X, Y, out=out),
        "row sums of X": lambda: torch.sum(X, 1, out=one),
        "X · v": lambda: torch.mv(X, v, out=one),
        "X · V": lambda: torch.mm(X, V, out=many),
        "X · Y": lambda: torch.mm(A, B, out=product),
    }


def measure_strides(strides=STRIDES, count: int = 0) -> list[dict]:
    """Return one record per stride: the time to gather every `stride`-th float32 of a buffer of `count`.

    count: by default too many for any cache. On a CPU only one core copies: the study asks what a core fetches, and
    several cores would also wait for each other.
    """
    here = this_machine()
    count = count or (2**29 if here.device == "cuda" else 2**25)
    buffer, out = torch.ones(count, device=here.device), torch.empty(count, device=here.device)
    copies = {stride: partial(out[: count // stride].copy_, buffer[::stride]) for stride in strides}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        timings = measure_rounds(copies, rounds=ROUNDS, warmup_ms=10)
    finally:
        torch.set_num_threads(threads)
    return [
        {
            "study": STUDY.name,
            "kind": "stride",
            "name": f"stride {stride}",
            "stride": stride,
            "elements": count // stride,
            "itemsize": 4,
            **timing.record(),
        }
        for stride, timing in timings.items()
    ]


def useful_shares(records) -> dict[int, float]:
    """Return stride → elements per second, in percent of the first record's (stride 1)."""
    rates = {int(r["stride"]): r["elements"] / r["median_ms"] for r in records}
    return {stride: 100 * rate / next(iter(rates.values())) for stride, rate in rates.items()}


def share_by_lines(stride: int, itemsize: int, line: int) -> float:
    """Predict the useful bandwidth of a strided copy, relative to stride 1, if only the fetched lines cost time.

    itemsize and line: in bytes. Stride 1 reads and writes `itemsize` bytes per element; a larger stride reads
    stride · itemsize, at most one line.
    """
    return 2 * itemsize / (min(stride * itemsize, line) + itemsize)


def measure_kind(kind: str) -> list[dict]:
    """Measure one of KINDS and return its records. All but 'operation' and 'stride' need a GPU and take 1 to 10 s."""
    from labs_helpers.first_kernels.lab00.in_flight import measure_in_flight
    from labs_helpers.first_kernels.lab00.latency import measure_latencies
    from labs_helpers.first_kernels.lab00.transposes import measure_transposes
    from labs_helpers.first_kernels.lab00.wave_times import measure_waves

    def multiprocessors() -> int:
        return torch.cuda.get_device_properties(0).multi_processor_count

    measures = (
        lambda: measure_operations(measure_roofs()),
        measure_strides,
        measure_latencies,
        lambda: measure_in_flight(multiprocessors()),
        lambda: measure_waves(multiprocessors()),
        measure_transposes,
    )
    return [{"study": STUDY.name} | record for record in dict(zip(KINDS, measures, strict=True))[kind]()]


def recorded(kind: str, machine: str = "nvidia-h200") -> dict[str, list[dict]]:
    """Return label → the records of one of KINDS: the machine's last recorded run that contains any, then the last run
    on each machine that the reader measured.

    If the recorded measurements are missing (only the package was installed), print this and return {}.
    """
    path = results.path_for(STUDY.name, machine)
    if not path.exists():
        print(f"{path.name} is missing, so the figure shows only this machine")
        return {}
    shipped = _last_run(results.load(path), kind)
    runs = {f"{shipped['on.machine'].iloc[0]}, recorded": shipped} if len(shipped) else {}
    for rows in yours(STUDY.name).values():
        if not {"kind", "on.time"} - set(rows) and len(own := _last_run(rows, kind)) and not set(shipped) - set(own):
            runs[own["on.machine"].iloc[0]] = own
    return {machine: rows.to_dict("records") for machine, rows in runs.items()}


def _last_run(rows, kind: str):
    """Return the records of one of KINDS from the last run that contains any, with the columns that they use."""
    rows = rows[rows["kind"] == kind]
    return rows[rows["on.time"] == rows["on.time"].max()].dropna(axis="columns", how="all")


def on_gpu(kind: str) -> tuple[str, list[dict]]:
    """Return (machine, records of one of KINDS), from an NVIDIA GPU here, else recorded; ('', []) without any."""
    here = this_machine()
    if here.capability and not here.interpreted:
        return here.name, measure_kind(kind)
    for machine, records in recorded(kind).items():
        return machine.removesuffix(", recorded"), records
    return "", []


def table(rows):
    """Return the median of each record, one row per record."""
    return rows[["name", "median_ms"]].rename(columns={"name": "measured", "median_ms": "ms"})


def main(arguments=None) -> None:
    parser = STUDY.parser(__doc__)
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, help="what to measure (default: everything that runs here)"
    )
    given = parser.parse_args(arguments)
    here = KINDS if not this_machine().interpreted else ("operation", "stride")
    records = []
    for kind in given.kinds or here:
        if kind not in here:
            parser.error(f"{kind} needs a GPU")
        print(f"{kind} …", flush=True)
        records += measure_kind(kind)
    STUDY.keep(records, given.out, machine=label(), table=table)


if __name__ == "__main__":
    program.run(main)
