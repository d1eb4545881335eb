"""Compare attention with PyTorch's implementations: time, forward and backward, memory and error by length.

    python -m labs_helpers.attention.study                       # this GPU
    python -m labs_helpers.attention.study --quick               # 4k and 16k in float16: a table, nothing recorded
    python -m labs_helpers.attention.study --random 100 --seed 7   # random shapes; resumes where it stopped

The forward pass is a call whose inputs require gradients, so every candidate saves what its backward pass needs. The
backward pass is `torch.autograd.grad` of its result, repeated on the same graph. Before a candidate is timed, its first
and last head are compared with a float64 reference. The study needs a GPU. Only --random also runs without one: it then
compares ours and times only PyTorch, because the interpreter's time says nothing about a kernel.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch

from labs_helpers.attention.baselines import (
    CUDNN,
    EFFICIENT,
    FLASH,
    FLEX,
    NAMES,
    OURS,
    PLAIN,
    PORTABLE,
    TOKENS,
    WIDTH,
    about,
    candidate,
    compile_beforehand,
    gradients,
    operands,
)
from labs_helpers.attention.error_study import measure_errors, reference, relative_error
from labs_helpers.attention.plain_steps import measure_plain_steps
from labs_helpers.launch import program
from labs_helpers.measure.machine import prepare_triton, this_machine
from labs_helpers.measure.peak_memory import peak_memory
from labs_helpers.measure.records import frame
from labs_helpers.measure.study import Study, as_text
from labs_helpers.measure.timing import MeasurementError, measure_rounds

LENGTHS = (1024, 2048, 4096, 8192, 16384)
QUICK_LENGTHS = (4096, 16384)
HEAD_DIMS = (64, 128)
DIRECTIONS = ("forward", "backward")
GRAPH_LENGTHS = (1024, 2048)  # where the time of a launch could matter
BOUNDS = {"float16": 5e-3, "bfloat16": 4e-2, "float32": 1e-5}  # ‖error‖ / ‖reference‖ from rounding P and dS


STUDY = Study("attention", "python -m labs_helpers.attention.study")
load = STUDY.load


def flops(direction: str, B: int, H: int, L: int, D: int, causal: bool) -> float:
    """Count operations as FlashAttention's papers do: two products forward, five backward, half of that if causal."""
    forward = 4 * B * H * L**2 * D / (2 if causal else 1)
    return {"forward": 1, "backward": 2.5}[direction] * forward


def tiled_bytes(direction: str, B: int, H: int, L: int, D: int, itemsize: int = 2) -> int:
    """Return the extra bytes that tiled attention needs: o and lse and, after a backward pass, dq, dk and dv."""
    tensor = B * H * L * D * itemsize
    return B * H * L * 4 + tensor * {"forward": 1, "backward": 4}[direction]


def score_bytes(B: int, H: int, L: int, itemsize: int = 2) -> int:
    """Return the bytes of one matrix of scores per head, which plain attention keeps."""
    return B * H * L**2 * itemsize


