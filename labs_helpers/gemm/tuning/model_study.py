"""What the time model's choice loses against the best configuration measured, on shapes left out when it was fitted.

python -m labs_helpers.gemm.tuning.model_study             # of the recorded sweeps of the portable kernel
python -m labs_helpers.gemm.tuning.model_study FILE …      # of sweeps of the Hopper kernel
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from labs_helpers.gemm.kernels.hopper import HopperConfig
from labs_helpers.gemm.time_model import Shape, Tiling, fit
from labs_helpers.gemm.tuning import recorded
from labs_helpers.measure import results
from labs_helpers.measure.datasheet import lookup

THREADS, REGISTERS, WARPS = 32, 65_536, 64  # of a warp; and of an SM, compute capability 9.0
SHARED = 233_472  # bytes of an SM, of which each program takes 1,024 more than it asks for
Measured = list[tuple[Any, Tiling, Shape, float]]


def portable(machine: str = "nvidia-h200") -> Measured:
    """(configuration, Tiling, shape, ms) of the recorded sweeps of a machine: all shapes with matrices of rows."""
    import pandas

    tables = [recorded.measured(machine)]
    if "held out" in set(results.load(results.path_for("gemm-tuning", machine))["kind"]):
        tables.append(recorded.held_out(machine))
    frame = pandas.concat(tables)
    frame = frame[(frame["kernel"] == "fused_matmul") & frame["median_ms"].notna()]
    held = _programs_an_sm()
    found = []
    for row in frame.to_dict("records"):
        config = recorded.config_of(row)
        tiling = Tiling(config.BLOCK_M, config.BLOCK_N, config.BLOCK_K, held[config])
        found.append((config, tiling, (int(row["M"]), int(row["N"]), int(row["K"])), row["median_ms"]))
    return found


def _programs_an_sm() -> dict:
    """Configuration → programs that fit an SM of sm_90 at once, by what the compiler says of each."""
    frame = recorded.compiled()
    found = {}
    for row in frame[(frame["target"] == "sm_90") & frame["registers"].notna()].to_dict("records"):
        config = recorded.config_of(row)
        registers = -(-int(row["registers"]) // 8) * 8 * config.num_warps * THREADS
        fits = (SHARED // (int(row["shared"]) + 1024), REGISTERS // registers, WARPS // config.num_warps)
        found[config] = max(1, min(fits))
    return found


def hopper(path: Path, dtype: str = "float16") -> tuple[Measured, int]:
    """The same of a sweep of the Hopper kernel, of which one program fits an SM, and the machine's SMs."""
    frame = results.load(path)
    frame = frame[(frame["kind"] == "hopper") & (frame["dtype"] == dtype) & frame["median_ms"].notna()]
    found = []
    for row in frame.to_dict("records"):
        config = HopperConfig(**{name: int(row[name]) for name in HopperConfig.__dataclass_fields__})
        tiling = Tiling(config.BLOCK_M, config.BLOCK_N, config.BLOCK_K)
        found.append((config, tiling, (int(row["M"]), int(row["N"]), int(row["K"])), row["median_ms"]))
    return found, int(frame["multiprocessors"].iloc[0])


def losses(measured: Measured, multiprocessors: int) -> dict[Shape, tuple[Any, float, float]]:
    """Shape → (what the model takes that was fitted to all others, its time over the best measured, less 1; predicted
    over measured time)."""
    found = {}
    for left in dict.fromkeys(shape for _, _, shape, _ in measured):
        model = fit([row for row in measured if row[2] != left], multiprocessors)
        times = {config: ms for config, _, shape, ms in measured if shape == left and config in model.steps}
        chosen = min(times, key=lambda config: model.predict(config, left))
        best = min(times.values())
        found[left] = chosen, times[chosen] / best - 1, model.predict(chosen, left) / times[chosen]
    return found


def summary(found: dict) -> str:
    """Median, 95th percentile and worst of the losses, in a sentence."""
    import numpy

    lost = [loss for _, loss, _ in found.values()]
    return (
        f"{len(lost)} shapes, each left out in turn: the model's choice loses {numpy.median(lost):.1%} in median, "
        f"{numpy.quantile(lost, 0.95):.1%} in 95 of 100, {max(lost):.1%} at worst"
    )


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", help="sweeps of the Hopper kernel")
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--write", type=Path, help="fit to all shapes of the first file, and write the model there")
    given = parser.parse_args(arguments)
    if given.files:
        cases = {path.name: hopper(path, given.dtype) for path in given.files}
    else:
        machines = {"nvidia-h200": "H200", "nvidia-h100-80gb-hbm3": "H100"}
        cases = {name: (portable(name), lookup(chip).multiprocessors) for name, chip in machines.items()}
    for name, (measured, multiprocessors) in cases.items():
        found = losses(measured, multiprocessors)
        print(f"{name}: {summary(found)}")
        for shape, (chosen, loss, ratio) in sorted(found.items(), key=lambda item: -item[1][1])[:10]:
            print(f"  {'×'.join(map(str, shape))}: {loss:6.1%} with {chosen}, predicted {ratio:.2f} of its time")
    if given.write:
        measured, multiprocessors = next(iter(cases.values()))
        fit(measured, multiprocessors).write(given.write, dtype=given.dtype, measured=given.files[0].name)


if __name__ == "__main__":
    main()
