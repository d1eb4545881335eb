"""Compare the time model's choice with the best configuration measured, at shapes left out of the fit.

python -m labs_helpers.gemm.tuning.model_study             # for the recorded sweeps of the portable kernel
python -m labs_helpers.gemm.tuning.model_study FILE        # for a sweep of the Hopper and split-K kernels
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from labs_helpers.gemm.kernels.hopper import FEW_ROWS, HopperConfig
from labs_helpers.gemm.kernels.split_k import MOST_ROWS, SplitConfig
from labs_helpers.gemm.time_model import Measured, Shape, Tiling, fit
from labs_helpers.gemm.tuning import recorded
from labs_helpers.launch import program
from labs_helpers.measure import results
from labs_helpers.measure.datasheet import lookup
from labs_helpers.measure.records import find

THREADS, REGISTERS, WARPS = 32, 65_536, 64  # per warp; and per SM, compute capability 9.0
# Name of a model → name of its kernel in a sweep. Different effects dominate with few rows, so the Hopper kernel has
# one model for those and one for the rest. The split-K kernel is only for few rows.
KERNELS = {"hopper": "hopper", "hopper_few_rows": "hopper", "split_k": "split_k"}
SHARED = 233_472  # bytes per SM; each program uses 1,024 more than it requests


def portable(machine: str = "nvidia-h200") -> list[Measured]:
    """Return the times of the portable kernel in a machine's recorded sweeps, for row-major matrices only."""
    import pandas

    tables = [recorded.measured(machine)]
    if "held out" in set(results.load(find("gemm-tuning", machine))["kind"]):
        tables.append(recorded.held_out(machine))
    frame = pandas.concat(tables)
    frame = frame[(frame["kernel"] == "fused_matmul") & frame["median_ms"].notna()]
    held = _programs_an_sm()
    found = []
    for row in frame.to_dict("records"):
        config = recorded.config_of(row)
        tiling = Tiling(config.BLOCK_M, config.BLOCK_N, config.BLOCK_K, held[config])
        found.append(Measured(config, tiling, _shape(row), row["median_ms"]))
    return found


def _shape(row: dict) -> Shape:
    return int(row["M"]), int(row["N"]), int(row["K"])


def _programs_an_sm() -> dict:
    """Return configuration → number of programs that fit on an SM of sm_90, by the compiler's report."""
    frame = recorded.compiled()
    found = {}
    for row in frame[(frame["target"] == "sm_90") & frame["registers"].notna()].to_dict("records"):
        config = recorded.config_of(row)
        registers = -(-int(row["registers"]) // 8) * 8 * config.num_warps * THREADS
        fits = (SHARED // (int(row["shared"]) + 1024), REGISTERS // registers, WARPS // config.num_warps)
        found[config] = max(1, min(fits))
    return found


def swept(frame: Any, kernel: str, dtype: str = "float16") -> tuple[list[Measured], int]:
    """Return the times of one kernel in a loaded sweep, and the machine's number of SMs. kernel: one of KERNELS."""
    few, timed = frame["M"] <= FEW_ROWS, KERNELS[kernel]
    frame = frame[(frame["kind"] == timed) & (frame["dtype"] == dtype) & frame["median_ms"].notna()]
    frame = frame[few[frame.index] == (kernel != "hopper")]
    make: Any = HopperConfig if timed == "hopper" else SplitConfig
    found = []
    for row in frame.fillna({"SPLITS": 1}).to_dict("records"):
        config = make(**{name: int(row[name]) for name in make.__dataclass_fields__})
        whole = replace(config, SPLITS=1)
        found.append(Measured(whole, whole.tiling, _shape(row), row["median_ms"], config.SPLITS))
    return found, int(frame["multiprocessors"].iloc[0])


def copied(frame: Any, dtype: str = "float16") -> list[tuple[int, float]]:
    """Return (bytes read and written, ms) of the copies in a loaded sweep."""
    frame = frame[(frame["kind"] == "copy") & (frame["dtype"] == dtype)]
    return list(zip(frame["bytes"].astype(int), frame["median_ms"], strict=True))


def losses(measured: list[Measured], multiprocessors: int, beside: list[Measured] = []) -> dict[Shape, Any]:  # noqa: B006
    """Return shape → (the chosen configuration, its time over the best measured minus 1, predicted over measured time).

    For each shape, the model is fitted to all others. beside: measurements of another kernel with its own model; the
    better prediction of the two decides, as in the plan.
    """
    found = {}
    for left in dict.fromkeys(row.shape for row in measured):
        options = []  # (predicted, measured, what)
        for rows in filter(None, (measured, beside)):
            model = fit([row for row in rows if row.shape != left], multiprocessors)
            here = [row for row in rows if row.shape == left and row.config in model.steps]
            options += [(model.predict(row.config, left, row.splits), row.ms, row) for row in here]
        predicted, ms, row = min(options, key=lambda option: option[0])
        what = row.config if row.splits == 1 else f"{row.config} in {row.splits} parts"
        found[left] = what, ms / min(option[1] for option in options) - 1, predicted / ms
    return found


def summary(found: dict) -> str:
    """Write the median, 95th percentile and maximum of the losses in a sentence."""
    import numpy

    lost = [loss for _, loss, _ in found.values()]
    return (
        f"{len(lost)} shapes, each left out in turn: the model's choice loses {numpy.median(lost):.1%} in median, "
        f"{numpy.quantile(lost, 0.95):.1%} in 95 of 100, {max(lost):.1%} at worst"
    )


def main(arguments=None) -> None:
    parser = program.Parser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="a sweep of the Hopper and the split-K kernel")
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--write", type=Path, help="fit the models to all shapes, and write them to this folder")
    given = parser.parse_args(arguments)
    cases: dict[str, tuple] = {}
    if given.file:
        frame = results.load(given.file)
        each = {kernel: swept(frame, kernel, given.dtype) for kernel in KERNELS}
        beside = [row for row in each["split_k"][0] if row.shape[0] <= MOST_ROWS]
        cases = dict(each) | {"few rows, the better prediction": (*each["hopper_few_rows"], beside)}
    else:
        machines = {"nvidia-h200": "H200", "nvidia-h100-80gb-hbm3": "H100"}
        cases = {name: (portable(name), lookup(chip).multiprocessors) for name, chip in machines.items()}
    for name, case in cases.items():
        found = losses(*case)
        print(f"{name}: {summary(found)}")
        for shape, (chosen, loss, ratio) in sorted(found.items(), key=lambda item: -item[1][1])[:10]:
            print(f"  {'×'.join(map(str, shape))}: {loss:6.1%} with {chosen}, predicted {ratio:.2f} of its time")
    if given.write:
        machine = given.file.name.split(".")[1]
        for kernel, (measured, multiprocessors) in each.items():
            path = given.write / f"model-{kernel}-{given.dtype}.{machine}.json"
            copies = copied(frame, given.dtype) if kernel == "hopper" else ()
            fit(measured, multiprocessors, copies).write(path, dtype=given.dtype, measured=given.file.name)


if __name__ == "__main__":
    program.run(main)