def measure_speed(
    length: int,
    head_dim: int,
    causal: bool,
    names: dict = NAMES,
    rounds: int = 3,
    repeat_ms: float = 60,
    graph: bool = False,
    **sizes,
) -> list[dict]:
    """Return one record per dtype, candidate and direction, with times in ms from common rounds.

    names: dtype → candidates. graph: also time the forward pass from CUDA graphs (a second record, `cold_l2` false).
    sizes: tokens and width of `operands`. Every result is checked before it is timed. A baseline that fails or is wrong
    is left out with a message; an error of our own kernels is raised, a ValueError if a result is wrong.
    """
    on_gpu = this_machine().device == "cuda"
    torch._dynamo.reset()
    calls, errors = {direction: {} for direction in DIRECTIONS}, {}
    for dtype, chosen in names.items():
        q, k, v, do = operands(length, head_dim, getattr(torch, dtype), this_machine().device, **sizes)
        corners = ([0, -1], [0, -1])
        exact = reference(*(t[corners][None] for t in (q, k, v, do)), causal)
        for name in chosen:
            try:
                function = candidate(name, length, causal)
                o = function(q, k, v)
                got = [o.detach(), *gradients(o, q, k, v, do)]
                wrong = [relative_error(result[corners][None], right) for result, right in zip(got, exact, strict=True)]
                if not max(wrong) < BOUNDS[dtype]:
                    raise ValueError(
                        "relative errors of o, dq, dk, dv against float64: "
                        + ", ".join(f"{error:.2g}" for error in wrong)
                    )
            except Exception as error:
                what = f"L = {length}, d = {head_dim}, {'causal' if causal else 'full'}, {dtype}"
                if name in (OURS, PORTABLE):
                    error.add_note(f"{name} at {what}")
                    raise
                first = (str(error).splitlines() or [""])[0]
                print(f"{name} is left out at {what}: {type(error).__name__}: {first}")
                continue
            calls["forward"][name, dtype] = partial(function, q, k, v)
            calls["backward"][name, dtype] = partial(gradients, o, q, k, v, do)
            errors["forward", name, dtype], errors["backward", name, dtype] = wrong[0], max(wrong[1:])
    records = []
    for direction, from_graph in [(d, False) for d in DIRECTIONS] + [("forward", True)] * graph:
        try:
            timings = measure_rounds(
                calls[direction], rounds=rounds, repeat_ms=repeat_ms, warmup_ms=8, min_runs=rounds, graph=from_graph
            )
        except MeasurementError as error:
            if not from_graph:
                raise
            print(f"no times from CUDA graphs at length {length}: {error}")
            continue
        records += [
            about("speed", name, q, causal, direction=direction, dtype=dtype)
            | {**timing.record(), "rounds": rounds, "cold_l2": on_gpu and not from_graph, "graph": from_graph}
            | {"relative_error": errors[direction, name, dtype]}
            for (name, dtype), timing in timings.items()
        ]
    return records


def measure_memory(lengths=LENGTHS, head_dim: int = 128, names=(OURS, FLASH, PLAIN), width: int = WIDTH) -> list[dict]:
    """Return one record per length, candidate and direction with the bytes at the peak beyond q, k, v and do.

    Attention is full, for one sequence in float16. 'backward' covers the forward and the backward pass together.
    """
    records = []
    for length in lengths:
        q, k, v, do = operands(length, head_dim, torch.float16, this_machine().device, tokens=length, width=width)
        for name in names:
            function = candidate(name, length, False)
            steps = {
                "forward": function,
                "backward": lambda q, k, v, do, f=function: torch.autograd.grad(f(q, k, v), (q, k, v), do),
            }
            for direction, given in (("forward", (q, k, v)), ("backward", (q, k, v, do))):
                extra = peak_memory(steps[direction], *given)[1]
                records.append(about("memory", name, q, False, direction=direction) | {"extra_bytes": extra})
    return records


def table(rows):
    """Return our rate and our speed relative to each baseline, one row per direction, head dim, mask and length."""
    import pandas

    baselines = {FLASH: "flash", CUDNN: "cuDNN", FLEX: "flex", PORTABLE: "portable"}
    keys = ["graph", "dtype", "direction", "D", "causal", "L"]
    speed = rows[rows["kind"] == "speed"]
    times = speed.pivot(index=keys, columns="name", values="median_ms").reindex(columns=[OURS, *baselines])
    ours = speed[speed["name"] == OURS].set_index(keys).reindex(times.index)
    work = [
        flops(direction, B, H, L, D, causal) if B == B else None  # NaN if ours was not measured
        for (_, _, direction, D, causal, L), B, H in zip(times.index, ours["B"], ours["H"], strict=True)
    ]
    rows = times.index.to_frame(index=False)
    shown = rows[["direction", "D"]].assign(
        mask=rows["causal"].map({True: "causal", False: "full"}),
        L=rows["L"],
        dtype=rows["dtype"],
        timed=rows["graph"].map({True: "graph", False: "call"}),
        **{"TFLOP/s": pandas.Series(work, dtype=float) / times[OURS].to_numpy() / 1e9},
        spread=100 * ((ours["p80_ms"] - ours["p20_ms"]) / ours["median_ms"]).to_numpy(),
        **{f"× {short}": (times[name] / times[OURS]).to_numpy() for name, short in baselines.items()},
    )
    digits = {"TFLOP/s": "{:.0f}", "spread": "{:.0f}%"} | {f"× {short}": "{:.3f}" for short in baselines.values()}
    return shown.assign(**{name: shown[name].map(form.format, na_action="ignore") for name, form in digits.items()})


def everything(rounds: int, quick: bool = False) -> list[dict]:
    """Run the study on a GPU: memory, error and speed at every shape; quick: only speed at two lengths in float16."""
    here = this_machine()
    names = dict(NAMES)
    if quick or not here.supports_bfloat16:
        del names["bfloat16"]
    shapes = [
        (length, head_dim, causal)
        for length in (QUICK_LENGTHS if quick else LENGTHS)
        for head_dim in HEAD_DIMS
        for causal in (True, False)
    ]
    with ThreadPoolExecutor(max(here.cores // 2, 1)) as pool:
        compile_beforehand(shapes, list(names), pool)
        # Other processes do not affect bytes and errors. The timing starts after all compilers have ended.
        records = [] if quick else measure_memory() + measure_errors(dtypes=list(names))
    for length, head_dim, causal in shapes:
        torch.cuda.empty_cache()
        chosen = names
        if head_dim == max(HEAD_DIMS) and not causal and not quick:  # for the figure of the time
            slow = [EFFICIENT] + [PLAIN] * _fits(length, head_dim)
            chosen = names | {"float16": (*names["float16"], *slow)}
        records += measure_speed(
            length, head_dim, causal, chosen, rounds, 30 if quick else 80, graph=length in GRAPH_LENGTHS
        )
    torch.cuda.empty_cache()
    return records if quick else records + measure_plain_steps(LENGTHS, max(HEAD_DIMS), rounds)


def _fits(length: int, head_dim: int) -> bool:
    """Return whether plain attention's matrices of scores, six at a time in its backward pass, fit on the GPU."""
    return 6 * score_bytes(TOKENS // length, WIDTH // head_dim, length) < torch.cuda.mem_get_info()[0]


def main(arguments=None) -> None:
    prepare_triton()  # before the kernels are imported
    from labs_helpers.attention.random_study import RANDOM

    parser = STUDY.parser(__doc__, limit=12 * program.HOUR)
    parser.add_argument("--quick", action="store_true", help="4k and 16k in float16; kept only with --out or --record")
    parser.add_argument("--rounds", type=int, help="default: 3, and 2 with --quick")
    RANDOM.add_options(parser)
    parser.add_argument("--dtype", choices=("float16", "bfloat16"), default="float16", help="with --random")
    given = parser.parse_args(arguments)
    if given.random:
        dtype, how = getattr(torch, given.dtype), {"rounds": given.rounds or 3, "seconds": given.seconds}
        RANDOM.report(RANDOM.run(given.random, given.seed, dtype, given.out, **how))
        return
    if this_machine().device != "cuda":
        raise SystemExit(
            "attention is timed on a GPU, and there is none here: in the interpreter a kernel's time says "
            "nothing. Recorded measurements: labs_helpers.attention.study.load('nvidia-h200')"
        )
    records = everything(given.rounds or (2 if given.quick else 3), given.quick)
    if given.quick and not given.out:
        print(f"\n{as_text(table(frame(records)))}\n")
        print(f"{len(records)} records, not kept: name a file with --out to keep them")
    else:
        STUDY.keep(records, given.out, table=table)


if __name__ == "__main__":
    program.run(main)
